#include "scheduler/ruler_scout.h"

#include "scheduler/ruler_batch.h"
#include "scheduler/ruler_intern.h"
#include "scheduler/ruler_prefix.h"

#define JOBS_MAX 100 /* looked at in one go: a millisecond or two */

/* False: nothing more may be asked for now. */
static bool
look_at(struct ruler *ruler, uint32_t index, size_t *room, struct call_list *out)
{
	struct ruler_job_reader *scout = &ruler->admit.scout;
	struct span prefix = { NULL, 0 };
	struct ruler_job job;

	ruler_job_read(scout, index, &job);
	if (job.kind != RULER_JOB_RUN)
		return true;
	if (job.envelope->prefix.len > 0) {
		int err = ruler_prefix_find(ruler, job.envelope->prefix, &prefix);

		if (err == ERR_AGAIN && !ruler_batch_puts(&ruler->admit))
			return ruler_prefix_ahead(ruler, job.envelope->prefix, room, out);
		if (err < 0)
			return true;
	}
	ruler_job_identify(scout, prefix, &job);
	return job.kind != RULER_JOB_RUN || ruler_intern_ahead(ruler, scout, &job, out);
}

void
ruler_scout(struct ruler *ruler, uint64_t now_ms, const struct ruler_page *page,
            struct call_list *out)
{
	struct ruler_admit *admit = &ruler->admit;
	uint32_t at = admit->entry, index = admit->job, jobs = 0;
	size_t room = ruler->config->read_size; /* for contents of named prefixes */

	admit->scout.identity = admit->reader.identity;
	for (; at < page->entries_count && jobs < JOBS_MAX; at++, index = 0) {
		const struct ruler_entry *entry = &page->entries[at];
		uint32_t count =
			ruler_job_open(&admit->scout, page->pairs + entry->pairs_from,
		                       entry->pairs_count, MIN(entry->ms, now_ms));

		for (; index < count && jobs < JOBS_MAX; index++, jobs++)
			if (!look_at(ruler, index, &room, out))
				return;
	}
}
