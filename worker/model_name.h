/* model_name.h - the model that a piece of a request names. */
#ifndef WORKER_MODEL_NAME_H
#define WORKER_MODEL_NAME_H

#include "common/base.h"

/* The string behind the top-level key "model" of a JSON object, of its beginning (a
 * segment) or of its end (a tail); a malloc()ed copy, or NULL. */
char *model_name_dup(struct span json);

#endif
