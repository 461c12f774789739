#include "scheduler/ruler_address.h"

#include "common/codec/protocol.h"
#include "scheduler/ruler_note.h"

#define DIGITS     16 /* of a hash */
#define PLACES_MAX 64 /* bits of `elsewhere`; a configuration has no more upstreams */

static void
put_hash(const struct ruler_upstream *upstream, char ret_digits[DIGITS])
{
	struct id_hash hash;
	char hex[ID_HEX_LEN];

	id_hash_init(&hash, upstream->place);
	id_hash_field(&hash, upstream->name);
	id_encode(id_hash_final(&hash), hex);
	memcpy(ret_digits, hex, DIGITS);
}

static bool
has(struct span stored, struct span digits)
{
	struct span word;

	while (protocol_cut(&stored, ' ', &word))
		if (span_equals(word, digits))
			return true;
	return false;
}

void
ruler_address_compare(struct ruler *ruler, struct span stored)
{
	const struct ruler_config *config = ruler->config;
	size_t count = MIN(config->upstreams_count, PLACES_MAX);

	ruler->rebuild.elsewhere = 0;
	ruler->rebuild.addresses_known = stored.len > 0;
	for (size_t i = 0; i < count; i++) {
		char digits[DIGITS];

		put_hash(&config->upstreams[i], digits);
		if (config->upstreams[i].place == 0 ||
		    has(stored, (struct span){ digits, DIGITS }))
			continue;
		ruler->rebuild.elsewhere |= UINT64_C(1) << i;
		if (stored.len > 0)
			ruler_note(ruler, RULER_INFO,
			           "requests of %.*s go elsewhere than before: its "
			           "prefixes are cold there",
			           (int)config->upstreams[i].name.len,
			           config->upstreams[i].name.data);
	}
}

bool
ruler_address_is_new(const struct ruler *ruler, struct span budget)
{
	struct span class_name;
	size_t upstream = ruler_known_budget_parse(&ruler->known, budget, &class_name);

	return ruler->rebuild.addresses_known && upstream < PLACES_MAX &&
	       (ruler->rebuild.elsewhere >> upstream & 1) != 0;
}

void
ruler_address_store(struct ruler *ruler, struct call_list *out)
{
	const struct ruler_config *config = ruler->config;
	struct buffer *text = &ruler->text;

	if (ruler->rebuild.elsewhere == 0)
		return;
	buffer_clear(text);
	for (size_t i = 0; i < config->upstreams_count; i++) {
		char digits[DIGITS];

		put_hash(&config->upstreams[i], digits);
		if (i > 0)
			(void)buffer_append_byte(text, ' ');
		(void)buffer_append(text, (struct span){ digits, DIGITS });
	}
	call_begin(out, ruler_tag(ruler, RULER_CALL_NOTE, 0));
	call_text(out, "HSET");
	protocol_call_key(out, ruler->config->ns, "meta");
	call_text(out, "places");
	call_word(out, buffer_span(text));
}
