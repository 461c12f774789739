#include "tests/sim/producer.h"

#include "tests/sim/producer_body.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	BODY_MAX = 1 << 20,
	FLAWS = 5,
	UNDER_WAY_MAX = 8, /* XADDs that wait for their answers */
	PACK_MAX = 40,
};

#define TAG_ACK    0ull
#define TAG_CANCEL (1ull << 62)
#define TAG_PREFIX (1ull << 61)

const char *
producer_upstream(uint32_t upstream)
{
	return upstream == 0 ? "anthropic" : "openai";
}

size_t
producer_model(uint32_t upstream, uint32_t model, char ret_text[32])
{
	return (size_t)snprintf(ret_text, 32, "%s-%u", producer_upstream(upstream),
	                        model);
}

static void
draw_kind(struct producer_job *job, const struct weather *weather, struct prng *prng)
{
	uint32_t coin = (uint32_t)prng_below(prng, 1000);

	job->kind = PRODUCER_DECLARED;
	if (coin < weather->bad_permille)
		job->kind = PRODUCER_BAD;
	else if (coin < weather->bad_permille + weather->opaque_permille)
		job->kind = PRODUCER_OPAQUE;
	coin = (uint32_t)prng_below(prng, 1000);
	if (job->kind != PRODUCER_DECLARED)
		return;
	if (coin < weather->single_permille)
		job->kind = PRODUCER_SINGLE;
	else if (coin < weather->single_permille + weather->inline_permille)
		job->kind = PRODUCER_INLINE;
	else if (prng_chance(prng, weather->named_permille))
		job->kind = PRODUCER_NAMED;
}

static void
draw_options(struct producer_job *job, const struct weather *weather, struct prng *prng)
{
	job->band = 'n';
	if (prng_chance(prng, weather->band_permille))
		job->band = prng_chance(prng, 500) ? 'h' : 'l';
	job->hold_max_ms = weather->hold_max_ms;
	if (prng_chance(prng, weather->now_permille))
		job->hold_max_ms = prng_between(prng, 1, 2000);
	if (prng_chance(prng, weather->later_permille))
		job->later_ms = prng_between(prng, 1, 80000);
	if (prng_chance(prng, weather->deadline_permille))
		job->deadline_ms = prng_between(prng, 500, 120000);
	if (prng_chance(prng, weather->cancel_permille))
		job->cancel_after_us = prng_between(prng, 1, 60000000);
	if (weather->hasty)
		job->cancel_after_us %= 100000;
	job->reply = prng_chance(prng, weather->reply_permille);
	job->attempts = (uint32_t)prng_between(prng, 1, 4);
	job->flaw = (uint32_t)prng_below(prng, FLAWS);
}

static void
draw_job(struct producer_job *job, uint32_t number, const struct weather *weather,
         struct prng *prng)
{
	bool burst = prng_chance(prng, weather->burst_permille);
	uint64_t at_us = prng_between(prng, 0, weather->arrive_us);

	*job = (struct producer_job){
		.upstream = (uint32_t)prng_below(prng, weather->upstreams_count),
		.model = (uint32_t)prng_below(prng, weather->models_count),
		.system = (uint32_t)prng_below(prng, weather->systems_count),
		.at_us = burst ? 1000000 : 1000000 + at_us,
	};
	if (weather->documents_count > 0 && prng_chance(prng, 700))
		job->document = 1 + (uint32_t)prng_below(prng, weather->documents_count);
	job->pool = job->system % weather->pools_count;
	draw_kind(job, weather, prng);
	draw_options(job, weather, prng);
	if (weather->waves_count > 0) {
		job->system = number % weather->waves_count;
		job->at_us = 1000000 + job->system * weather->wave_us;
	}
}

/* Those that were sent alone before there were packs still come at the same time. */
static void
draw_packs(struct producer *producer)
{
	struct prng prng = producer->prng;

	for (uint32_t i = 0; i < producer->jobs_count; i++)
		producer->jobs[i].packed =
			prng_chance(&prng, producer->weather->packed_permille);
}

static void on_up(void *context);
static void on_down(void *context);
static void on_answer(void *context, uint64_t tag, const struct reply *reply);

