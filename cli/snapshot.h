/* snapshot.h - what Redis says at one moment, read once: families, places, budgets,
 * sessions.  Reading and telling are apart: view.h makes sentences of this, without I/O.
 *
 * Everything is JSON text exactly as stored (docs/PROTOCOL.md), keyed as in Redis.  Works
 * without a scheduler. */
#ifndef CLI_SNAPSHOT_H
#define CLI_SNAPSHOT_H

#include "cli/store.h"

struct snapshot {
	uint64_t now_ms;  /* clock of Redis */
	bool is_held;     /* false: holding is switched off */
	json_t *families; /* family -> record */
	json_t *lanes;    /* lane -> record */
	json_t *glances;  /* family -> {backlog, in_use, head_ms} */
	json_t *budgets;  /* budget -> {field: text} */
	json_t *sessions; /* nonce -> {field: text, "busy": n, "seen_ms": deadline} */
	json_t *leases;   /* nonce -> {slot: lease} */
};

/* CLI_OK, or the code to leave with after it was said why.  The caller gives it back with
 * snapshot_fini.  The reads are no transaction: a queue at work moves between them. */
MUST_USE int snapshot_load(struct store *store, struct snapshot *ret_snapshot);

/* Harmless on zeros. */
void snapshot_fini(struct snapshot *snapshot);

/* All fields of one hash as a new object of texts, which the caller releases. */
MUST_USE int snapshot_hash(struct store *store, struct span key, json_t **ret_hash);

/* The text of a member, as long as the object lives; an empty span if there is none. */
struct span snapshot_text(const json_t *object, const char *member);

#endif
