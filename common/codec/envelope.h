/* envelope.h - jobs from the fields of one stream entry.
 *
 *   XADD warmq:jobs * upstream claude body '{…}'            flat fields: one job
 *   XADD warmq:jobs * json '{"upstream":"claude","body":{…}}'
 *   XADD warmq:jobs * json '[{…},{…}]' upstream claude      a pack; flat fields beside
 *   XADD warmq:jobs * m <MessagePack map or array of maps>  it are defaults of each job
 *
 * docs/ENVELOPE.md lists every field with type, limit, default and error; its table and
 * envelope_fields[] are compared by a test.  A job with one bad field is malformed as a
 * whole: the error names the field and says what it should be.  In a pack only that job
 * is.  `unique`, `group` and `tenant` parse and make the job `unsupported`.
 *
 * An envelope borrows from the entry and from the reader's scratch: it lives until the
 * next envelope_next or envelope_fini. */
#ifndef COMMON_CODEC_ENVELOPE_H
#define COMMON_CODEC_ENVELOPE_H

#include "common/base.h"
#include "common/buffer.h"
#include "common/codec/chain.h"
#include "common/codec/tape.h"
#include "common/error.h"

#define ENVELOPE_BODY_MAX   ((size_t)8 << 20) /* default of max_job */
#define ENVELOPE_PACK_MAX   20000             /* jobs in one entry */
#define ENVELOPE_FIELDS_MAX 64                /* fields of one entry or job */
#define ENVELOPE_TIMEOUT_MS 600000
#define ENVELOPE_HOLD_MS    ENVELOPE_DAY_MS /* no bound of its own: its upstream has one */
#define ENVELOPE_ATTEMPTS   3
#define ENVELOPE_DAY_MS     UINT64_C(86400000)
#define ENVELOPE_NO_TIME    0 /* not_before, deadline: not given */

struct envelope_pair {
	struct span name;
	struct span value;
};

enum envelope_kind {
	ENVELOPE_JOB,
	ENVELOPE_PREFIX, /* put_prefix: `prefix` is its name, `body` its content */
};

enum envelope_band {
	ENVELOPE_HIGH,
	ENVELOPE_NORMAL,
	ENVELOPE_LOW,
	ENVELOPE_COUNT,
};

enum envelope_markers {
	ENVELOPE_MARKERS_UNSET, /* family, upstream, then dialect decide */
	ENVELOPE_MARKERS_AUTO,
	ENVELOPE_MARKERS_NEVER,
};

/* Where the job's bytes are, and whether they still have to be split. */
enum envelope_body {
	ENVELOPE_WHOLE, /* the producer's bytes */
	ENVELOPE_OWN,   /* an own value (part.h); the rest is in px */
};

struct envelope {
	enum envelope_kind kind;
	struct span upstream;
	struct span body;
	enum envelope_body body_kind;
	struct span prefix;     /* name; len 0 = none */
	struct span prefix_pin; /* hex digits behind '@'; len 0 = not pinned */
	struct span route;      /* len 0: admission fills in upstream/model */
	struct chain_shared shared;
	struct span conversation;
	struct span betas; /* sorted, no repeats, joined by commas */
	enum envelope_markers markers;
	struct span handler;
	enum envelope_band priority;
	uint64_t not_before_ms; /* since 1970, Redis clock */
	uint64_t deadline_ms;
	uint64_t timeout_ms;
	uint32_t attempts;
	uint64_t hold_max_ms; /* 0 = never hold */
	struct span reply;
	struct span ref;
	struct span traceparent;
	bool trace_ignored; /* it said one that is none of W3C's */
};

enum envelope_fault {
	ENVELOPE_MALFORMED,
	ENVELOPE_UNSUPPORTED,
};

struct envelope_error {
	enum envelope_fault fault;
	char field[64]; /* "" if no single field is at fault */
	char text[192]; /* a sentence: what is wrong and what is expected */
};