void
producer_init(struct producer *producer, struct wire_hub *hub,
              const struct weather *weather, uint64_t seed)
{
	*producer = (struct producer){
		.agenda = hub->agenda,
		.trace = hub->trace,
		.weather = weather,
		.wire = {
			.hub = hub,
			.name = "producer",
			.on_up = on_up,
			.on_down = on_down,
			.on_answer = on_answer,
			.context = producer,
		},
		.jobs_count = weather->jobs_count,
		.body = BUFFER_INIT(BODY_MAX),
		.text = BUFFER_INIT(BODY_MAX),
		.pack = BUFFER_INIT(BODY_MAX),
	};
	prng_init(&producer->prng, seed);
	producer->jobs = calloc(weather->jobs_count, sizeof *producer->jobs);
	VERIFY(producer->jobs);
	for (uint32_t i = 0; i < weather->jobs_count; i++)
		draw_job(&producer->jobs[i], i, weather, &producer->prng);
	draw_packs(producer);
	producer->waiting = weather->jobs_count;
}

void
producer_fini(struct producer *producer)
{
	buffer_fini(&producer->body);
	buffer_fini(&producer->text);
	buffer_fini(&producer->pack);
	free(producer->jobs);
}

bool
producer_is_done(const struct producer *producer)
{
	return producer->waiting == 0;
}

/* Words of one XADD. */
struct words {
	struct span argv[48];
	size_t argc;
	char texts[24][64]; /* of the values */
	size_t texts_count;
};

static void
add(struct words *words, const char *name, struct span value)
{
	words->argv[words->argc++] = span_from(name);
	words->argv[words->argc++] = value;
}

static struct span
print(struct words *words, const char *format, uint64_t number)
{
	char *text = words->texts[words->texts_count++];

	VERIFY(words->texts_count <= ARRAY_SIZE(words->texts));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	(void)snprintf(text, sizeof words->texts[0], format, number);
#pragma GCC diagnostic pop
	return span_from(text);
}

static void
add_options(struct words *words, const struct producer_job *job, uint32_t number,
            bool two_routes)
{
	add(words, "ref", print(words, "%" PRIu64, number));
	if (two_routes) /* families of both stand on one system prompt */
		add(words, "route",
		    print(words,
		          job->document % 2 ? "route-%" PRIu64 "-1"
		                            : "route-%" PRIu64 "-0",
		          job->pool));
	else
		add(words, "route", print(words, "route-%" PRIu64, job->pool));
	add(words, "attempts", print(words, "%" PRIu64, job->attempts));
	if (job->band != 'n')
		add(words, "priority", job->band == 'h' ? SPAN("high") : SPAN("low"));
	if (job->hold_max_ms > 0)
		add(words, "hold_max", print(words, "%" PRIu64 "ms", job->hold_max_ms));
	if (job->later_ms > 0)
		add(words, "not_before", print(words, "+%" PRIu64 "ms", job->later_ms));
	if (job->deadline_ms > 0)
		add(words, "deadline", print(words, "+%" PRIu64 "ms", job->deadline_ms));
	if (job->reply)
		add(words, "reply", print(words, "list%" PRIu64, number % 3));
}

static void
add_shared(struct words *words, const struct producer_job *job)
{
	bool has_system_message = job->upstream != 0;

	if (job->kind != PRODUCER_DECLARED)
		return;
	if (job->document > 0)
		add(words, "shared",
		    has_system_message ? SPAN("messages:2") : SPAN("messages:1"));
	else
		add(words, "shared",
		    has_system_message ? SPAN("messages:1") : SPAN("system"));
}

/* What the world should refuse, each for its own reason. */
static void
add_flaw(struct words *words, const struct producer_job *job, struct span body)
{
	switch (job->flaw) {
	case 0:
		add(words, "body", SPAN("{\"model\":"));
		break;
	case 1:
		add(words, "body", body);
		add(words, "upstream", SPAN("nowhere"));
		break;
	case 2:
		add(words, "body", body);
		add(words, "unique", SPAN("key"));
		break;
	case 3:
		add(words, "body", body);
		add(words, "priority", SPAN("urgent"));
		break;
	default:
		add(words, "body", body);
		add(words, "shared", SPAN("messages:99"));
		break;
	}
}

static void
name_prefix(const struct producer_job *job, char ret_name[48])
{
	(void)snprintf(ret_name, 48, "prefix-%u-%u-%u", job->upstream, job->model,
	               job->system);
}

