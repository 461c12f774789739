#include "scheduler/ledger/ledger_row.h"

#include "common/text.h"
#include "scheduler/ledger/ledger_state.h"

/* ---- words ----------------------------------------------------------------------- */

static bool
cut(struct span *text, char separator, struct span *ret_word)
{
	const char *end;

	if (text->len == 0)
		return false;
	end = memchr(text->data, separator, text->len);
	ret_word->data = text->data;
	ret_word->len = end ? (size_t)(end - text->data) : text->len;
	text->data += ret_word->len;
	text->len -= ret_word->len;
	if (end) {
		text->data++;
		text->len--;
	}
	return true;
}

static int
read_numbers(struct span *text, char separator, uint64_t *ret_values, size_t count)
{
	struct span word;

	for (size_t i = 0; i < count; i++)
		if (!cut(text, separator, &word) ||
		    text_parse_unsigned(word, UINT64_MAX, &ret_values[i]) < 0)
			return ERR_MALFORMED;
	return 0;
}

static int
read_id(struct span *text, struct id128 *ret_id)
{
	struct span word;

	if (!cut(text, ' ', &word))
		return ERR_MALFORMED;
	return id_decode(word, ret_id);
}

/* LEDGER_CAUSE_COUNT if there is none of that name. */
static enum ledger_cause
find_cause(struct span name)
{
	for (int i = 0; i < LEDGER_CAUSE_COUNT; i++)
		if (span_equals(name, span_from(ledger_cause_text((enum ledger_cause)i))))
			return (enum ledger_cause)i;
	return LEDGER_CAUSE_COUNT;
}

static int
read_cause(struct span word, struct ledger_sums *sums)
{
	enum ledger_cause cause;
	struct span name;
	uint64_t values[5];

	if (!cut(&word, ':', &name) || read_numbers(&word, ',', values, 5) < 0)
		return ERR_MALFORMED;
	cause = find_cause(name);
	if (cause < LEDGER_CAUSE_COUNT)
		sums->causes[cause] = (struct ledger_cause_sum){
			values[0], values[1], values[2], values[3], values[4],
		};
	return 0;
}

/* Up to a bar, or to the end. */
static int
read_sums(struct span *text, struct ledger_sums *ret_sums)
{
	struct ledger_sums sums = { 0 };
	uint64_t v[13];
	struct span word;

	if (read_numbers(text, ' ', v, ARRAY_SIZE(v)) < 0)
		return ERR_MALFORMED;
	sums = (struct ledger_sums){
		.calls = v[0],
		.answers = v[1],
		.prefixed = v[2],
		.hits = v[3],
		.read = v[4],
		.written = v[5],
		.uncached = v[6],
		.output = v[7],
		.cost = v[8],
		.saved = v[9],
		.unpriced = v[10],
		.unreported = v[11],
		.estimated = v[12],
	};
	while (text->len > 0 && text->data[0] != '|') {
		if (!cut(text, ' ', &word) || read_cause(word, &sums) < 0)
			return ERR_MALFORMED;
	}
	*ret_sums = sums;
	return 0;
}

static int
read_name(struct span text, char name[LEDGER_NAME_SIZE])
{
	if (text.len < 2 || text.data[0] != '|' || text.len > LEDGER_NAME_SIZE)
		return ERR_MALFORMED;
	memset(name, 0, LEDGER_NAME_SIZE);
	memcpy(name, text.data + 1, text.len - 1);
	return 0;
}

/* ---- fields of the head ---------------------------------------------------------- */

static int
load_state(struct ledger *ledger, struct span value)
{
	uint64_t v[5], ahead[4] = { 0 };

	if (read_numbers(&value, ' ', v, ARRAY_SIZE(v)) < 0 ||
	    (value.len > 0 && read_numbers(&value, ' ', ahead, ARRAY_SIZE(ahead)) < 0))
		return ERR_MALFORMED;
	ledger->first_ms = v[0];
	ledger->gaps = v[1];
	ledger->gap_ms = v[2];
	ledger->hidden = v[3];
	ledger->bursts_serial = v[4];
	ledger->ahead =
		(struct ledger_view_ahead){ ahead[0], ahead[1], ahead[2], ahead[3] };
	return 0;
}

