/* config_models.h - what is known of models without a line in the configuration.
 *
 * Minimum sizes and multipliers as their vendors published them up to autumn 2026; they
 * change, and vendors' own pages disagree, so the file's `models` come first.  A price of
 * 0 means that we do not know it. */
#ifndef COMMON_IO_CONFIG_MODELS_H
#define COMMON_IO_CONFIG_MODELS_H

#include "common/io/config.h"

/* Never NULL: the last entry matches everything. */
const struct config_model *config_models_find(struct span model);

/* The i-th entry, or NULL behind the last. */
const struct config_model *config_models_at(size_t i);

#endif