/* Puts a named prefix through the inbox, ahead of its first job. */
static void
put_prefix(struct producer *producer, const struct producer_job *job)
{
	bool *put = &producer->named_put[job->upstream][job->model][job->system % 8];
	struct words words = { .argv = { SPAN("XADD"), SPAN("warmq:jobs"), SPAN("*") },
		               .argc = 3 };
	char name[48];

	if (*put)
		return;
	*put = true;
	name_prefix(job, name);
	buffer_clear(&producer->text);
	buffer_append_text(&producer->text,
	                   job->upstream == 0 ? "{\"system\":\""
	                                      : "{\"messages\":[{\"role\":\"system\","
	                                        "\"content\":\"");
	producer_body_system(&producer->text, name);
	buffer_append_text(&producer->text, job->upstream == 0 ? "\"}" : "\"}]}");
	add(&words, "put_prefix", span_from(name));
	add(&words, "body", buffer_span(&producer->text));
	wire_send(&producer->wire, TAG_PREFIX, words.argv, words.argc);
}

/* The fields of one job; bytes of the body stay in the producer's buffer. */
static void
fill_words(struct producer *producer, uint32_t number, struct words *words)
{
	struct producer_job *job = &producer->jobs[number];

	producer_body_write(producer, job, number);
	if (job->kind == PRODUCER_NAMED) {
		char *name = words->texts[words->texts_count++];

		put_prefix(producer, job);
		name_prefix(job, name);
		add(words, "prefix", span_from(name));
	}
	if (job->kind != PRODUCER_BAD || job->flaw != 1)
		add(words, "upstream", span_from(producer_upstream(job->upstream)));
	add_options(words, job, number, producer->weather->route_flips > 0);
	add_shared(words, job);
	if (job->kind == PRODUCER_BAD)
		add_flaw(words, job, buffer_span(&producer->body));
	else
		add(words, "body", buffer_span(&producer->body));
}

static void
send_job(struct producer *producer, uint32_t number)
{
	struct words words = { .argv = { SPAN("XADD"), SPAN("warmq:jobs"), SPAN("*") },
		               .argc = 3 };

	fill_words(producer, number, &words);
	producer->jobs[number].sent = true;
	producer->jobs[number].first = number;
	producer->jobs[number].part = 0;
	wire_send(&producer->wire, number, words.argv, words.argc);
}

/* ---- packs: many jobs in one entry ------------------------------------------------ */

static void
write_json_object(struct buffer *out, const struct words *words)
{
	for (size_t i = 0; i < words->argc; i += 2) {
		struct span value = words->argv[i + 1];
		bool is_json = value.len > 1 && value.data[0] == '{' &&
		               value.data[value.len - 1] == '}';

		buffer_append_text(out, i > 0 ? "," : "{");
		buffer_append_format(out, "\"%.*s\":", (int)words->argv[i].len,
		                     words->argv[i].data);
		if (is_json) {
			buffer_append(out, value);
			continue;
		}
		buffer_append_byte(out, '"');
		for (size_t k = 0; k < value.len; k++) {
			if (value.data[k] == '"' || value.data[k] == '\\')
				buffer_append_byte(out, '\\');
			buffer_append_byte(out, value.data[k]);
		}
		buffer_append_byte(out, '"');
	}
	buffer_append_byte(out, '}');
}

/* MessagePack: a type byte and so many bytes of a length. */
static void
write_head(struct buffer *out, int type, size_t len, int bytes)
{
	buffer_append_byte(out, (char)type);
	for (int i = bytes - 1; i >= 0; i--)
		buffer_append_byte(out, (char)(len >> (8 * i) & 0xff));
}

static void
write_map(struct buffer *out, const struct words *words)
{
	write_head(out, 0xde, words->argc / 2, 2);
	for (size_t i = 0; i < words->argc; i++) {
		write_head(out, 0xdb, words->argv[i].len, 4);
		buffer_append(out, words->argv[i]);
	}
}

static bool
is_due(const struct producer *producer, const struct producer_job *job)
{
	return !job->sent && job->at_us <= producer->agenda->now_us;
}

/* All packed ones that are due, up to some; JSON and MessagePack in turns. */
static void
send_pack(struct producer *producer, uint32_t number)
{
	uint32_t members[PACK_MAX], count = 0;
	bool as_json = number % 2 == 0;
	struct buffer *out = &producer->pack;
	struct span argv[5] = { SPAN("XADD"), SPAN("warmq:jobs"), SPAN("*"),
		                as_json ? SPAN("json") : SPAN("m") };

	for (uint32_t i = number; i < producer->jobs_count && count < PACK_MAX; i++) {
		if (producer->jobs[i].packed && is_due(producer, &producer->jobs[i]))
			members[count++] = i;
	}
	buffer_clear(out);
	if (!as_json)
		write_head(out, 0xdc, count, 2);
	for (uint32_t i = 0; i < count; i++) {
		struct producer_job *job = &producer->jobs[members[i]];
		struct words words = { 0 };

		fill_words(producer, members[i], &words);
		job->sent = true;
		job->first = number;
		job->part = i + 1;
		if (as_json)
			buffer_append_byte(out, i > 0 ? ',' : '[');
		if (as_json)
			write_json_object(out, &words);
		else
			write_map(out, &words);
	}
	if (as_json)
		buffer_append_byte(out, ']');
	argv[4] = buffer_span(out);
	wire_send(&producer->wire, number, argv, ARRAY_SIZE(argv));
}

