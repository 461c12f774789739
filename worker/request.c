#include "worker/request.h"

#include "worker/model_name.h"

#include <stdio.h>
#include <stdlib.h>

/* What a program of the user's should run is nothing for a provider to be paid for. */
static int
check_handler(const struct run *run, char *ret_why)
{
	struct span name = run->envelope.handler;

	if (name.len == 0)
		return 0;
	(void)snprintf(
		ret_why, REQUEST_WHY_SIZE,
		"The job is for the handler %.*s, and the workers of its pool send "
		"requests: start them with worker.handler, or send it without.",
		(int)MIN(name.len, 64), name.data);
	return ERR_UNSUPPORTED;
}

static int
find_upstream(const struct run *run, struct request *request, char *ret_why)
{
	struct span name = run_upstream(run);

	request->upstream = upstream_find(run->context->upstreams, name);
	if (request->upstream)
		return 0;
	(void)snprintf(ret_why, REQUEST_WHY_SIZE,
	               "This worker's configuration has no upstream %.*s: it needs the "
	               "scheduler's.",
	               (int)MIN(name.len, 64), name.data ? name.data : "");
	return ERR_UNKNOWN_KEY;
}

static struct span
own_value(const struct run *run, struct request *request, int *ret_err)
{
	const struct envelope *envelope = &run->envelope;

	*ret_err = 0;
	if (envelope->body_kind == ENVELOPE_OWN)
		return envelope->body;
	*ret_err = chain_whole(&run->context->chain, request->upstream->dialect,
	                       envelope->body, &request->own);
	return buffer_span(&request->own);
}

/* The segments name the model if there are any, else the job's own part does. */
static void
find_model(const struct run *run, struct request *request, const struct part_own *own)
{
	for (unsigned i = 0; i < run->load->segments_count; i++) {
		struct span model = run->load->segments[i].model;

		if (model.len > 0) {
			request->model = strndup(model.data, model.len);
			return;
		}
	}
	if (!own || request->upstream->dialect == DIALECT_RAW)
		return;
	request->model = model_name_dup(own->tail);
	if (!request->model && run->load->segments_count == 0)
		request->model = model_name_dup(own->own);
}

static void
apply_refusals(const struct run *run, struct request *request,
               struct splice_request *splice)
{
	unsigned refused = refusal_of(&run->context->refusals, request->upstream,
	                              request_model(request));

	if (refused & REFUSAL_MARKERS) {
		splice->markers_never = true;
		request->traits.cache_mode = false;
	}
	if (refused & REFUSAL_CACHE_KEY)
		request->traits.cache_key = false;
	if (refused & REFUSAL_USAGE)
		request->traits.include_usage = false;
	if (refused & REFUSAL_STREAM)
		splice->stream_never = true;
}

/* Never the user's text: the family is a hash.  One shard, see docs/IDENTITY.md. */
static size_t
print_cache_key(const struct run *run, char ret_key[32])
{
	char hex[ID_HEX_LEN];

	id_encode(run->family, hex);
	return (size_t)snprintf(ret_key, 32, "wq-%.16s-0", hex);
}

static int
put_together(const struct run *run, struct request *request, const struct part_own *own,
             char *ret_why)
{
	struct part_px px[PART_NODES_MAX];
	char key[32];
	size_t key_len = print_cache_key(run, key);
	enum splice_refusal refusal = SPLICE_CALL_OK;
	struct splice_request splice = {
		.traits = &request->traits,
		.px = px,
		.px_count = run->load->segments_count,
		.own = own,
		.want = run->marks,
		.markers_never =
			run->envelope.markers == ENVELOPE_MARKERS_NEVER ||
			request->upstream->config->markers == CONFIG_SWITCH_NEVER,
		.cache_key = { key, key_len },
	};
	size_t size = own ? own->own.len + own->tail.len : 0;
	int err;

	for (unsigned i = 0; i < splice.px_count; i++) {
		px[i] = run->load->segments[i].px;
		size += px[i].segment.len;
	}
	/* A large body that grows by doubling is copied once more than it need be. */
	(void)buffer_reserve(&request->body, size + 1024);
	apply_refusals(run, request, &splice);
	if (run_is_ticket(run))
		err = splice_call(&splice, &request->body, &request->report, &refusal);
	else
		err = splice_render(&splice, &request->body, &request->report);
	if (err == 0 && refusal == SPLICE_CALL_OK)
		return buffer_error(&request->body);
	(void)snprintf(ret_why, REQUEST_WHY_SIZE,
	               "The request cannot be put together: %s.",
	               err < 0 ? error_text(err) : splice_refusal_text(refusal));
	return err < 0 ? err : ERR_UNSUPPORTED;
}

