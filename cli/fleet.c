#include "cli/fleet.h"

#include "cli/http_json.h"
#include "common/buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define READY_MS  60000 /* for each program, on a machine that does other things, too */
#define LOOK_MS   10
#define GRACE_MS  3000
#define PATH_SIZE 512

static void
join(const struct fleet *fleet, const char *file, char ret_path[PATH_SIZE])
{
	snprintf(ret_path, PATH_SIZE, "%s/%s", fleet->directory, file);
}

static int
start(struct fleet *fleet, struct process *process, const char *name,
      const char *const argv[])
{
	char log[PATH_SIZE], file[64];

	snprintf(file, sizeof file, "%s.log", name);
	join(fleet, file, log);
	if (process_start(process, name, log, argv) < 0)
		return cli_fail(CLI_UNREACHABLE, "Cannot start %s: %s.", argv[0],
		                strerror(errno));
	return CLI_OK;
}

/* Waits until `is_ready` says so, as long as the process lives. */
static int
await(struct fleet *fleet, struct process *process,
      bool (*is_ready)(const struct fleet *fleet))
{
	uint64_t deadline_ms = cli_now_ms() + READY_MS;
	int status = 0;

	while (!is_ready(fleet)) {
		if (cli_is_interrupted())
			return CLI_INTERRUPTED;
		if (!process_is_running(process, &status)) {
			process_print_log_tail(process);
			return cli_fail(CLI_UNREACHABLE,
			                "%s ended with %d while starting.", process->name,
			                status);
		}
		if (cli_now_ms() >= deadline_ms) {
			process_print_log_tail(process);
			return cli_fail(CLI_UNREACHABLE, "%s is not ready after %d s.",
			                process->name, READY_MS / 1000);
		}
		process_pause(LOOK_MS);
	}
	return CLI_OK;
}

static bool
redis_is_ready(const struct fleet *fleet)
{
	char path[PATH_SIZE];

	join(fleet, "redis.sock", path);
	return access(path, F_OK) == 0;
}

static int
start_redis(struct fleet *fleet, const struct fleet_config *config)
{
	char path[PATH_SIZE], port[8];
	int code;

	join(fleet, "redis.sock", path);
	snprintf(port, sizeof port, "%u", config->redis_port);
	code = start(fleet, &fleet->redis, "redis-server",
	             (const char *const[]){
			     "redis-server", "--port", port, "--bind", "127.0.0.1",
			     "--unixsocket", path, "--unixsocketperm", "700", "--save",
			     "", "--appendonly", "no", "--dir", fleet->directory,
			     "--maxmemory-policy", "noeviction", NULL });
	if (code == CLI_OK)
		code = await(fleet, &fleet->redis, redis_is_ready);
	if (config->redis_port)
		snprintf(fleet->redis_url, sizeof fleet->redis_url,
		         "redis://127.0.0.1:%u", config->redis_port);
	else
		snprintf(fleet->redis_url, sizeof fleet->redis_url, "unix://%.150s",
		         path);
	return code;
}

static bool
provider_is_ready(const struct fleet *fleet)
{
	char path[PATH_SIZE];

	join(fleet, "provider.port", path);
	return access(path, F_OK) == 0;
}

static int
read_port(const struct fleet *fleet, unsigned *ret_port)
{
	char path[PATH_SIZE];
	FILE *file;
	int got;

	join(fleet, "provider.port", path);
	file = fopen(path, "re");
	if (!file)
		return ERR_NOT_FOUND;
	got = fscanf(file, "%u", ret_port);
	fclose(file);
	return got == 1 ? 0 : ERR_MALFORMED;
}

static int
set_knobs(struct fleet *fleet, json_t *knobs)
{
	const char *cause;
	char url[PATH_SIZE];
	json_t *answer;

	if (!knobs)
		return CLI_OK;
	snprintf(url, sizeof url, "%s/knobs", fleet->upstream_url);
	if (http_json(url, knobs, &answer, &cause) < 0) {
		process_print_log_tail(&fleet->provider);
		return cli_fail(CLI_UNREACHABLE, "The provider refused its settings: %s.",
		                cause);
	}
	json_decref(answer);
	return CLI_OK;
}

