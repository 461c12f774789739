/* config_value.h - one value of one key: text <-> field of the struct.
 *
 * `base` is the struct of the key's section.  Only the config_*.c files use this. */
#ifndef COMMON_IO_CONFIG_VALUE_H
#define COMMON_IO_CONFIG_VALUE_H

#include "common/io/config_table.h"

#define CONFIG_VALUE_REASON_SIZE 256

/* A field that no key has set, and that config_finish will derive. */
#define CONFIG_VALUE_UNSET_WORD 255

/* Parses and stores a scalar.  On failure nothing is stored, and `ret_reason` says what
 * would be right, as the end of a sentence. */
MUST_USE int config_value_set(const struct config_key *key, void *base, struct span text,
                              char ret_reason[CONFIG_VALUE_REASON_SIZE]);

/* Appends one element to a LIST; ERR_LIMIT when it is full. */
MUST_USE int config_value_append(const struct config_key *key, void *base,
                                 struct span text,
                                 char ret_reason[CONFIG_VALUE_REASON_SIZE]);

/* Does the name of a header or parameter have a word that only secrets have: key, token,
 * auth and their like? */
bool config_value_names_secret(struct span name);

/* Appends a header, or one whose value an environment variable has; refuses those that
 * carry secrets in plain text or belong to the transport. */
MUST_USE int config_value_add_header(const struct config_key *key, void *base,
                                     struct span name, struct span text,
                                     char ret_reason[CONFIG_VALUE_REASON_SIZE]);

/* Stores the i-th half of a PAIR. */
MUST_USE int config_value_set_half(const struct config_key *key, void *base, size_t half,
                                   struct span text,
                                   char ret_reason[CONFIG_VALUE_REASON_SIZE]);

void config_value_initialise(const struct config_key *key, void *base);

/* True for a value that was never set and has no default. */
bool config_value_is_unset(const struct config_key *key, const void *base);

void config_value_clear(const struct config_key *key, void *base); /* lists, headers */

/* The value as YAML that reads back: a scalar or a flow list or map. */
void config_value_print(const struct config_key *key, const void *base,
                        struct buffer *out);

#endif
