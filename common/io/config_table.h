/* config_table.h - the one list of what a warmq.yaml may say.
 *
 * To add a key: add the field to its struct in config.h and a row to config_table.c; the
 * parser, the defaults, config_print and the reference follow.  Then let the test write
 * the tables of docs/CONFIG.md anew: UPDATE=1 meson test config.
 *
 * Only the config_*.c files use this. */
#ifndef COMMON_IO_CONFIG_TABLE_H
#define COMMON_IO_CONFIG_TABLE_H

#include "common/io/config.h"

enum config_section {
	CONFIG_SECTION_ROOT,
	CONFIG_SECTION_UPSTREAM,
	CONFIG_SECTION_CLASS_LIMIT,
	CONFIG_SECTION_MODEL,
	CONFIG_SECTION_PRICE,
	CONFIG_SECTION_POOL,
	CONFIG_SECTION_SCHEDULER,
	CONFIG_SECTION_WORKER,
	CONFIG_SECTION_COUNT,
};

enum config_kind {
	CONFIG_KIND_NAME,     /* text_is_name */
	CONFIG_KIND_TEXT,     /* UTF-8 without control characters */
	CONFIG_KIND_DURATION, /* milliseconds */
	CONFIG_KIND_SIZE,     /* bytes */
	CONFIG_KIND_INTEGER,
	CONFIG_KIND_PRICE,      /* decimal, in millionths */
	CONFIG_KIND_MULTIPLIER, /* decimal, in thousandths */
	CONFIG_KIND_DATE,       /* YYYY-MM-DD, its midnight in ms */
	CONFIG_KIND_BOOL,
	CONFIG_KIND_WORD,        /* one of `words`; stored as int, the index */
	CONFIG_KIND_LIST,        /* of texts, into an array with a count beside it */
	CONFIG_KIND_PAIR,        /* two texts in a list, into two neighbouring fields */
	CONFIG_KIND_HEADERS,     /* a map of names to texts */
	CONFIG_KIND_HEADERS_ENV, /* a map of names to environment variables */
};

struct config_key {
	enum config_section section;
	enum config_kind kind;
	const char *name;
	size_t offset; /* in the section's struct */
	size_t size;   /* of the field; for lists, of one element */
	size_t count_offset;
	uint64_t min, max; /* of the value; of the length for texts; of the count */
	const char *
		initial; /* default as text; NULL = must be given, or depends on others */
	const char *depends; /* what the default is when `initial` is NULL */
	const char *const *words;
	const char *help;
};

/* A key whose value is a section, or many of them. */
struct config_group {
	enum config_section parent, child;
	enum {
		CONFIG_SHAPE_ONE,
		CONFIG_SHAPE_MAP,
		CONFIG_SHAPE_LIST
	} shape;
	const char *name;
	size_t offset;
	size_t size; /* of one child struct; a map's child begins with its name */
	size_t count_offset;
	size_t count_max;
	const char *help;
};

extern const struct config_key config_table_keys[];
extern const size_t config_table_keys_count;
extern const struct config_group config_table_groups[];
extern const size_t config_table_groups_count;

/* NULL if the section has no such key (or group). */
const struct config_key *config_table_key(enum config_section section, struct span name);
const struct config_group *config_table_group(enum config_section section,
                                              struct span name);

/* The known name that a typing error would come from, or NULL if none is near. */
const char *config_table_nearest(enum config_section section, struct span name);

/* Sets all defaults of one section's struct. */
void config_table_initialise(enum config_section section, void *base);

/* The next free child of a group in the struct of its parent, with its defaults; NULL
 * when there is no room. */
void *config_table_add_child(const struct config_group *group, void *base);

/* The child of that name in a map, added if it is new; NULL when there is no room. */
void *config_table_child(const struct config_group *group, void *base, struct span name);

#endif
