/* ruler_job.h - from one entry of the inbox to all that admission has to know.
 *
 *   entry ── envelope ── upstream ── prefix? ── chain ── model, budget, pool, list
 *              │ bad       │ unknown   │ wanted   │ cannot be split
 *              ▼           ▼           ▼          ▼
 *            dead        dead     the caller    opaque: runs, is never held
 *                                 finds it
 *
 * A reader goes through the jobs of an entry one by one and may go back (a pack of 20,000
 * jobs is admitted in many calls).  What it answers borrows from the entry and from the
 * reader, until the next call on the reader. */
#ifndef SCHEDULER_RULER_JOB_H
#define SCHEDULER_RULER_JOB_H

#include "common/codec/chain.h"
#include "common/codec/envelope.h"
#include "common/text.h"
#include "scheduler/core/lineage.h"
#include "scheduler/ruler.h"

#define RULER_JOB_NOW_MS       2000 /* `hold_max` up to here: the list that is not held */
#define RULER_JOB_OUTPUT_GUESS 1024 /* tokens, of a job that names no max_tokens */

enum ruler_job_kind {
	RULER_JOB_RUN,
	RULER_JOB_PREFIX, /* put `body` under the name `prefix` */
	RULER_JOB_DEAD,
};

struct ruler_job {
	enum ruler_job_kind kind;

	/* DEAD: what to write into the dead letter. */
	const char *reason; /* malformed, unsupported, prefix_missing, ... */
	const char *text;   /* a sentence */

	const struct envelope *envelope; /* NULL if it could not be read */
	struct span reply;               /* where a result goes, if it can be told */
	size_t upstream;                 /* index into the configuration */
	size_t model;                    /* RUN: index into it */
	struct span model_name;          /* RUN: as the body says it; may be empty */
	struct span route;               /* RUN: the job's, else upstream/model */
	struct span pool;                /* RUN */
	enum envelope_band band;
	bool now;             /* not held by the gate */
	uint64_t hold_max_ms; /* the job's or its upstream's, whichever is shorter */

	struct span raw; /* of an adopted job: what is stored of it */
	bool identified; /* everything below is known */
	struct id128 family;
	struct lineage
		lineage; /* root first; flags SHARED (declared), MARKED, MARKABLE */
	bool opaque;
	bool split; /* px values are stored, the payload is slim */
	bool slim;  /* the payload cannot stay in the stream */
	bool tail_marked;
	bool streams;
	uint64_t ttl_ms; /* of a marker at its boundary; 0 = the upstream's */
	uint32_t input_tokens, output_tokens; /* estimate: tail, and reserved output */
};

struct ruler_job_reader {
	const struct ruler_config *config;
	uint64_t identity; /* chain_seed() of the installation */
	struct envelope_reader envelopes;
	struct envelope envelope;
	struct envelope_error fault;
	struct chain chain;
	char text[256];
	char route[2 * TEXT_NAME_MAX + 2];
	bool is_open;          /* the entry could be taken apart */
	bool is_pack;          /* its jobs go by `<entry>.1` and so on */
	uint32_t count, index; /* jobs of the entry; the next one to be read */
	const struct envelope_pair *pairs;
	size_t pairs_count;
	uint64_t entry_ms;
	struct ruler_job last; /* job `index` - 1, as it was read */
	bool adopted;          /* the job's payload is slim already */
	struct envelope_pair adopted_pairs[ENVELOPE_FIELDS_MAX];
};

void ruler_job_init(struct ruler_job_reader *reader, const struct ruler_config *config);
void ruler_job_fini(struct ruler_job_reader *reader);

/* Starts an entry and answers how many jobs it has, at least 1 (what cannot be taken
 * apart is one dead job). */
uint32_t ruler_job_open(struct ruler_job_reader *reader,
                        const struct envelope_pair *pairs, size_t pairs_count,
                        uint64_t entry_ms);

/* Reads the envelope of job `index`, which is below the count.  What cannot be read is a
 * dead job. */
void ruler_job_read(struct ruler_job_reader *reader, uint32_t index,
                    struct ruler_job *ret_job);

/* It ends dead, for that reason and with that sentence; both are borrowed. */
void ruler_job_bury(struct ruler_job *job, const char *reason, const char *text);

/* Goes on with one job whose envelope stands in a slim payload: an undecided one, or one
 * that died at admission and is tried again; `entry_ms` is the time of its id. */
void ruler_job_adopt(struct ruler_job_reader *reader, struct span payload,
                     uint64_t entry_ms, struct ruler_job *ret_job);

/* Goes on with a job of kind RUN: `prefix` is the content it named, or empty.  The job
 * may turn out dead. */
void ruler_job_identify(struct ruler_job_reader *reader, struct span prefix,
                        struct ruler_job *job);

/* The value to store at px:<id> of a node, and the way to other ids when that place is
 * taken by other bytes. */
struct span ruler_job_segment(const struct ruler_job_reader *reader, uint32_t node);
void ruler_job_salt(struct ruler_job_reader *reader, uint32_t node, uint32_t salt,
                    struct ruler_job *job);

/* The first pool of the configuration that matches, or "default". */
struct span ruler_job_pool(const struct ruler_config *config, struct span route,
                           struct span upstream);

/* The first model of the configuration that matches its name; the last one matches all.
 */
size_t ruler_job_model(const struct ruler_config *config, struct span name);

/* What a model at an upstream needs from us, as the worker renders it. */
struct dialect_traits ruler_job_traits(const struct ruler_config *config, size_t upstream,
                                       size_t model);

/* Appends the payload of a slim job. */
void ruler_job_payload(const struct ruler_job_reader *reader, const struct ruler_job *job,
                       struct buffer *out);

#endif