static void
send_all_due(struct producer *producer)
{
	uint32_t under_way = 0;

	if (!wire_is_up(&producer->wire))
		return;
	for (uint32_t i = 0; i < producer->jobs_count; i++)
		under_way += producer->jobs[i].sent && !producer->jobs[i].acked &&
		             producer->jobs[i].part <= 1;
	for (uint32_t i = 0; i < producer->jobs_count; i++) {
		struct producer_job *job = &producer->jobs[i];

		if (under_way >= UNDER_WAY_MAX)
			return;
		if (!is_due(producer, job))
			continue;
		if (job->packed)
			send_pack(producer, i);
		else
			send_job(producer, i);
		under_way++;
	}
}

static void
on_arrival(void *context, uint64_t number)
{
	send_all_due(context);
}

static void
on_cancel(void *context, uint64_t number)
{
	struct producer *producer = context;
	struct producer_job *job = &producer->jobs[number];
	const struct span argv[] = {
		SPAN("FCALL"), SPAN("warmq_cancel"),  SPAN("1"), SPAN("warmq:meta"),
		SPAN("1"),     span_from(job->entry),
	};

	trace_line(producer->trace, "producer cancels %s", job->entry);
	wire_send(&producer->wire, TAG_CANCEL, argv, ARRAY_SIZE(argv));
}

static void
take_id(struct producer *producer, uint32_t number, struct span entry)
{
	struct producer_job *job = &producer->jobs[number];
	size_t len = (size_t)snprintf(job->entry, sizeof job->entry, "%.*s",
	                              (int)entry.len, entry.data);

	job->acked = true;
	producer->waiting--;
	if (job->part > 0)
		(void)snprintf(job->entry + len, sizeof job->entry - len, ".%u",
		               job->part);
	if (job->cancel_after_us > 0)
		agenda_in(producer->agenda, job->cancel_after_us, on_cancel, producer,
		          number);
}

static void
on_answer(void *context, uint64_t tag, const struct reply *reply)
{
	struct producer *producer = context;

	if (tag >= TAG_PREFIX || reply->kind != REPLY_TEXT)
		return;
	for (uint32_t i = (uint32_t)tag; i < producer->jobs_count; i++) {
		const struct producer_job *job = &producer->jobs[i];

		if (job->sent && !job->acked && job->first == tag)
			take_id(producer, i, reply->text);
	}
	send_all_due(producer);
}

static void
on_reconnect(void *context, uint64_t number)
{
	struct producer *producer = context;

	producer->reconnecting = false;
	if (!producer->wire.connection)
		wire_open(&producer->wire);
}

static void
reconnect(struct producer *producer)
{
	if (producer->reconnecting)
		return;
	producer->reconnecting = true;
	agenda_in(producer->agenda, prng_between(&producer->prng, 10000, 1000000),
	          on_reconnect, producer, 0);
}

static void
on_up(void *context)
{
	send_all_due(context);
}

/* What was not acknowledged is sent again. */
static void
on_down(void *context)
{
	struct producer *producer = context;

	for (uint32_t i = 0; i < producer->jobs_count; i++)
		producer->jobs[i].sent = producer->jobs[i].acked;
	memset(producer->named_put, 0, sizeof producer->named_put);
	reconnect(producer);
}

/* A connection that says nothing for so long is given up. */
static void
on_doubt(void *context, uint64_t number)
{
	struct producer *producer = context;
	bool waits = false;

	for (uint32_t i = 0; i < producer->jobs_count; i++)
		waits = waits || (producer->jobs[i].sent && !producer->jobs[i].acked);
	if (waits && number == 1) {
		wire_close(&producer->wire);
		on_down(producer);
		number = 0;
	}
	agenda_in(producer->agenda, 2500000, on_doubt, producer, waits);
}

void
producer_start(struct producer *producer)
{
	wire_open(&producer->wire);
	for (uint32_t i = 0; i < producer->jobs_count; i++)
		agenda_at(producer->agenda, producer->jobs[i].at_us, on_arrival, producer,
		          i);
	agenda_in(producer->agenda, 2500000, on_doubt, producer, 0);
}