static int
start_provider(struct fleet *fleet, const struct fleet_config *config)
{
	char program[PATH_SIZE], port_file[PATH_SIZE], seed[24];
	unsigned port = 0;
	int code;

	if (config->upstream_url) {
		snprintf(fleet->upstream_url, sizeof fleet->upstream_url, "%s",
		         config->upstream_url);
		return CLI_OK;
	}
	process_find_program("warmq-provider", "provider", program, sizeof program);
	join(fleet, "provider.port", port_file);
	snprintf(seed, sizeof seed, "%llu", (unsigned long long)config->seed);
	code = start(fleet, &fleet->provider, "warmq-provider",
	             (const char *const[]){ program, "--port", "0", "--port-file",
	                                    port_file, "--seed", seed, NULL });
	if (code == CLI_OK)
		code = await(fleet, &fleet->provider, provider_is_ready);
	if (code != CLI_OK)
		return code;
	if (read_port(fleet, &port) < 0)
		return cli_fail(CLI_UNREACHABLE, "The provider did not say its port.");
	snprintf(fleet->upstream_url, sizeof fleet->upstream_url, "http://127.0.0.1:%u",
	         port);
	return set_knobs(fleet, config->knobs);
}

/* Invents the token of the page and writes it where only we may read it. */
static int
write_token(struct fleet *fleet)
{
	unsigned char bits[(FLEET_TOKEN_SIZE - 1) / 2];
	char path[PATH_SIZE];
	FILE *file;
	int fd;

	if (getrandom(bits, sizeof bits, 0) != sizeof bits)
		return cli_fail(CLI_UNREACHABLE, "The system gives no random bytes: %s.",
		                strerror(errno));
	for (size_t i = 0; i < sizeof bits; i++)
		snprintf(fleet->page_token + 2 * i, 3, "%02x", bits[i]);
	join(fleet, "token", path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file)
		return cli_fail(CLI_UNREACHABLE, "Cannot write %s: %s.", path,
		                strerror(errno));
	fprintf(file, "%s\n", fleet->page_token);
	fclose(file);
	return CLI_OK;
}

/* The scheduler's part of the configuration: with a page, or silent. */
static int
write_page(struct fleet *fleet, const struct fleet_config *config, FILE *file)
{
	if (!config->page_port) {
		fputs("scheduler:\n  listen: \"off\"\n", file);
		return CLI_OK;
	}
	snprintf(fleet->page_url, sizeof fleet->page_url, "http://127.0.0.1:%u/",
	         config->page_port);
	fprintf(file,
	        "scheduler:\n  listen: \"127.0.0.1:%u\"\n  token_file: \"%s/token\"\n",
	        config->page_port, fleet->directory);
	return write_token(fleet);
}

static int
write_config(struct fleet *fleet, const struct fleet_config *config)
{
	int code;

	bool simulated = !config->upstream_url;
	char path[PATH_SIZE];
	FILE *file;

	join(fleet, "warmq.yaml", path);
	file = fopen(path, "we");
	if (!file)
		return cli_fail(CLI_UNREACHABLE, "Cannot write %s: %s.", path,
		                strerror(errno));
	fprintf(file, "redis: \"%s\"\nstate_dir: \"%s\"\n", fleet->redis_url,
	        fleet->directory);
	fprintf(file, "upstreams:\n  main:\n    url: \"%s\"\n    dialect: %s\n",
	        fleet->upstream_url, config->dialect);
	if (simulated)
		fputs("    auth: none\n    markers: auto\n    proof: canary\n", file);
	else if (config->key_env)
		fprintf(file, "    key_env: %s\n", config->key_env);
	else
		fputs("    auth: none\n", file);
	if (config->pace_start)
		fprintf(file, "    pace_start: %llu\n",
		        (unsigned long long)config->pace_start);
	code = write_page(fleet, config, file);
	fclose(file);
	return code;
}

/* True once a ruler is known to Redis: it loads the functions before it rules. */
static bool
is_ruled(const struct fleet *fleet)
{
	struct cli cli = { .redis = fleet->redis_url, .name_space = "warmq" };
	const struct reply *reply;
	struct store *store;
	bool is_ruled;

	if (store_open(&cli, &store) != CLI_OK)
		return false;
	is_ruled = STORE_COMMAND(store, &reply, SPAN("HEXISTS"),
	                         store_key(store, "meta", SPAN("")),
	                         SPAN("owner")) == CLI_OK &&
	           reply_integer(reply, 0) == 1;
	store_close(store);
	return is_ruled;
}

static bool
workers_are_ready(const struct fleet *fleet)
{
	struct cli cli = { .redis = fleet->redis_url, .name_space = "warmq" };
	const struct reply *reply;
	struct store *store;
	int64_t count = 0;

	if (store_open(&cli, &store) != CLI_OK)
		return false;
	if (STORE_COMMAND(store, &reply, SPAN("ZCARD"),
	                  store_key(store, "workers", SPAN(""))) == CLI_OK)
		count = reply_integer(reply, 0);
	store_close(store);
	return count >= (int64_t)fleet->workers_count;
}

