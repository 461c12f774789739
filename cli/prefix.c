#include "cli/file.h"
#include "cli/store_walk.h"
#include "cli/verbs.h"

#include "common/buffer.h"
#include "common/codec/chain.h"
#include "common/text.h"

#include <stdio.h>
#include <stdlib.h>

#define PREFIX_SIZE_MAX ((size_t)8 << 20)

struct args {
	struct cli cli;
	const char *dialect;
	bool reveal;
};

#define DIALECT_OPTION                                                               \
	{                                                                            \
		"dialect", OPTION_TEXT, offsetof(struct args, dialect), "anthropic", \
			"NAME", "how to read it: anthropic or openai-chat"           \
	}

static const struct option_spec specs[] = { DIALECT_OPTION, CLI_OPTIONS(struct args) };
static const struct option_spec show_specs[] = {
	DIALECT_OPTION,
	{ "reveal", OPTION_FLAG, offsetof(struct args, reveal), NULL, NULL,
	  "print the text of the prefix, not only its size" },
	CLI_OPTIONS(struct args),
};

static bool
is_prefix_name(const char *name)
{
	return strlen(name) <= TEXT_SAID_MAX && text_is_name(span_from(name));
}

static int
check(const struct args *args, const char *place, struct span content,
      char ret_version[ID_HEX_LEN + 1])
{
	struct chain_error error;
	enum dialect dialect;
	struct id128 version;

	if (dialect_parse(span_from(args->dialect), &dialect) < 0)
		return cli_fail(
			CLI_USAGE,
			"--dialect takes anthropic or openai-chat, not \"%.40s\".",
			args->dialect);
	if (content.len == 0)
		return cli_fail(CLI_FAILED, "%s is empty.", place);
	if (chain_prefix_check(dialect, content, &version, &error) < 0)
		return cli_fail(CLI_FAILED, "%s is no prefix: %s.", place, error.text);
	id_encode(version, ret_version);
	ret_version[ID_HEX_LEN] = '\0';
	return CLI_OK;
}

/* Through the inbox: jobs behind it in the stream get it, jobs before it do not. */
static int
put(struct store *store, const struct args *args, struct span content)
{
	char version[ID_HEX_LEN + 1];
	const struct reply *reply;
	int code = check(args, args->cli.argv[1], content, version);

	if (code == CLI_OK)
		code = STORE_COMMAND(store, &reply, SPAN("XADD"),
		                     store_key(store, "jobs", SPAN("")), SPAN("*"),
		                     SPAN("put_prefix"), span_from(args->cli.argv[0]),
		                     SPAN("body"), content);
	if (code != CLI_OK)
		return code;
	if (args->cli.json)
		cli_print_json(json_pack("{s:s,s:s,s:I}", "name", args->cli.argv[0],
		                         "version", version, "bytes",
		                         (json_int_t)content.len));
	else
		printf("%s@%s\n", args->cli.argv[0], version);
	return CLI_OK;
}

static int
run_put(struct cli *cli)
{
	struct args *args = (struct args *)cli;
	struct buffer content = BUFFER_INIT(PREFIX_SIZE_MAX);
	struct store *store;
	int code;

	if (!is_prefix_name(cli->argv[0]))
		return cli_fail(CLI_USAGE,
		                "\"%.60s\" is no name: one has 1 to 64 of A-Z a-z 0-9 "
		                ". _ -",
		                cli->argv[0]);
	code = file_read(cli->argv[1], &content);
	if (code == CLI_OK)
		code = store_open(cli, &store);
	if (code == CLI_OK) {
		code = put(store, args, buffer_span(&content));
		store_close(store);
	}
	buffer_fini(&content);
	return code;
}

struct names {
	json_t *list;
	size_t skip; /* of "ns:prefix:policy", up to "policy" */
};

/* A key of another form is nobody's prefix. */
static int
keep_name(void *data, const char *key)
{
	const struct names *names = data;
	const char *name = key + names->skip;

	if (is_prefix_name(name))
		json_array_append_new(names->list, json_string(name));
	return CLI_OK;
}

static int
load_names(struct store *store, json_t *list)
{
	struct names names = { list, store_namespace(store).len + strlen(":prefix:") };

	return store_walk_keys(store, "prefix:", keep_name, &names);
}