enum envelope_type {
	ENVELOPE_TYPE_NAME,   /* A-Z a-z 0-9 . _ - */
	ENVELOPE_TYPE_BODY,   /* bytes, or a JSON value inside `json` */
	ENVELOPE_TYPE_TEXT,   /* UTF-8 without control characters */
	ENVELOPE_TYPE_PREFIX, /* name or name@hex */
	ENVELOPE_TYPE_SHARED, /* tools, system, messages:N, marker:K, bytes:N */
	ENVELOPE_TYPE_BETAS,  /* comma list or array of [a-z0-9-]{1,64}, at most 16 */
	ENVELOPE_TYPE_WORD,   /* one of the words in `words` */
	ENVELOPE_TYPE_TIME, /* ms since 1970, RFC 3339, or +duration from the entry's time
	                     */
	ENVELOPE_TYPE_DURATION, /* 30s, 5m, or plain digits: milliseconds */
	ENVELOPE_TYPE_COUNT,    /* digits */
	ENVELOPE_TYPE_TRACE,    /* W3C traceparent */
};

/* One row of the table in docs/ENVELOPE.md. */
struct envelope_field {
	const char *name;
	enum envelope_type type;
	uint64_t min;
	uint64_t max;         /* bytes, milliseconds or a count, by type */
	const char *fallback; /* default, as text; NULL = absent */
	const char *words;    /* ENVELOPE_TYPE_WORD: "auto|never" */
	unsigned words_from;  /* value of the first word */
	bool supported;
	size_t offset; /* into struct envelope */
};
extern const struct envelope_field envelope_fields[];
extern const size_t envelope_fields_count;

struct envelope_limits {
	size_t body_max;
	uint32_t pack_max;
};

struct envelope_reader {
	struct envelope_limits limits;
	const struct envelope_pair *pairs; /* of the entry */
	size_t pairs_count;
	uint64_t entry_ms; /* the entry id's time: base of relative times */
	int form;          /* flat, json, MessagePack */
	bool is_pack;      /* an array, if only of one */
	uint32_t count;    /* jobs in the entry */
	uint32_t index;    /* of the next job */
	struct tape tape;
	uint32_t json_at;
	struct span packed; /* rest of a MessagePack array */
	struct buffer scratch;
	struct envelope_pair job[ENVELOPE_FIELDS_MAX];
	size_t job_count;
};

void envelope_init(struct envelope_reader *reader, const struct envelope_limits *limits);
void envelope_fini(struct envelope_reader *reader); /* takes NULL */

/* Starts an entry.  Answers the number of jobs in it (a pack of 0 is malformed), or
 * ERR_MALFORMED if the entry cannot be taken apart: the entry is then one dead job. */
MUST_USE int envelope_open(struct envelope_reader *reader,
                           const struct envelope_pair *pairs, size_t pairs_count,
                           uint64_t entry_ms, struct envelope_error *reterr);

/* Goes on at job `index` of the entry (the n of the cursor). */
MUST_USE int envelope_seek(struct envelope_reader *reader, uint32_t index);

/* Reads the next job.  0; ERR_MALFORMED or ERR_UNSUPPORTED with `reterr` filled (the job
 * is dead, envelope_next may go on); ERR_NOT_FOUND behind the last one. */
MUST_USE int envelope_next(struct envelope_reader *reader, struct envelope *ret_envelope,
                           struct envelope_error *reterr);

/* Writes and reads the payload of a slim job: the fields that differ from their
 * defaults, one "name value" per line, an empty line, then the body or own value. */
void envelope_write_slim(const struct envelope *envelope, struct buffer *out);
MUST_USE int envelope_read_slim(struct span payload, struct envelope *ret_envelope,
                                struct envelope_error *reterr);

/* A slim value that holds a whole entry, as it was sent: for each field and each value
 * its length, a blank, its bytes and a newline.  Answers the fields, 0 if it is none. */
bool envelope_is_moved(struct span value);
size_t envelope_read_moved(struct span value,
                           struct envelope_pair pairs[ENVELOPE_FIELDS_MAX]);

#endif
