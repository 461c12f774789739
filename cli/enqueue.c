#include "cli/file.h"
#include "cli/store.h"
#include "cli/verbs.h"
#include "cli/wait.h"

#include "common/buffer.h"
#include "common/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define BODY_SIZE_MAX   ((size_t)64 << 20)
#define IN_FLIGHT_BYTES ((size_t)4 << 20) /* sent before the answers are read */
#define IN_FLIGHT_MAX   256
#define REFUSED_SIZE    8192 /* text of line numbers, of at most IN_FLIGHT_MAX */

struct args {
	struct cli cli;
	const char *upstream, *body, *file, *prefix, *route, *shared, *priority;
	const char *not_before, *deadline, *timeout, *attempts, *hold_max, *handler;
	const char *reply, *ref, *markers, *conversation, *betas, *trace;
	bool wait;
	uint64_t timeout_wait_ms;
};

/* Options that are fields of the envelope, sent as they are: the scheduler checks them
 * and says what is wrong with a job, here as for any other producer. */
#define FIELD(name, member, placeholder, text)                                       \
	{                                                                            \
		name, OPTION_TEXT, offsetof(struct args, member), NULL, placeholder, \
			text                                                         \
	}

static const struct option_spec specs[] = {
	FIELD("upstream", upstream, "NAME",
	      "where the request goes, or on whose account; needed"),
	FIELD("body", body, "JSON", "the request; @FILE reads a file, - standard input"),
	FIELD("file", file, "FILE", "one request a line (JSON lines); - standard input"),
	FIELD("prefix", prefix, "NAME", "a stored prefix, or NAME@HASH"),
	FIELD("route", route, "NAME", "your name for this kind of traffic"),
	FIELD("shared", shared, "WHAT", "tools, system, messages:N, marker:K or bytes:N"),
	FIELD("handler", handler, "NAME",
	      "run the workers' handler instead of a request"),
	FIELD("priority", priority, "WORD", "high, normal or low"),
	FIELD("not-before", not_before, "TIME",
	      "do not start earlier: +30m, or 2026-12-01T06:00:00Z"),
	FIELD("deadline", deadline, "TIME", "give up then; the same forms"),
	FIELD("timeout", timeout, "TIME", "of one attempt, such as 10m"),
	FIELD("attempts", attempts, "N", "real failures before it is dead"),
	FIELD("hold-max", hold_max, "TIME",
	      "longest wait for a prefix to be written, such as 30s"),
	FIELD("reply", reply, "NAME", "push the result to this list"),
	FIELD("ref", ref, "TEXT", "comes back with the result"),
	FIELD("markers", markers, "WORD", "auto or never"),
	FIELD("conversation", conversation, "TEXT", "jobs of one conversation"),
	FIELD("betas", betas, "LIST", "beta features, comma separated"),
	FIELD("traceparent", trace, "TEXT", "W3C trace context"),
	{ "wait", OPTION_FLAG, offsetof(struct args, wait), NULL, NULL,
	  "wait for the results and print them" },
	{ "wait-timeout", OPTION_DURATION, offsetof(struct args, timeout_wait_ms), "15m",
	  "TIME", "how long --wait waits" },
	CLI_OPTIONS(struct args),
};

struct field {
	const char *name;
	const char *value;
};

#define FIELDS_MAX 20

static size_t
collect_fields(const struct args *args, struct field fields[FIELDS_MAX])
{
	const struct field all[] = {
		{ "upstream", args->upstream },
		{ "prefix", args->prefix },
		{ "route", args->route },
		{ "shared", args->shared },
		{ "handler", args->handler },
		{ "priority", args->priority },
		{ "not_before", args->not_before },
		{ "deadline", args->deadline },
		{ "timeout", args->timeout },
		{ "attempts", args->attempts },
		{ "hold_max", args->hold_max },
		{ "reply", args->reply },
		{ "ref", args->ref },
		{ "markers", args->markers },
		{ "conversation", args->conversation },
		{ "betas", args->betas },
		{ "traceparent", args->trace },
	};
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i].value)
			fields[count++] = all[i];
	return count;
}