static int
describe(struct store *store, const struct args *args, const char *name, json_t **ret_row)
{
	char version[ID_HEX_LEN + 1];
	const struct reply *reply;
	int code;

	if (!is_prefix_name(name))
		return cli_fail(CLI_NOT_FOUND,
		                "There is no prefix \"%.60s\": names have 1 to 64 of A-Z "
		                "a-z 0-9 . _ -",
		                name);
	code = STORE_COMMAND(store, &reply, SPAN("GET"),
	                     store_key(store, "prefix:", span_from(name)));
	if (code != CLI_OK)
		return code;
	if (reply->kind != REPLY_TEXT)
		return cli_fail(CLI_NOT_FOUND,
		                "There is no prefix \"%.60s\". `warmq prefix ls` lists "
		                "them.",
		                name);
	if (check(args, name, reply->text, version) != CLI_OK)
		snprintf(version, sizeof version, "invalid");
	*ret_row = json_pack("{s:s,s:s,s:I}", "name", name, "version", version, "bytes",
	                     (json_int_t)reply->text.len);
	if (args->reveal)
		json_object_set_new(*ret_row, "text", cli_json_text(reply->text));
	return CLI_OK;
}

static void
print_row(const json_t *row)
{
	const char *shown = json_string_value(json_object_get(row, "text"));
	char bytes[32];

	printf("%s@%s  %s bytes\n", json_string_value(json_object_get(row, "name")),
	       json_string_value(json_object_get(row, "version")),
	       cli_grouped((uint64_t)json_integer_value(json_object_get(row, "bytes")),
	                   bytes));
	if (shown) {
		cli_print_escaped(span_from(shown));
		putchar('\n');
	}
}

static int
run_ls(struct cli *cli)
{
	struct args *args = (struct args *)cli;
	json_t *names = json_array(), *rows = json_array();
	struct store *store;
	const json_t *name;
	size_t i;
	int code = store_open(cli, &store);

	if (code == CLI_OK) {
		code = load_names(store, names);
		json_array_foreach(names, i, name)
		{
			json_t *row;

			if (code != CLI_OK)
				break;
			code = describe(store, args, json_string_value(name), &row);
			if (code != CLI_OK)
				break;
			if (!cli->json)
				print_row(row);
			json_array_append_new(rows, row);
		}
		store_close(store);
	}
	if (code == CLI_OK && cli->json)
		cli_print_json(json_incref(rows));
	else if (code == CLI_OK && json_array_size(rows) == 0)
		puts("No named prefixes. Store one: warmq prefix put NAME FILE");
	json_decref(names);
	json_decref(rows);
	return code;
}

static int
run_show(struct cli *cli)
{
	struct store *store;
	json_t *row;
	int code;

	code = store_open(cli, &store);
	if (code != CLI_OK)
		return code;
	code = describe(store, (struct args *)cli, cli->argv[0], &row);
	store_close(store);
	if (code != CLI_OK)
		return code;
	if (cli->json) {
		cli_print_json(row);
	} else {
		print_row(row);
		json_decref(row);
	}
	return CLI_OK;
}

static const char details[] =
	"FILE is a JSON object with tools, system and the first messages; - reads\n"
	"standard input. It goes through the queue: jobs enqueued after it get it,\n"
	"jobs before it keep the old one. A job may pin the version that is printed.";

const struct verb verb_prefix_put = {
	.name = "prefix put",
	.usage = "prefix put NAME FILE",
	.words_min = 2,
	.words_max = 2,
	.missing = "Say what: warmq prefix put NAME FILE; - reads standard input.",
	.summary = "store a named prefix; prints NAME@VERSION",
	.details = details,
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_put,
};

const struct verb verb_prefix_ls = {
	.name = "prefix ls",
	.usage = "prefix ls",
	.summary = "list named prefixes with version and size",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_ls,
};

const struct verb verb_prefix_show = {
	.name = "prefix show",
	.usage = "prefix show NAME [--reveal]",
	.words_min = 1,
	.words_max = 1,
	.missing = "Say which: warmq prefix show NAME. `warmq prefix ls` lists them.",
	.summary = "show a named prefix; its text only with --reveal",
	.options = { show_specs, ARRAY_SIZE(show_specs) },
	.args_size = sizeof(struct args),
	.run = run_show,
};
