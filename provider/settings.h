/* settings.h - every knob of the simulated provider, in one table.
 *
 *   --visibility-lag-ms 2000          flag
 *   {"visibility_lag_ms": 2000}       file (--config), POST /knobs, GET /knobs
 *
 * One name, three doors.  The table below is the truth: parser, help, JSON and the list
 * in docs/PROVIDER.md come from it, and a test compares the manual with it.  A value is
 * a whole number; switches are 0 or 1, choices an index into their words.
 *
 * Setting is all or nothing: a document with one bad knob changes none. */
#ifndef PROVIDER_SETTINGS_H
#define PROVIDER_SETTINGS_H

#include "common/base.h"
#include "common/error.h"
#include "provider/model/engine.h"

#include <jansson.h>

/* clang-format off */
/* X(id, name, kind, default, max, choices, help) */
#define SETTINGS_LIST(X) \
	X(CACHING, "caching", SWITCH, 1, 1, NULL, "cache prompts at all") \
	X(VISIBILITY_LAG, "visibility_lag", CHOICE, 0, 2, "fixed uniform per_prefix", "how long an entry stays unreadable after the response that wrote it began") \
	X(VISIBILITY_LAG_MS, "visibility_lag_ms", NUMBER, 0, 3600000, NULL, "that time, or its upper bound") \
	X(READABLE, "readable", CHOICE, 0, 1, "response_start response_end", "what the lag counts from") \
	X(TTL_PERMILLE, "ttl_permille", POSITIVE, 1000, 1000, NULL, "lifetimes in thousandths of the real ones") \
	X(GRACE_MS, "grace_ms", NUMBER, 0, 3600000, NULL, "entries linger this long past their lifetime") \
	X(MISS_PERMILLE, "miss_permille", NUMBER, 0, 1000, NULL, "reads that find nothing, in thousandths") \
	X(EVICT_PERMILLE, "evict_permille", NUMBER, 0, 1000, NULL, "reads that find their entry evicted for good") \
	X(UNKNOWN_PERMILLE, "usage_unknown_permille", NUMBER, 0, 1000, NULL, "answers without cache figures") \
	X(UNKNOWN_AS, "usage_unknown_as", CHOICE, 0, 2, "null absent zero", "what stands in their place") \
	X(NULL_ON_MISS, "null_on_miss", SWITCH, 0, 1, NULL, "chat: cached_tokens is null instead of 0") \
	X(USAGE_SHAPE, "usage_shape", POSITIVE, 1, 3, NULL, "streams: 1 late usage has output only, 2 repeats all, 3 only it is true") \
	X(SHARDS, "shards", POSITIVE, 1, 1024, NULL, "chat: machines with a cache of their own") \
	X(SHARD_RPM, "shard_rpm", NUMBER, 15, 1000000, NULL, "chat: requests per minute before a key spreads; 0 never") \
	X(LATENCY_MS, "latency_ms", NUMBER, 100, 600000, NULL, "time to the first byte without prefill") \
	X(LATENCY_SPREAD, "latency_spread_permille", NUMBER, 200, 1000, NULL, "its spread each way") \
	X(PREFILL, "prefill_tokens_per_second", NUMBER, 10000, 100000000, NULL, "uncached tokens; 0: no time") \
	X(KEEP_WAITING, "keep_waiting", SWITCH, 0, 1, NULL, "no answer begins until this is false again") \
	X(DECODE, "decode_tokens_per_second", NUMBER, 80, 100000000, NULL, "output tokens; 0: no time") \
	X(JOB_MS, "job_ms", NUMBER, 0, 3600000, NULL, "first byte to last; 0: by the decode rate") \
	X(JOB_SPREAD, "job_spread_permille", NUMBER, 0, 1000, NULL, "its spread each way") \
	X(OUTPUT_TOKENS, "output_tokens", POSITIVE, 64, 1000000, NULL, "length of an answer, if max_tokens allows") \
	X(DELTAS, "deltas", POSITIVE, 8, 10000, NULL, "text events of a streamed answer") \
	X(ANSWER, "answer", CHOICE, 0, 6, "auto text thinking tool_use citations server_tool unknown_delta", "what an answer is made of; auto: what the request asks for") \
	X(RPM, "rpm", NUMBER, 0, 1000000000, NULL, "requests per minute and class; 0: no limit") \
	X(ITPM, "itpm", NUMBER, 0, 1000000000, NULL, "input tokens per minute and class") \
	X(OTPM, "otpm", NUMBER, 0, 1000000000, NULL, "output tokens per minute and class, reserved by max_tokens") \
	X(BURST_MS, "burst_ms", NUMBER, 0, 3600000, NULL, "what a bucket holds; 0: one minute's worth") \
	X(READS_CHARGED, "reads_charged", SWITCH, 0, 1, NULL, "tokens read count as input for every class") \
	X(ESTIMATE_FULL, "estimate_full", SWITCH, 0, 1, NULL, "input is estimated in full at start, corrected at the first byte") \
	X(REFUSALS_COUNTED, "refusals_counted", SWITCH, 0, 1, NULL, "a refused request costs a request") \
	X(ACCELERATION_FLOOR, "acceleration_floor", NUMBER, 0, 1000000, NULL, "starts per second always allowed; 0: no acceleration limit") \
	X(ACCELERATION_PERMILLE, "acceleration_permille", NUMBER, 2000, 100000, NULL, "growth of starts from one second to the next") \
	X(SPEND_CAP, "spend_cap", SWITCH, 0, 1, NULL, "429 without retry-after, until switched off") \
	X(RETRY_AFTER_MS, "retry_after_ms", NUMBER, 1000, 3600000, NULL, "with the faults rate_limit and overloaded; 0: no header") \
	X(LIMIT_HEADERS, "limit_headers", CHOICE, 0, 2, "full none negative", "rate-limit headers") \
	X(FAULT_NEXT, "fault_next", FAULT, 0, FAULT_COUNT - 1, NULL, "the next fault_next_count requests get this fault") \
	X(FAULT_NEXT_COUNT, "fault_next_count", NUMBER, 0, 1000000000, NULL, "counts down") \
	X(FAULT_BAD_REQUEST, "fault_bad_request_permille", NUMBER, 0, 1000, NULL, "400") \
	X(FAULT_RATE_LIMIT, "fault_rate_limit_permille", NUMBER, 0, 1000, NULL, "429 with retry-after") \
	X(FAULT_SERVER_ERROR, "fault_server_error_permille", NUMBER, 0, 1000, NULL, "500") \
	X(FAULT_UNAVAILABLE, "fault_unavailable_permille", NUMBER, 0, 1000, NULL, "503") \
	X(FAULT_OVERLOADED, "fault_overloaded_permille", NUMBER, 0, 1000, NULL, "529") \
	X(FAULT_STATUS, "fault_status_permille", NUMBER, 0, 1000, NULL, "the status fault_status") \
	X(FAULT_REFUSE, "fault_refuse_permille", NUMBER, 0, 1000, NULL, "connection reset without a byte") \
	X(FAULT_HANG, "fault_hang_permille", NUMBER, 0, 1000, NULL, "no byte until the client goes") \
	X(FAULT_LOSE_REPLY, "fault_lose_reply_permille", NUMBER, 0, 1000, NULL, "the work is done, the reply is lost") \
	X(FAULT_CUT, "fault_cut_permille", NUMBER, 0, 1000, NULL, "closed in mid-answer") \
	X(FAULT_CUT_USAGE, "fault_cut_usage_permille", NUMBER, 0, 1000, NULL, "closed before the first usage") \
	X(FAULT_STREAM_ERROR, "fault_stream_error_permille", NUMBER, 0, 1000, NULL, "an error event after 200") \
	X(FAULT_STALL, "fault_stall_permille", NUMBER, 0, 1000, NULL, "first event, then silence") \
	X(FAULT_DRIP, "fault_drip_permille", NUMBER, 0, 1000, NULL, "a few bytes at a time") \
	X(FAULT_GARBAGE, "fault_garbage_permille", NUMBER, 0, 1000, NULL, "bytes that are not the protocol") \
	X(STATUS, "fault_status", STATUS, 504, 599, NULL, "of the fault status, 400 to 599") \
	X(DRIP_BYTES, "drip_bytes", POSITIVE, 16, 1000000, NULL, "of the fault drip, every drip_ms") \
	X(DRIP_MS, "drip_ms", POSITIVE, 5, 60000, NULL, "time between them") \
	X(FINISH_ABORTED, "finish_aborted", SWITCH, 0, 1, NULL, "a request whose client has gone still prefills and writes") \
	X(SSE_PING_EVERY, "sse_ping_every", NUMBER, 0, 1000000, NULL, "a ping before every n-th event; 0: one after the first") \
	X(SSE_COMMENTS, "sse_comments", SWITCH, 0, 1, NULL, "comment lines between events") \
	X(SSE_UNKNOWN, "sse_unknown", SWITCH, 0, 1, NULL, "events of a type nobody knows") \
	X(SSE_PADDING, "sse_padding", SWITCH, 0, 1, NULL, "white space inside the JSON of events") \
	X(SSE_CRLF, "sse_crlf", SWITCH, 0, 1, NULL, "lines end with CR LF") \
	X(SSE_SPLIT, "sse_split", SWITCH, 0, 1, NULL, "every event in two pieces, a moment apart") \
	X(BODY_MAX, "body_max_bytes", POSITIVE, 33554432, 268435456, NULL, "larger requests get 413")