struct sender {
	struct store *store;
	const struct field *fields;
	size_t fields_count;
	json_t *ids;
	size_t in_flight, in_flight_bytes;
	size_t line; /* of the file, that is being sent; 0 without one */
	size_t lines[IN_FLIGHT_MAX];
	char refused[REFUSED_SIZE]; /* "129-160, 165" */
	size_t refused_from, refused_to;
	size_t answered; /* of those in flight, when the connection was lost */
};

static void
refused_write(struct sender *sender)
{
	size_t len = strlen(sender->refused), first = sender->refused_from;

	if (first > 0)
		(void)snprintf(sender->refused + len, REFUSED_SIZE - len,
		               first == sender->refused_to ? "%s%zu" : "%s%zu-%zu",
		               len > 0 ? ", " : "", first, sender->refused_to);
}

static void
refused_add(struct sender *sender, size_t line)
{
	if (sender->refused_from == 0 || line != sender->refused_to + 1) {
		refused_write(sender);
		sender->refused_from = line;
	}
	sender->refused_to = line;
}

/* Reads the answers to all that was sent: also behind one that was refused, others may be
 * in the queue. */
static int
collect_answers(struct sender *sender)
{
	int result = CLI_OK;

	for (size_t i = 0; sender->in_flight > 0; i++) {
		const struct reply *reply;
		struct span id;
		int code = result == CLI_OK
		                   ? store_next(sender->store, 0, "XADD", "jobs", &reply)
		                   : store_next_try(sender->store, 0, &reply);

		sender->answered = i;
		if (code == CLI_UNREACHABLE)
			return code;
		sender->in_flight--;
		if (code != CLI_OK || reply->kind == REPLY_ERROR) {
			result = CLI_FAILED;
			refused_add(sender, sender->lines[i]);
			continue;
		}
		id = reply_text(reply);
		json_array_append_new(sender->ids, json_stringn(id.data, id.len));
	}
	sender->in_flight_bytes = 0;
	return result;
}

/* Who sends a whole file again pays for what of it is in the queue already. */
static void
tell_rest(struct sender *sender, enum cli_exit code)
{
	size_t count = json_array_size(sender->ids);

	if (sender->line == 0) {
		if (code == CLI_UNREACHABLE && sender->in_flight > 0)
			(void)cli_fail(code,
			               "The job may be in the queue or not: who sends "
			               "it again may pay for it twice.");
		return;
	}
	refused_write(sender);
	if (sender->refused[0])
		(void)cli_fail(code, "Redis has refused lines %s.", sender->refused);
	if (code == CLI_UNREACHABLE)
		(void)cli_fail(code, "Lines %zu to %zu may be in the queue or not.",
		               sender->lines[sender->answered], sender->line);
	(void)cli_fail(
		code,
		"%zu jobs are in the queue, with the ids that are printed; of the "
		"lines behind %zu there is none. Do not send the whole file again.",
		count, sender->line);
}

static int
send_job(struct sender *sender, struct span body)
{
	struct span words[2 * FIELDS_MAX + 8];
	size_t count = 0;
	int code;

	words[count++] = SPAN("XADD");
	words[count++] = store_key(sender->store, "jobs", (struct span){ 0 });
	words[count++] = SPAN("*");
	for (size_t i = 0; i < sender->fields_count; i++) {
		words[count++] = span_from(sender->fields[i].name);
		words[count++] = span_from(sender->fields[i].value);
	}
	words[count++] = SPAN("body");
	words[count++] = body;
	sender->lines[sender->in_flight++] = sender->line;
	sender->answered = 0;
	code = store_append(sender->store, words, count);
	if (code != CLI_OK)
		return code;
	sender->in_flight_bytes += body.len;
	if (sender->in_flight < IN_FLIGHT_MAX &&
	    sender->in_flight_bytes < IN_FLIGHT_BYTES)
		return CLI_OK;
	return collect_answers(sender);
}