static int
start_scheduler(struct fleet *fleet)
{
	char program[PATH_SIZE], config[PATH_SIZE];
	int code;

	process_find_program("warmq-scheduler", "scheduler", program, sizeof program);
	join(fleet, "warmq.yaml", config);
	code = start(fleet, &fleet->scheduler, "warmq-scheduler",
	             (const char *const[]){ program, "--config", config, NULL });
	return code == CLI_OK ? await(fleet, &fleet->scheduler, is_ruled) : code;
}

static int
start_workers(struct fleet *fleet, const struct fleet_config *config)
{
	char program[PATH_SIZE], path[PATH_SIZE], slots[24], name[32];
	uint64_t left = config->slots;
	int code = CLI_OK;

	process_find_program("warmq-worker", "worker", program, sizeof program);
	join(fleet, "warmq.yaml", path);
	for (uint64_t i = 0; i < config->workers && code == CLI_OK; i++) {
		uint64_t part = left / (config->workers - i);

		left -= part;
		snprintf(slots, sizeof slots, "%llu", (unsigned long long)part);
		snprintf(name, sizeof name, "warmq-worker-%llu",
		         (unsigned long long)i + 1);
		code = start(fleet, &fleet->workers[i], name,
		             (const char *const[]){ program, "--config", path, "--slots",
		                                    slots, "--label", name, NULL });
		fleet->workers_count = i + 1;
	}
	for (size_t i = 0; i < fleet->workers_count && code == CLI_OK; i++)
		code = await(fleet, &fleet->workers[i], workers_are_ready);
	return code;
}

int
fleet_start(struct fleet *fleet, const struct fleet_config *config)
{
	int code;

	*fleet = (struct fleet){ .keep = config->keep };
	if (process_make_directory(config->name, fleet->directory,
	                           sizeof fleet->directory) < 0)
		return cli_fail(CLI_UNREACHABLE, "Cannot make a directory: %s.",
		                strerror(errno));
	code = start_redis(fleet, config);
	if (code == CLI_OK)
		code = start_provider(fleet, config);
	if (code == CLI_OK)
		code = write_config(fleet, config);
	if (code == CLI_OK)
		code = start_scheduler(fleet);
	if (code == CLI_OK)
		code = start_workers(fleet, config);
	if (code != CLI_OK)
		fleet_stop(fleet);
	return code;
}

void
fleet_stop(struct fleet *fleet)
{
	for (size_t i = fleet->workers_count; i > 0; i--)
		process_stop(&fleet->workers[i - 1], GRACE_MS);
	process_stop(&fleet->scheduler, GRACE_MS);
	process_stop(&fleet->provider, GRACE_MS);
	process_stop(&fleet->redis, GRACE_MS);
	if (fleet->keep && fleet->directory[0])
		fprintf(stderr, "Logs and configuration are in %s.\n", fleet->directory);
	else if (fleet->directory[0])
		process_remove_directory(fleet->directory);
	fleet->directory[0] = '\0';
	fleet->workers_count = 0;
}

static bool
is_alive(struct process *process)
{
	int status = 0;

	if (process->pid == 0 || process_is_running(process, &status))
		return true;
	process_print_log_tail(process);
	(void)cli_fail(CLI_UNREACHABLE, "%s ended with %d.", process->name, status);
	return false;
}

bool
fleet_is_running(struct fleet *fleet)
{
	bool alive = is_alive(&fleet->redis) && is_alive(&fleet->provider) &&
	             is_alive(&fleet->scheduler);

	for (size_t i = 0; i < fleet->workers_count && alive; i++)
		alive = is_alive(&fleet->workers[i]);
	return alive;
}

json_t *
fleet_provider_stats(const struct fleet *fleet)
{
	const char *cause;
	char url[PATH_SIZE];
	json_t *stats = NULL;

	snprintf(url, sizeof url, "%s/stats", fleet->upstream_url);
	if (http_json(url, NULL, &stats, &cause) < 0)
		(void)cli_fail(CLI_UNREACHABLE, "The provider does not answer %s: %s.",
		               url, cause);
	return stats;
}

int
fleet_provider_reset(const struct fleet *fleet)
{
	const char *cause;
	char url[PATH_SIZE];
	json_t *nothing = json_object(), *answer = NULL;
	int err;

	snprintf(url, sizeof url, "%s/reset", fleet->upstream_url);
	err = http_json(url, nothing, &answer, &cause);
	json_decref(nothing);
	json_decref(answer);
	if (err < 0)
		return cli_fail(CLI_UNREACHABLE, "The provider does not answer %s: %s.",
		                url, cause);
	return CLI_OK;
}
