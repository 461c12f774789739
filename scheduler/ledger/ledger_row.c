#include "scheduler/ledger/ledger_row.h"

#include "common/text.h"
#include "scheduler/ledger/ledger_state.h"

/* ---- writing --------------------------------------------------------------------- */

struct writer {
	char *text;
	size_t size, len;
};

static void
put(struct writer *out, struct span word)
{
	VERIFY(out->len + word.len < out->size);
	memcpy(out->text + out->len, word.data, word.len);
	out->len += word.len;
	out->text[out->len] = '\0';
}

static void
put_number(struct writer *out, uint64_t value, char before)
{
	char digits[TEXT_NUMBER_SIZE + 1];
	size_t len = text_print_unsigned(value, digits + 1);

	digits[0] = before;
	put(out, (struct span){ digits, len + 1 });
}

static void
put_numbers(struct writer *out, const uint64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char digits[TEXT_NUMBER_SIZE];
		size_t len = text_print_unsigned(values[i], digits);

		if (out->len > 0)
			put(out, SPAN(" "));
		put(out, (struct span){ digits, len });
	}
}

static void
put_text(struct writer *out, const char *text)
{
	put(out, SPAN(" "));
	put(out, span_from(text));
}

#define SUMS 13

static void
list_sums(struct ledger_sums *sums, uint64_t *ret_fields[SUMS])
{
	uint64_t *const fields[SUMS] = {
		&sums->calls,     &sums->answers, &sums->prefixed, &sums->hits,
		&sums->read,      &sums->written, &sums->uncached, &sums->output,
		&sums->cost,      &sums->saved,   &sums->unpriced, &sums->unreported,
		&sums->estimated,
	};

	memcpy(ret_fields, fields, sizeof(fields));
}

/* "13 numbers" and for each cause that there is " name:calls,written,full,cost,extra". */
static void
put_sums(struct writer *out, const struct ledger_sums *sums)
{
	struct ledger_sums copy = *sums;
	uint64_t *fields[SUMS];

	list_sums(&copy, fields);
	for (int i = 0; i < SUMS; i++)
		put_numbers(out, fields[i], 1);
	for (int i = 0; i < LEDGER_CAUSE_COUNT; i++) {
		const struct ledger_cause_sum *cause = &sums->causes[i];

		if (cause->calls + cause->written + cause->full == 0)
			continue;
		put_text(out, ledger_cause_text((enum ledger_cause)i));
		put_number(out, cause->calls, ':');
		put_number(out, cause->written, ',');
		put_number(out, cause->full, ',');
		put_number(out, cause->cost, ',');
		put_number(out, cause->extra, ',');
	}
}

/* Numbers stand before the bar, names behind it: they may be any text. */
static void
put_route(struct writer *out, const struct ledger_route *route)
{
	const uint64_t numbers[] = { route->first_ms, route->last_ms,
		                     route->versions_seen };

	put_numbers(out, numbers, ARRAY_SIZE(numbers));
	put_sums(out, &route->ever);
	put(out, SPAN(" |"));
	put(out, span_from(route->name));
}

/* All of it in hex; nothing of a prefix that several jobs have: nobody asks. */
static void
put_sketch(struct writer *out, const struct ledger_version *it)
{
	const uint32_t *const pieces = it->sketch.pieces;
	char hex[ID_HEX_LEN];

	if (it->shared || it->sketch.len == 0) {
		put(out, SPAN(" -"));
		return;
	}
	put(out, SPAN(" "));
	id_encode((struct id128){ it->sketch.len, it->sketch.sum }, hex);
	put(out, (struct span){ hex, ID_HEX_LEN });
	for (uint32_t i = 0; i < LEDGER_SKETCH_PIECES; i += 4) {
		id_encode((struct id128){ (uint64_t)pieces[i] << 32 | pieces[i + 1],
		                          (uint64_t)pieces[i + 2] << 32 | pieces[i + 3] },
		          hex);
		put(out, (struct span){ hex, ID_HEX_LEN });
	}
}

static void
put_ahead(struct writer *out, const struct ledger_ahead *it)
{
	if (it->tokens == 0) {
		put(out, SPAN(" -"));
		return;
	}
	put_number(out, it->tokens, ' ');
	put_number(out, it->cost, ',');
	put_number(out, it->extra, ',');
	put_number(out, it->place, ',');
	put_number(out, it->domain, ',');
	put_number(out, it->hour, ',');
	put(out, SPAN(","));
	put(out, span_from(ledger_cause_text(it->cause)));
}