static int
load_hours(struct ledger *ledger, struct span value)
{
	uint64_t hour;

	while (value.len > 0) {
		if (read_numbers(&value, ',', &hour, 1) < 0)
			return ERR_MALFORMED;
		if (hour > ledger->hours[hour % LEDGER_HOURS].hour)
			ledger->hours[hour % LEDGER_HOURS].hour = hour;
	}
	return 0;
}

static int
load_route(struct ledger_route *route, struct span value)
{
	uint64_t v[3];

	if (read_numbers(&value, ' ', v, ARRAY_SIZE(v)) < 0 ||
	    read_sums(&value, &route->ever) < 0 || read_name(value, route->name) < 0)
		return ERR_MALFORMED;
	route->first_ms = v[0];
	route->last_ms = v[1];
	route->versions_seen = (uint32_t)v[2];
	return 0;
}

/* "-", or nothing in rows of older releases: not known. */
static bool
is_absent(struct span word)
{
	return word.len == 0 || span_equals(word, SPAN("-"));
}

static int
read_sketch(struct span word, struct ledger_sketch *ret_sketch)
{
	struct id128 part[1 + LEDGER_SKETCH_PIECES / 4];

	*ret_sketch = (struct ledger_sketch){ 0 };
	if (is_absent(word))
		return 0;
	if (word.len != ARRAY_SIZE(part) * ID_HEX_LEN)
		return ERR_MALFORMED;
	for (size_t i = 0; i < ARRAY_SIZE(part); i++)
		if (id_decode((struct span){ word.data + i * ID_HEX_LEN, ID_HEX_LEN },
		              &part[i]) < 0)
			return ERR_MALFORMED;
	ret_sketch->len = (uint32_t)part[0].high;
	ret_sketch->sum = (uint32_t)part[0].low;
	for (uint32_t i = 0; i < LEDGER_SKETCH_PIECES; i += 4) {
		struct id128 four = part[1 + i / 4];

		ret_sketch->pieces[i] = (uint32_t)(four.high >> 32);
		ret_sketch->pieces[i + 1] = (uint32_t)four.high;
		ret_sketch->pieces[i + 2] = (uint32_t)(four.low >> 32);
		ret_sketch->pieces[i + 3] = (uint32_t)four.low;
	}
	return 0;
}

static int
read_ahead(struct span word, struct ledger_ahead *ret_ahead)
{
	uint64_t v[6];

	*ret_ahead = (struct ledger_ahead){ 0 };
	if (is_absent(word))
		return 0;
	if (read_numbers(&word, ',', v, ARRAY_SIZE(v)) < 0 || v[3] > LEDGER_PLACES ||
	    find_cause(word) == LEDGER_CAUSE_COUNT)
		return ERR_MALFORMED;
	*ret_ahead = (struct ledger_ahead){
		.tokens = v[0],
		.cost = v[1],
		.extra = v[2],
		.place = (uint32_t)v[3],
		.domain = (uint32_t)v[4],
		.hour = v[5],
		.cause = find_cause(word),
	};
	return 0;
}

