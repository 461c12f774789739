#include "provider/model/fault_model.h"

static const char *const texts[FAULT_COUNT] = {
#define X(name, text) [name] = text,
	FAULT_LIST(X)
#undef X
};

void
fault_model_init(struct fault_model *model, uint64_t seed,
                 const struct fault_knobs *knobs)
{
	model->knobs = *knobs;
	prng_init(&model->prng, seed);
}

enum fault
fault_model_draw(struct fault_model *model)
{
	uint64_t draw = prng_below(&model->prng, 1000);

	if (model->knobs.next_count > 0) {
		model->knobs.next_count--;
		return model->knobs.next;
	}
	for (enum fault fault = FAULT_NONE + 1; fault < FAULT_COUNT; fault++) {
		uint32_t permille = model->knobs.permille[fault];

		if (draw < permille)
			return fault;
		draw -= permille;
	}
	return FAULT_NONE;
}

bool
fault_is_before(enum fault fault)
{
	return fault >= FAULT_BAD_REQUEST && fault <= FAULT_HANG;
}

const char *
fault_text(enum fault fault)
{
	VERIFY(fault < FAULT_COUNT);
	return texts[fault];
}
