#include "scheduler/ledger/ledger.h"

static const struct {
	const char *text;
	const char *meaning;
	bool avoidable;
} causes[LEDGER_CAUSE_COUNT] = {
	[LEDGER_FIRST] = { "first", "The first request with this prefix wrote it.",
	                   false },
	[LEDGER_EXPIRED] = { "expired",
	                     "Nobody used the prefix for longer than the provider keeps "
	                     "it.",
	                     false },
	[LEDGER_STAMPEDE] = { "stampede",
	                      "The request started while another one was still writing "
	                      "the "
	                      "same prefix.",
	                      true },
	[LEDGER_HOLD_LIMIT] = { "hold_limit",
	                        "The job may not wait longer, or holding was switched "
	                        "off, and it started before the prefix could be read.",
	                        true },
	[LEDGER_PROOF_MISS] = { "proof_miss",
	                        "The one request that was sent to see whether the prefix "
	                        "can "
	                        "be read came too early.",
	                        true },
	[LEDGER_NEW_VERSION] = { "new_version",
	                         "The route has a new prefix, as after a deploy, and it "
	                         "was "
	                         "written once.",
	                         false },
	[LEDGER_DRIFT] = { "drift",
	                   "Something in the prefix changes from job to job, so each "
	                   "pays for "
	                   "all of it.",
	                   true },
	[LEDGER_TTL_MISMATCH] = { "ttl_mismatch",
	                          "The provider kept the prefix for a shorter time than "
	                          "was "
	                          "asked for.",
	                          true },
	[LEDGER_EVICTED_EARLY] = { "evicted_early",
	                           "The prefix should still have been there, and the "
	                           "provider "
	                           "did not find it.",
	                           true },
	[LEDGER_OTHER_PLACE] = { "other_place",
	                         "The prefix was warm on another replica, shard or "
	                         "account.",
	                         true },
	[LEDGER_TAIL] = { "tail",
	                  "A marker behind the shared prefix wrote the job's own part, "
	                  "too.",
	                  false },
	[LEDGER_SERVER_TOOL] = { "server_tool",
	                         "The provider's own tools wrote what they had found.",
	                         false },
	[LEDGER_KEEPWARM] = { "keepwarm",
	                      "A ping that was to keep the prefix came too late and "
	                      "wrote it.",
	                      true },
	[LEDGER_PREWARM_WASTED] = { "prewarm_wasted",
	                            "The prefix was written ahead of its jobs, and none "
	                            "came "
	                            "in time.",
	                            true },
	[LEDGER_FALSE_SPLIT] = { "false_split",
	                         "Two versions were kept apart that the provider holds "
	                         "as one.",
	                         true },
	[LEDGER_RETRY_WASTE] = { "retry_waste",
	                         "The attempt was paid for and gave no answer that "
	                         "counts.",
	                         true },
	[LEDGER_UNKNOWN] = { "unknown", "The ledger does not know enough to say why.",
	                     false },
};

const char *
ledger_cause_text(enum ledger_cause cause)
{
	return (unsigned)cause < LEDGER_CAUSE_COUNT ? causes[cause].text : "unknown";
}

const char *
ledger_cause_meaning(enum ledger_cause cause)
{
	return (unsigned)cause < LEDGER_CAUSE_COUNT ? causes[cause].meaning : "";
}

bool
ledger_cause_is_avoidable(enum ledger_cause cause)
{
	return (unsigned)cause < LEDGER_CAUSE_COUNT && causes[cause].avoidable;
}