static int
load_version(struct ledger *ledger, uint32_t row, uint32_t at, struct span value)
{
	struct span sketch_word = { "", 0 }, ahead_word = { "", 0 };
	struct ledger_sketch sketch;
	struct ledger_ahead ahead;
	struct id128 family, twin;
	uint64_t v[21];

	if (read_id(&value, &family) < 0 ||
	    read_numbers(&value, ' ', v, ARRAY_SIZE(v)) < 0 || v[2] > LEDGER_PLACES)
		return ERR_MALFORMED;
	if (read_id(&value, &twin) < 0 || id_is_none(twin))
		twin = family; /* written before there were twins */
	(void)cut(&value, ' ', &sketch_word);
	(void)cut(&value, ' ', &ahead_word);
	if (read_sketch(sketch_word, &sketch) < 0 || read_ahead(ahead_word, &ahead) < 0)
		return ERR_MALFORMED;
	ahead.family = family;
	ahead.row = row;
	ledger->routes[row].versions[at] = (struct ledger_version){
		.family = family,
		.twin = twin,
		.number = (uint32_t)v[0],
		.tokens = (uint32_t)v[1],
		.place = (uint32_t)v[2],
		.domain = (uint32_t)v[3],
		.first_ms = v[4],
		.last_ms = v[5],
		.answers = v[6],
		.hits = v[7],
		.prefixed = v[8],
		.writes = v[9],
		.read = v[10],
		.written = v[11],
		.written_ms = v[12],
		.readable_ms = v[13],
		.hit_ms = v[14],
		.used_ms = v[15],
		.life_ms = v[16],
		.model = v[17],
		.extra = v[18],
		.split = v[19],
		.shared = v[20],
		.sketch = sketch,
		.ahead = ahead,
	};
	return 0;
}

static int
load_place(struct ledger_place *place, struct span value)
{
	if (read_numbers(&value, ' ', &place->last_ms, 1) < 0 ||
	    read_sums(&value, &place->ever) < 0)
		return ERR_MALFORMED;
	return read_name(value, place->name);
}

static int
load_rests(struct ledger_place *place, struct span value)
{
	uint64_t ttl_ms, kept[LEDGER_VIEW_RESTS], gone[LEDGER_VIEW_RESTS];
	struct span word;

	if (read_numbers(&value, ' ', &ttl_ms, 1) < 0)
		return ERR_MALFORMED;
	for (uint32_t i = 0; i < LEDGER_VIEW_RESTS; i++)
		if (!cut(&value, ' ', &word) ||
		    read_numbers(&word, ',', &kept[i], 1) < 0 ||
		    read_numbers(&word, ',', &gone[i], 1) < 0)
			return ERR_MALFORMED;
	place->ttl_ms = ttl_ms;
	memcpy(place->kept, kept, sizeof(kept));
	memcpy(place->gone, gone, sizeof(gone));
	return 0;
}

static int
load_burst(struct ledger_burst *burst, struct span value)
{
	struct id128 family;
	uint64_t v[16];

	if (read_id(&value, &family) < 0 ||
	    read_numbers(&value, ' ', v, ARRAY_SIZE(v)) < 0 || v[1] >= LEDGER_ROWS ||
	    v[2] > LEDGER_PLACES)
		return ERR_MALFORMED;
	*burst = (struct ledger_burst){
		.family = family,
		.serial = v[0],
		.row = (uint32_t)v[1],
		.place = (uint32_t)v[2],
		.start_ms = v[3],
		.last_ms = v[4],
		.write_ms = v[5],
		.readable_ms = v[6],
		.starts = v[7],
		.hits = v[8],
		.writes = v[9],
		.extra_writes = v[10],
		.held_ms = v[11],
		.refusals = v[12],
		.cost = v[13],
		.naive_cost = v[14],
		.open = v[15],
	};
	return 0;
}

/* "r:3", "v:3:7" */
static int
load_numbered(struct ledger *ledger, struct span field, struct span value)
{
	char kind = field.data[0];
	struct span word = { 0 };
	uint64_t i, j = 0;

	(void)cut(&field, ':', &word);
	if (word.len != 1 || read_numbers(&field, ':', &i, 1) < 0)
		return ERR_MALFORMED;
	if (kind == 'v' && read_numbers(&field, ':', &j, 1) < 0)
		return ERR_MALFORMED;
	if (kind == 'r' && i < LEDGER_ROWS)
		return load_route(&ledger->routes[i], value);
	if (kind == 'v' && i < LEDGER_ROWS && j < LEDGER_VERSIONS)
		return load_version(ledger, (uint32_t)i, (uint32_t)j, value);
	if (kind == 'p' && i <= LEDGER_PLACES)
		return load_place(&ledger->places[i], value);
	if (kind == 'l' && i <= LEDGER_PLACES)
		return load_rests(&ledger->places[i], value);
	if (kind == 'b' && i < LEDGER_BURSTS)
		return load_burst(&ledger->bursts[i], value);
	return ERR_UNSUPPORTED;
}