/* Somebody changed the dialect of the upstream while jobs waited. */
static int
check_dialect(const struct request *request, const struct part_own *own, char *ret_why)
{
	enum dialect now = request->upstream->dialect;

	if (own->dialect == now)
		return 0;
	(void)snprintf(
		ret_why, REQUEST_WHY_SIZE,
		"The job was admitted for an upstream of the dialect %s, and %s is "
		"of %s in this worker's configuration: give that dialect an "
		"upstream of its own, and retry the job once this one is as it was.",
		dialect_name(own->dialect), request->upstream->config->name,
		dialect_name(now));
	return ERR_MALFORMED;
}

static int
write_body(const struct run *run, struct request *request, char *ret_why)
{
	struct part_own own;
	struct span value;
	int err;

	if (run_is_ticket(run)) {
		find_model(run, request, NULL);
		request->traits =
			upstream_traits(run->context->upstreams, request->upstream,
		                        request_model(request));
		return put_together(run, request, NULL, ret_why);
	}
	value = own_value(run, request, &err);
	if (err == 0)
		err = part_own_read(value, &own);
	if (err < 0) {
		(void)snprintf(ret_why, REQUEST_WHY_SIZE, "The body cannot be read: %s.",
		               error_text(err));
		return err;
	}
	err = check_dialect(request, &own, ret_why);
	if (err < 0)
		return err;
	find_model(run, request, &own);
	request->traits = upstream_traits(run->context->upstreams, request->upstream,
	                                  request_model(request));
	return put_together(run, request, &own, ret_why);
}

static int
check_betas(const struct run *run, struct request *request, char *ret_why)
{
	struct span list = run->envelope.betas;
	struct span beta;

	if (list.len == 0)
		return 0;
	while (protocol_list_next(&list, &beta)) {
		if (upstream_allows_beta(request->upstream, beta))
			continue;
		(void)snprintf(ret_why, REQUEST_WHY_SIZE,
		               "Upstream %s does not allow the beta %.*s: add it to its "
		               "betas, or leave it out of the job.",
		               request->upstream->config->name, (int)MIN(beta.len, 64),
		               beta.data);
		return ERR_UNSUPPORTED;
	}
	(void)buffer_append_text(&request->betas, "anthropic-beta: ");
	return buffer_append(&request->betas, run->envelope.betas);
}

static void
add_header(struct request *request, size_t *count, const char *line)
{
	struct curl_slist *node = &request->headers[*count];

	VERIFY(*count < ARRAY_SIZE(request->headers));
	/* curl only reads it; its type just cannot say so. */
	*node = (struct curl_slist){ .data = (char *)(uintptr_t)line };
	if (*count > 0)
		request->headers[*count - 1].next = node;
	(*count)++;
}

/* The nodes point at lines that exist already, so a key is never copied. */
static int
write_headers(const struct run *run, struct request *request)
{
	size_t count = 0;

	for (size_t i = 0; i < request->upstream->lines_count; i++)
		add_header(request, &count, request->upstream->lines[i]);
	if (request->betas.len > 0)
		add_header(request, &count, buffer_text(&request->betas));
	if (run->envelope.traceparent.len > 0) {
		(void)buffer_append_text(&request->traceparent, "traceparent: ");
		(void)buffer_append(&request->traceparent, run->envelope.traceparent);
		add_header(request, &count, buffer_text(&request->traceparent));
	}
	return buffer_error(&request->traceparent);
}

int
request_build(const struct run *run, struct request *request,
              char ret_why[REQUEST_WHY_SIZE])
{
	int err;

	*request = (struct request){ .upstream = NULL };
	buffer_init(&request->own, REQUEST_BODY_MAX);
	buffer_init(&request->body, REQUEST_BODY_MAX);
	buffer_init(&request->betas, 2048);
	buffer_init(&request->traceparent, 256);
	ret_why[0] = '\0';

	err = check_handler(run, ret_why);
	if (err == 0)
		err = find_upstream(run, request, ret_why);
	if (err == 0)
		err = write_body(run, request, ret_why);
	if (err == 0)
		err = check_betas(run, request, ret_why);
	if (err == 0)
		err = write_headers(run, request);
	if (err == 0)
		return 0;
	if (ret_why[0] == '\0')
		(void)snprintf(ret_why, REQUEST_WHY_SIZE,
		               "The request cannot be put together: %s.",
		               error_text(err));
	request_fini(request);
	return err;
}

void
request_fini(struct request *request)
{
	free(request->model);
	request->model = NULL;
	buffer_fini(&request->own);
	buffer_fini(&request->body);
	buffer_fini(&request->betas);
	buffer_fini(&request->traceparent);
}

struct span
request_model(const struct request *request)
{
	return span_from(request->model);
}