static void
put_version(struct writer *out, const struct ledger_version *it)
{
	char hex[ID_HEX_LEN];
	const uint64_t numbers[] = {
		it->number,  it->tokens,  it->place,      it->domain,      it->first_ms,
		it->last_ms, it->answers, it->hits,       it->prefixed,    it->writes,
		it->read,    it->written, it->written_ms, it->readable_ms, it->hit_ms,
		it->used_ms, it->life_ms, it->model,      it->extra,       it->split,
		it->shared,
	};

	id_encode(it->family, hex);
	put(out, (struct span){ hex, ID_HEX_LEN });
	put_numbers(out, numbers, ARRAY_SIZE(numbers));
	id_encode(it->twin, hex);
	put(out, SPAN(" "));
	put(out, (struct span){ hex, ID_HEX_LEN });
	put_sketch(out, it);
	put_ahead(out, &it->ahead);
}

static void
put_place(struct writer *out, const struct ledger_place *place)
{
	put_numbers(out, &place->last_ms, 1);
	put_sums(out, &place->ever);
	put(out, SPAN(" |"));
	put(out, span_from(place->name));
}

static void
put_rests(struct writer *out, const struct ledger_place *place)
{
	put_numbers(out, &place->ttl_ms, 1);
	for (uint32_t i = 0; i < LEDGER_VIEW_RESTS; i++) {
		put_number(out, place->kept[i], ' ');
		put_number(out, place->gone[i], ',');
	}
}

static void
put_burst(struct writer *out, const struct ledger_burst *it)
{
	char hex[ID_HEX_LEN];
	const uint64_t numbers[] = {
		it->serial,   it->row,      it->place,        it->start_ms,
		it->last_ms,  it->write_ms, it->readable_ms,  it->starts,
		it->hits,     it->writes,   it->extra_writes, it->held_ms,
		it->refusals, it->cost,     it->naive_cost,   it->open,
	};

	id_encode(it->family, hex);
	put(out, (struct span){ hex, ID_HEX_LEN });
	put_numbers(out, numbers, ARRAY_SIZE(numbers));
}

static void
put_hours(struct writer *out, const struct ledger *ledger)
{
	for (uint32_t i = 0; i < LEDGER_HOURS; i++) {
		if (ledger->hours[i].hour == 0)
			continue;
		if (out->len > 0)
			put_number(out, ledger->hours[i].hour, ',');
		else
			put_numbers(out, &ledger->hours[i].hour, 1);
	}
}

/* ---- walking --------------------------------------------------------------------- */

enum {
	STATE,
	TOTAL,
	HOURS_THERE,
	ROUTES,
	VERSIONS = ROUTES + LEDGER_ROWS,
	PLACES = VERSIONS + LEDGER_ROWS * LEDGER_VERSIONS,
	RESTS = PLACES + LEDGER_PLACES + 1,
	BURSTS = RESTS + LEDGER_PLACES + 1,
	HOURS = BURSTS + LEDGER_BURSTS,
	END = HOURS + LEDGER_HOURS * LEDGER_ROWS,
};

static bool
print_state(const struct ledger *ledger, struct writer *field, struct writer *value)
{
	const uint64_t numbers[] = {
		ledger->first_ms,   ledger->gaps,          ledger->gap_ms,
		ledger->hidden,     ledger->bursts_serial, ledger->ahead.calls,
		ledger->ahead.cost, ledger->ahead.used,    ledger->ahead.wasted,
	};

	put(field, SPAN("state"));
	put_numbers(value, numbers, ARRAY_SIZE(numbers));
	return ledger->dirty;
}

static bool
print_hours(const struct ledger *ledger, struct writer *field, struct writer *value)
{
	bool dirty = false;

	for (uint32_t i = 0; i < LEDGER_HOURS; i++)
		dirty |= ledger->hours[i].fresh;
	put(field, SPAN("hours"));
	put_hours(value, ledger);
	return dirty;
}

static void
name(struct writer *field, char kind, uint32_t number)
{
	put(field, (struct span){ &kind, 1 });
	put_number(field, number, ':');
}

static bool
print_version(const struct ledger *ledger, uint32_t at, struct writer *field,
              struct writer *value)
{
	const struct ledger_route *route = &ledger->routes[at / LEDGER_VERSIONS];
	const struct ledger_version *version = &route->versions[at % LEDGER_VERSIONS];

