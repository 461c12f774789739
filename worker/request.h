/* request.h - what goes out for one job or ticket: URL, headers, body.
 *
 * The body is spliced from the stored parts by the one function that all jobs of a
 * family share (common/codec/splice.h).  What this upstream's model refused before is not
 * added again. */
#ifndef WORKER_REQUEST_H
#define WORKER_REQUEST_H

#include "common/buffer.h"
#include "common/codec/splice.h"
#include "worker/run.h"

#include <curl/curl.h>

#define REQUEST_BODY_MAX \
	((size_t)544 << 20) /* prefix and own part, each as large as may be */
#define REQUEST_WHY_SIZE 256

struct request {
	const struct upstream *upstream;
	struct dialect_traits traits;
	char *model;       /* as the request names it; NULL if it does not */
	struct buffer own; /* the own value of a job that was not split */
	struct buffer body;
	struct splice_report report;
	struct curl_slist headers[UPSTREAM_HEADERS_MAX + 2];
	struct buffer betas;       /* a header line of the job's own */
	struct buffer traceparent; /* likewise */
};

/* Builds it for a loaded run.  On failure `ret_why` is a sentence for people, and the
 * job cannot be sent: ERR_UNKNOWN_KEY (no such upstream), ERR_UNSUPPORTED (a beta that is
 * not allowed, or no warm-up of its own), ERR_MALFORMED, ERR_LIMIT, ERR_MEMORY.  May be
 * built again after request_fini. */
MUST_USE int request_build(const struct run *run, struct request *ret_request,
                           char ret_why[REQUEST_WHY_SIZE]);
void request_fini(struct request *request);

/* "" if unknown. */
struct span request_model(const struct request *request);

#endif