/* ---- fields ---------------------------------------------------------------------- */

static int
load_hour(struct ledger *ledger, uint64_t hour, struct span field, struct span value)
{
	struct ledger_hour *slot = &ledger->hours[hour % LEDGER_HOURS];
	uint32_t row = span_equals(field, SPAN("other"))
	                       ? LEDGER_OTHER
	                       : ledger_route_find(ledger, field);

	/* The row of a route that was given up, or an hour that is too old. */
	if (row == UINT32_MAX || slot->hour != hour)
		return 0;
	return read_sums(&value, &slot->rows[row]);
}

int
ledger_row_load(struct ledger *ledger, uint64_t hour, struct span field,
                struct span value)
{
	if (field.len == 0)
		return ERR_MALFORMED;
	if (hour > 0)
		return load_hour(ledger, hour, field, value);
	if (span_equals(field, SPAN("state")))
		return load_state(ledger, value);
	if (span_equals(field, SPAN("total")))
		return read_sums(&value, &ledger->total);
	if (span_equals(field, SPAN("hours")))
		return load_hours(ledger, value);
	return load_numbered(ledger, field, value);
}

/* The book knows again what the versions knew of their entries. */
static void
recall(struct ledger *ledger, const struct ledger_version *version)
{
	uint64_t where = (uint64_t)version->place << 32 | version->domain;
	struct ledger_entry *entry;

	if (id_is_none(version->family) || version->used_ms == 0)
		return;
	entry = ledger_book_obtain(
		ledger,
		ledger_book_key(version->family, version->place, version->domain));
	entry->written_ms = version->written_ms;
	entry->first_ms = version->readable_ms;
	entry->hit_ms = version->hit_ms;
	entry->used_ms = version->used_ms;
	entry->life_ms = version->life_ms;
	entry->tokens = version->tokens;
	if (version->ahead.place == version->place &&
	    version->ahead.domain == version->domain)
		entry->ahead = version->ahead;
	entry = ledger_book_obtain(
		ledger, ledger_book_key(version->twin, UINT32_MAX, LEDGER_NOWHERE));
	if (entry->used_ms > version->used_ms)
		return; /* a twin at another place was used later */
	entry->where = where;
	entry->used_ms = version->used_ms;
	entry->life_ms = version->life_ms;
}

void
ledger_row_settle(struct ledger *ledger)
{
	for (uint32_t i = 0; i < LEDGER_ROWS; i++)
		for (uint32_t j = 0; j < LEDGER_VERSIONS; j++)
			recall(ledger, &ledger->routes[i].versions[j]);
	/* A burst that is open goes on: its calls find it by its entry. */
	for (uint32_t i = 0; i < LEDGER_BURSTS; i++) {
		const struct ledger_burst *burst = &ledger->bursts[i];
		struct ledger_entry *entry;

		if (burst->serial == 0 || !burst->open)
			continue;
		entry = ledger_book_find(ledger,
		                         ledger_book_key(burst->family, burst->place, 0));
		if (entry)
			entry->burst = *burst;
	}
}

uint64_t
ledger_row_hour(const struct ledger *ledger, uint32_t i)
{
	for (uint32_t at = 0; at < LEDGER_HOURS; at++)
		if (ledger->hours[at].hour > 0 && i-- == 0)
			return ledger->hours[at].hour;
	return 0;
}