	if (!version->dirty)
		return false;
	name(field, 'v', at / LEDGER_VERSIONS);
	put_number(field, at % LEDGER_VERSIONS, ':');
	put_version(value, version);
	return true;
}

static bool
print_hour(const struct ledger *ledger, uint32_t at, struct writer *field,
           struct writer *value, uint64_t *ret_hour)
{
	const struct ledger_hour *hour = &ledger->hours[at / LEDGER_ROWS];
	uint32_t row = at % LEDGER_ROWS;

	if (!hour->dirty[row] || ledger->routes[row].name[0] == '\0')
		return false;
	*ret_hour = hour->hour;
	put(field, span_from(ledger->routes[row].name));
	put_sums(value, &hour->rows[row]);
	return true;
}

/* Whether there is a field to be written at this place of the walk. */
static bool
print(const struct ledger *ledger, uint32_t at, struct writer *field,
      struct writer *value, uint64_t *ret_hour)
{
	if (at == STATE)
		return print_state(ledger, field, value);
	if (at == HOURS_THERE)
		return print_hours(ledger, field, value);
	if (at == TOTAL) {
		put(field, SPAN("total"));
		put_sums(value, &ledger->total);
		return ledger->dirty;
	}
	if (at >= HOURS)
		return print_hour(ledger, at - HOURS, field, value, ret_hour);
	if (at >= BURSTS) {
		if (!ledger->bursts[at - BURSTS].dirty)
			return false;
		name(field, 'b', at - BURSTS);
		put_burst(value, &ledger->bursts[at - BURSTS]);
		return true;
	}
	if (at >= RESTS) {
		if (!ledger->places[at - RESTS].rests_dirty)
			return false;
		name(field, 'l', at - RESTS);
		put_rests(value, &ledger->places[at - RESTS]);
		return true;
	}
	if (at >= PLACES) {
		if (!ledger->places[at - PLACES].dirty)
			return false;
		name(field, 'p', at - PLACES);
		put_place(value, &ledger->places[at - PLACES]);
		return true;
	}
	if (at >= VERSIONS)
		return print_version(ledger, at - VERSIONS, field, value);
	if (!ledger->routes[at - ROUTES].dirty)
		return false;
	name(field, 'r', at - ROUTES);
	put_route(value, &ledger->routes[at - ROUTES]);
	return true;
}

bool
ledger_row_next(const struct ledger *ledger, uint32_t *cursor, struct ledger_row *ret_row)
{
	while (*cursor < END) {
		struct writer field = { ret_row->field, sizeof(ret_row->field), 0 };
		struct writer value = { ret_row->value, sizeof(ret_row->value), 0 };
		uint32_t at = (*cursor)++;

		/* An hour without a change is passed over as a whole. */
		if (at >= HOURS && (at - HOURS) % LEDGER_ROWS == 0 &&
		    !ledger->hours[(at - HOURS) / LEDGER_ROWS].any_dirty) {
			*cursor = at + LEDGER_ROWS;
			continue;
		}
		ret_row->hour = 0;
		ret_row->field[0] = ret_row->value[0] = '\0';
		if (!print(ledger, at, &field, &value, &ret_row->hour))
			continue;
		ret_row->value_len = value.len;
		return true;
	}
	return false;
}

bool
ledger_row_has_news(const struct ledger *ledger)
{
	return ledger->has_news;
}

void
ledger_row_mark_clean(struct ledger *ledger)
{
	ledger->has_news = false;
	ledger->dirty = false;
	for (uint32_t i = 0; i < LEDGER_ROWS; i++) {
		ledger->routes[i].dirty = false;
		for (uint32_t j = 0; j < LEDGER_VERSIONS; j++)
			ledger->routes[i].versions[j].dirty = false;
	}
	for (uint32_t i = 0; i <= LEDGER_PLACES; i++)
		ledger->places[i].dirty = ledger->places[i].rests_dirty = false;
	for (uint32_t i = 0; i < LEDGER_BURSTS; i++)
		ledger->bursts[i].dirty = false;
	for (uint32_t i = 0; i < LEDGER_HOURS; i++) {
		if (!ledger->hours[i].any_dirty)
			continue;
		ledger->hours[i].any_dirty = false;
		ledger->hours[i].fresh = false;
		memset(ledger->hours[i].dirty, 0, sizeof(ledger->hours[i].dirty));
	}
}
