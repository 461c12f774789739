/* Stored values as Redis could hand them back, damaged: three px values and an own value,
 * each behind a byte 0x1e.  What can be read is written back the same, and rendering it
 * reads nothing outside. */
#include "common/codec/part.h"
#include "common/codec/splice.h"
#include "tests/fuzz/fuzz.h"

static void
check_px(const struct part_px *px)
{
	struct buffer out = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	struct part_px again;

	part_px_write(&out, px);
	VERIFY(part_px_read(buffer_span(&out), &again) == 0);
	VERIFY(again.mark_at == px->mark_at && again.wrap_at == px->wrap_at);
	VERIFY(again.flags == px->flags && again.tokens == px->tokens);
	VERIFY(span_equals(again.segment, px->segment));
	VERIFY(span_equals(again.settings, px->settings));
	buffer_fini(&out);
}

static void
check_own(const struct part_own *own)
{
	struct buffer out = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	struct part_own again;

	part_own_write(&out, own);
	VERIFY(part_own_read(buffer_span(&out), &again) == 0);
	VERIFY(again.explicit_count == own->explicit_count);
	VERIFY(memcmp(again.user, own->user, sizeof own->user) == 0);
	VERIFY(span_equals(again.own, own->own));
	VERIFY(span_equals(again.tail, own->tail));
	buffer_fini(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span rest = fuzz_span(data, size);
	struct part_px px[PART_NODES_MAX];
	struct part_own own;
	struct dialect_traits traits;
	struct splice_request request = { .traits = &traits, .px = px, .want = 7 };
	struct splice_report report;
	enum splice_refusal refusal;
	struct buffer out = BUFFER_INIT(BUFFER_SIZE_DEFAULT);

	while (request.px_count < PART_NODES_MAX) {
		if (part_px_read(fuzz_cut(&rest, '\x1e'), &px[request.px_count]) < 0)
			break;
		check_px(&px[request.px_count++]);
	}
	if (part_own_read(fuzz_cut(&rest, '\x1e'), &own) == 0) {
		check_own(&own);
		traits = *dialect_traits(own.dialect);
		request.own = &own;
		(void)!splice_render(&request, &out, &report);
		traits.call = CALL_ZERO;
		buffer_clear(&out);
		(void)!splice_call(&request, &out, &report, &refusal);
	}
	buffer_fini(&out);
	return 0;
}