/* clang-format on */

#define SETTINGS_HELP_SIZE 256

enum settings_id {
#define X(id, name, kind, value, max, choices, help) SETTINGS_##id,
	SETTINGS_LIST(X)
#undef X
	SETTINGS_COUNT,
};

/* What the indexes of some choices mean, in the order of their words. */
enum settings_unknown {
	SETTINGS_UNKNOWN_NULL,
	SETTINGS_UNKNOWN_ABSENT,
	SETTINGS_UNKNOWN_ZERO,
};

enum settings_answer {
	SETTINGS_ANSWER_AUTO,
	SETTINGS_ANSWER_TEXT,
	SETTINGS_ANSWER_THINKING,
	SETTINGS_ANSWER_TOOL_USE,
	SETTINGS_ANSWER_CITATIONS,
	SETTINGS_ANSWER_SERVER_TOOL,
	SETTINGS_ANSWER_UNKNOWN_DELTA,
};

enum settings_limit_headers {
	SETTINGS_LIMIT_HEADERS_FULL,
	SETTINGS_LIMIT_HEADERS_NONE,
	SETTINGS_LIMIT_HEADERS_NEGATIVE,
};

struct settings {
	uint64_t values[SETTINGS_COUNT];
};

struct settings_error {
	char text[256]; /* a sentence: which knob, what is wrong, what is allowed */
};

static inline uint64_t
settings_get(const struct settings *settings, enum settings_id id)
{
	return settings->values[id];
}

void settings_init(struct settings *settings);

const char *settings_name(enum settings_id id);

/* Writes the help as part of a sentence, with choices and default. */
void settings_help(enum settings_id id, char ret_text[SETTINGS_HELP_SIZE]);

/* Sets one knob from text, as a flag has it.  ERR_MALFORMED or ERR_LIMIT. */
MUST_USE int settings_set(struct settings *settings, enum settings_id id,
                          struct span text, struct settings_error *reterr);

/* Sets the knobs of a JSON object.  Members named in `skip` (NULL-terminated, or NULL)
 * are somebody else's.  ERR_UNKNOWN_KEY, ERR_MALFORMED or ERR_LIMIT; nothing is changed
 * then. */
MUST_USE int settings_set_json(struct settings *settings, const json_t *object,
                               const char *const *skip, struct settings_error *reterr);

/* All knobs; the caller releases it.  NULL without memory. */
json_t *settings_to_json(const struct settings *settings);

/* Turns knobs into the model's, for all classes alike. */
void settings_to_engine(const struct settings *settings, struct engine_config *config);

#endif
