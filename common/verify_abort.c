/* The daemons' end of a broken promise: name it on stderr, then abort, so that a
 * core dump and a restart follow.  Redis holds the truth; nothing is lost. */
#include "common/base.h"

#include <stdio.h>
#include <stdlib.h>

void
verify_fail(const char *expression, const char *file, int line)
{
	fprintf(stderr, "%s:%d: broken invariant: %s. This is a bug; please report it.\n",
	        file, line, expression);
	abort();
}
