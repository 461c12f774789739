/* How a request arrives must not matter: fed at once or in pieces, the parser comes to
 * the same end, with the same headers and the same body. */
#include "common/prng.h"
#include "provider/http_request.h"
#include "tests/fuzz/fuzz.h"

#define BODY_MAX 300

/* Feeds all bytes, in pieces of at most `size` drawn ones (0: at once). */
static int
feed(struct http_request *request, struct span bytes, uint64_t size, size_t *ret_used)
{
	struct prng prng;
	size_t used = 0;
	int err = ERR_AGAIN;

	prng_init(&prng, size);
	while (err == ERR_AGAIN && used < bytes.len) {
		size_t left = bytes.len - used;
		size_t piece = size > 0 ? prng_between(&prng, 1, size) : left;
		size_t len = MIN(left, piece);
		size_t taken;

		err = http_request_feed(request, (struct span){ bytes.data + used, len },
		                        &taken);
		VERIFY(taken <= len);
		VERIFY(err != ERR_AGAIN || taken == len);
		used += taken;
	}
	*ret_used = used;
	return err;
}

static void
compare(const struct http_request *a, const struct http_request *b)
{
	VERIFY(span_equals(a->method, b->method));
	VERIFY(span_equals(a->target, b->target));
	VERIFY(a->headers_count == b->headers_count);
	for (size_t i = 0; i < a->headers_count; i++) {
		VERIFY(span_equals(a->headers[i].name, b->headers[i].name));
		VERIFY(span_equals(a->headers[i].value, b->headers[i].value));
	}
	VERIFY(a->too_large == b->too_large);
	VERIFY(a->too_large || span_equals(buffer_span(&a->body), buffer_span(&b->body)));
	VERIFY(a->body.len <= BODY_MAX);
	VERIFY(a->keep_alive == b->keep_alive);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_request whole, pieces;
	size_t whole_used, pieces_used;
	int whole_err, pieces_err;

	http_request_init(&whole, BODY_MAX);
	whole_err = feed(&whole, fuzz_span(data, size), 0, &whole_used);
	for (uint64_t piece = 1; piece <= 64; piece *= 8) {
		http_request_init(&pieces, BODY_MAX);
		pieces_err = feed(&pieces, fuzz_span(data, size), piece, &pieces_used);
		VERIFY(pieces_err == whole_err);
		if (whole_err == 0) {
			VERIFY(pieces_used == whole_used);
			compare(&whole, &pieces);
		}
		http_request_fini(&pieces);
	}
	http_request_fini(&whole);
	return 0;
}