static int
send_lines(struct sender *sender, struct span text)
{
	while (text.len > 0) {
		const char *end = memchr(text.data, '\n', text.len);
		size_t len = end ? (size_t)(end - text.data) : text.len;
		struct span line = { text.data, len };
		int code;

		text.data += MIN(len + 1, text.len);
		text.len -= MIN(len + 1, text.len);
		sender->line++;
		if (line.len > 0 && line.data[line.len - 1] == '\r')
			line.len--;
		if (line.len == 0)
			continue;
		code = send_job(sender, line);
		if (code != CLI_OK)
			return code;
	}
	return CLI_OK;
}

static int
send_all(struct sender *sender, const struct args *args, struct buffer *text)
{
	int code;

	if (args->file) {
		code = file_read(args->file, text);
		if (code == CLI_OK)
			code = send_lines(sender, buffer_span(text));
	} else if (args->body && (args->body[0] == '@' || strcmp(args->body, "-") == 0)) {
		code = file_read(args->body[0] == '@' ? args->body + 1 : "-", text);
		if (code == CLI_OK)
			code = send_job(sender, buffer_span(text));
	} else {
		code = send_job(sender, span_from(args->body ? args->body : "{}"));
	}
	return code == CLI_OK ? collect_answers(sender) : code;
}

static void
print_ids(const struct args *args, json_t *ids)
{
	const json_t *id;
	size_t i;

	if (args->cli.json) {
		cli_print_json(json_pack("{s:O}", "ids", ids));
		return;
	}
	json_array_foreach(ids, i, id) puts(json_string_value(id));
}

static int
run(struct cli *cli)
{
	struct args *args = (struct args *)cli;
	struct field fields[FIELDS_MAX];
	struct buffer text = BUFFER_INIT(BODY_SIZE_MAX);
	struct sender sender = { .fields = fields };
	const struct reply *reply;
	int code;

	if (!args->upstream)
		return cli_fail(CLI_USAGE, "Say where it goes: --upstream NAME (a name "
		                           "under `upstreams` in warmq.yaml).");
	if (!args->body && !args->file && !args->handler)
		return cli_fail(CLI_USAGE, "Say what to send: --body JSON, --body @FILE, "
		                           "or --file FILE with one request a line.");
	if (args->wait && args->reply)
		return cli_fail(CLI_USAGE, "--wait reads stored results; a job with "
		                           "--reply has none. Use one of the two.");
	sender.fields_count = collect_fields(args, fields);
	code = store_open(cli, &sender.store);
	if (code != CLI_OK)
		return code;
	sender.ids = json_array();
	/* Whether anybody answers, before anything is sent of which nobody knows then. */
	code = STORE_TRY(sender.store, &reply, SPAN("PING"));
	if (code == CLI_OK)
		code = send_all(&sender, args, &text);
	if (code != CLI_OK)
		tell_rest(&sender, (enum cli_exit)code);
	if (code == CLI_OK ? !args->wait : json_array_size(sender.ids) > 0)
		print_ids(args, sender.ids);
	if (code == CLI_OK && args->wait)
		code = wait_for(sender.store, cli, sender.ids, args->timeout_wait_ms);
	json_decref(sender.ids);
	buffer_fini(&text);
	store_close(sender.store);
	return code;
}

static const char details[] =
	"Prints the id of each job. A mistake in a field does not fail here: the\n"
	"job ends dead with the reason, which `warmq job show ID` tells.\n"
	"\n"
	"  warmq enqueue --upstream claude --body @ask.json --wait\n"
	"  warmq enqueue --upstream claude --file asks.jsonl --route triage";

const struct verb verb_enqueue = {
	.name = "enqueue",
	.usage = "enqueue --upstream NAME --body JSON|--file FILE [--wait] [options]",
	.summary = "put jobs into the queue",
	.details = details,
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run,
	.common = true,
};
