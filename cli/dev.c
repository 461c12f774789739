#include "cli/fleet.h"
#include "cli/verbs.h"
#include "common/codec/dialect.h"
#include "common/io/config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define WATCH_MS 200

struct args {
	struct cli cli;
	const char *upstream, *dialect, *key_env;
	uint64_t slots, port, page, job_ms, lag_ms;
	bool keep;
};

static const struct option_spec specs[] = {
	{ "upstream", OPTION_TEXT, offsetof(struct args, upstream), NULL, "URL",
	  "a provider of yours instead of the simulated one" },
	{ "dialect", OPTION_TEXT, offsetof(struct args, dialect), "anthropic", "NAME",
	  "what it speaks: anthropic, openai-chat or raw" },
	{ "key-env", OPTION_TEXT, offsetof(struct args, key_env), NULL, "NAME",
	  "the environment variable that holds its key" },
	{ "slots", OPTION_UNSIGNED, offsetof(struct args, slots), "50", "N",
	  "how many jobs may run at once", .min = 1, .max = 4000 },
	{ "port", OPTION_UNSIGNED, offsetof(struct args, port), "0", "N",
	  "loopback port of the private Redis; 0: any free one", .max = 65535 },
	{ "page", OPTION_UNSIGNED, offsetof(struct args, page), "0", "N",
	  "loopback port of the page; 0: any free one", .max = 65535 },
	{ "job", OPTION_DURATION, offsetof(struct args, job_ms), "500ms", "TIME",
	  "how long a job of the simulated provider generates" },
	{ "lag", OPTION_DURATION, offsetof(struct args, lag_ms), "0ms", "TIME",
	  "how long a written entry stays unreadable there" },
	{ "keep", OPTION_FLAG, offsetof(struct args, keep), NULL, NULL,
	  "keep the directory with logs and configuration" },
	CLI_LOCAL_OPTIONS(struct args),
};

/* A free port that stays ours until its program has it: while our socket is bound to it
 * and does not listen, the system hands it to nobody who asks for any port, and a program
 * that names it (with SO_REUSEADDR, too) can listen there. */
struct reserved_port {
	int fd;
	uint16_t port; /* 0: there is none */
};

static struct reserved_port
reserve_port(uint64_t wanted)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct reserved_port reserved = { .fd = -1, .port = (uint16_t)wanted };
	socklen_t size = sizeof address;
	int yes = 1;

	if (wanted)
		return reserved;
	reserved.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (reserved.fd >= 0 &&
	    setsockopt(reserved.fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
	    bind(reserved.fd, (struct sockaddr *)&address, size) == 0 &&
	    getsockname(reserved.fd, (struct sockaddr *)&address, &size) == 0)
		reserved.port = ntohs(address.sin_port);
	return reserved;
}

static void
free_port(const struct reserved_port *reserved)
{
	if (reserved->fd >= 0)
		close(reserved->fd);
}

/* What the scheduler would say of the configuration, in words of this command line. */
static int
check_args(const struct args *args)
{
	struct span host;
	enum dialect dialect;

	if (dialect_parse(span_from(args->dialect), &dialect) < 0)
		return cli_fail(CLI_USAGE,
		                "--dialect takes anthropic, openai-chat or raw, not "
		                "\"%.40s\".",
		                args->dialect);
	if (args->upstream && config_url_host(span_from(args->upstream), &host) < 0)
		return cli_fail(CLI_USAGE,
		                "--upstream takes a URL of the form "
		                "http(s)://host[:port][/base], not \"%.60s\".",
		                args->upstream);
	if (!args->upstream && dialect == DIALECT_RAW)
		return cli_fail(CLI_USAGE, "The simulated provider does not speak raw: "
		                           "say who does with --upstream URL.");
	if (args->key_env && !getenv(args->key_env))
		return cli_fail(CLI_USAGE,
		                "The variable %s is not set: put your key there.",
		                args->key_env);
	return CLI_OK;
}

static void
print_welcome(const struct fleet *fleet, const struct args *args)
{
	const char *model = strcmp(args->dialect, "openai-chat") == 0
	                            ? "gpt-5.6"
	                            : "claude-sonnet-4-5";

	printf("WarmQ is up. Redis: %s\n"
	       "Look at it: %s  (token for actions: %s)\n\n"
	       "  export WARMQ_REDIS=%s WARMQ_URL=%s\n"
	       "  warmq enqueue --upstream main --wait --body \\\n"
	       "    '{\"model\":\"%s\",\"max_tokens\":64,"
	       "\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}'\n\n"
	       "Requests go to %s (%s%s). Configuration and logs: %s\n"
	       "Ctrl-C stops everything%s.\n",
	       fleet->redis_url, fleet->page_url, fleet->page_token, fleet->redis_url,
	       fleet->page_url, model, fleet->upstream_url, args->dialect,
	       args->upstream ? "" : ", simulated", fleet->directory,
	       args->keep ? "" : " and removes it");
	fflush(stdout);
}

static void
print_ready(const struct fleet *fleet, const struct cli *cli, const struct args *args)
{
	if (!cli->json) {
		print_welcome(fleet, args);
		return;
	}
	cli_print_json(json_pack(
		"{s:s,s:s,s:s,s:s,s:s,s:i,s:i}", "redis", fleet->redis_url, "page",
		fleet->page_url, "token", fleet->page_token, "upstream",
		fleet->upstream_url, "directory", fleet->directory, "scheduler_pid",
		(int)fleet->scheduler.pid, "worker_pid", (int)fleet->workers[0].pid));
	fflush(stdout);
}

static int
run(struct cli *cli)
{
	const struct args *args = (const struct args *)cli;
	json_t *knobs = json_pack("{s:I,s:I}", "job_ms", (json_int_t)args->job_ms,
	                          "visibility_lag_ms", (json_int_t)args->lag_ms);
	struct reserved_port redis = reserve_port(args->port);
	struct reserved_port page = reserve_port(args->page);
	struct fleet_config config = {
		.name = "warmq-dev",
		.dialect = args->dialect,
		.workers = 1,
		.slots = args->slots,
		.redis_port = redis.port,
		.page_port = page.port,
		.upstream_url = args->upstream,
		.key_env = args->key_env,
		.seed = 1,
		.knobs = knobs,
		.keep = args->keep,
	};
	struct fleet fleet;
	int code = check_args(args);

	if (code == CLI_OK)
		code = fleet_start(&fleet, &config);
	free_port(&redis);
	free_port(&page);
	json_decref(knobs);
	if (code != CLI_OK)
		return code;
	print_ready(&fleet, cli, args);
	while (!cli_is_interrupted() && code == CLI_OK) {
		process_pause(WATCH_MS);
		if (!fleet_is_running(&fleet))
			code = CLI_FAILED;
	}
	fleet_stop(&fleet);
	return code;
}

static const char details[] =
	"Starts a private Redis on a loopback port, a simulated provider (or your own\n"
	"with --upstream), a scheduler and a worker; prints the URLs of the Redis and "
	"of\n"
	"the page that shows what waits, what is warm and what it costs.\n"
	"Nothing is stored: Ctrl-C removes it all.";

const struct verb verb_dev = {
	.name = "dev",
	.usage = "dev [--upstream URL --dialect NAME --key-env NAME]",
	.summary = "run everything on this machine until Ctrl-C, for trying things out",
	.details = details,
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run,
	.common = true,
};
