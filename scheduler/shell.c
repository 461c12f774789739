#include "scheduler/shell.h"

#include "common/io/hangup.h"
#include "common/io/log.h"
#include "common/io/redis.h"
#include "scheduler/admin.h"
#include "scheduler/functions/functions_library.h"
#include "scheduler/greet.h"
#include "scheduler/record_file.h"
#include "scheduler/setup.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define BACK_OFF_MS_MIN 100
#define BACK_OFF_MS_MAX 5000
#define DOWN_TOLD_MS    60000 /* between two lines that say the same of an outage */
#define MEASURE_MS      10000 /* between two looks at Redis's clock */
#define CLOCK_BACK_MS   1000  /* so far back it is a step, not noise */
#define STOP_MS         2000  /* to give the rule up in order */
#define BLOCK_SLACK_MS  10000

struct shell {
	const struct config *config;
	struct setup setup;
	struct ruler *ruler;
	struct admin *admin;
	uv_loop_t loop;
	uv_timer_t timer, clock;
	uv_prepare_t prepare;
	uv_signal_t term, interrupt, hangup, dump;
	struct record *record; /* NULL: none is kept */
	const char *record_path;
	struct redis *main, *waiting;
	struct greet greet;
	struct redis_url url;
	bool greeted; /* the ruler was told of the connection */
	bool stopping, closing;
	uint64_t back_off_ms;
	uint64_t down_told_ms; /* monotonic, when the log last said so; 0: connected */
	char down_reason[200]; /* and why, then */
	uint64_t last_ms;      /* the latest time the ruler was told */
	uint64_t stop_by_ms, measure_ms; /* monotonic */
	enum shell_exit exit;
	struct log_site sites[64]; /* by the words of a note */
	struct call_list list;
	struct span *words;
	char url_text[REDIS_URL_TEXT_SIZE];
};

/* ---- time ------------------------------------------------------------------------ */

static uint64_t
monotonic_ms(void)
{
	return uv_hrtime() / 1000000;
}

static uint64_t
now(struct shell *shell)
{
	int64_t ms = (int64_t)monotonic_ms() + shell->greet.offset.offset_ms;

	if (ms > 0 && (uint64_t)ms > shell->last_ms)
		shell->last_ms = (uint64_t)ms;
	return shell->last_ms;
}

/* ---- sending --------------------------------------------------------------------- */

static void
on_reply(struct redis *redis, const struct reply *reply, int error, void *data)
{
	struct shell *shell = redis_data(redis);

	(void)error;
	if (!shell->ruler || shell->closing)
		return;
	/* A lost answer of the main connection is followed by on_main_down. */
	if (reply || redis == shell->waiting)
		ruler_answer(shell->ruler, now(shell), (uint64_t)(uintptr_t)data, reply);
}

static size_t
collect_words(struct shell *shell, const struct call *call, bool drop_block)
{
	size_t count = 0;

	for (uint32_t i = 0; i < call->arg_count; i++) {
		struct span word = call_arg(&shell->list, call, i);

		if (drop_block && span_equals(word, SPAN("BLOCK"))) {
			i++; /* and its milliseconds */
			continue;
		}
		shell->words[count++] = word;
	}
	return count;
}

static int
send_call(struct shell *shell, const struct call *call)
{
	void *data = (void *)(uintptr_t)call->tag;
	bool blocks = ruler_tag_blocks(call->tag);
	bool apart = blocks && redis_is_ready(shell->waiting);
	size_t count = collect_words(shell, call, blocks && !apart);

	if (apart)
		return redis_command_within(shell->waiting,
		                            shell->setup.ruler.block_ms + BLOCK_SLACK_MS,
		                            shell->words, count, on_reply, data);
	return redis_command(shell->main, shell->words, count, on_reply, data);
}

static void
send_all(struct shell *shell)
{
	for (uint32_t i = 0; i < shell->list.call_count; i++) {
		int err = send_call(shell, &shell->list.calls[i]);

		if (err == 0)
			continue;
		/* What cannot be sent must not be missing in the middle. */
		redis_drop(shell->main, error_text(err));
		return;
	}
}

static void close_all(struct shell *shell);

static void
on_timer(uv_timer_t *timer)
{
	(void)timer; /* waking up is all: the prepare handle steps */
}

static void
wake_at(struct shell *shell, uint64_t deadline_ms)
{
	uint64_t now_ms = now(shell);

	if (deadline_ms == RULER_DEADLINE_NONE) {
		(void)uv_timer_stop(&shell->timer);
		return;
	}
	uv_update_time(&shell->loop);
	(void)uv_timer_start(&shell->timer, on_timer,
	                     deadline_ms > now_ms ? deadline_ms - now_ms : 0, 0);
}

static void
on_prepare(uv_prepare_t *prepare)
{
	struct shell *shell = prepare->data;
	uint64_t started_ms = monotonic_ms();
	uint64_t deadline_ms = RULER_DEADLINE_NONE;

	if (shell->closing)
		return;
	if (shell->stopping &&
	    (ruler_is_stopped(shell->ruler) || monotonic_ms() >= shell->stop_by_ms)) {
		close_all(shell);
		return;
	}
	while (shell->greeted) {
		call_reset(&shell->list);
		ruler_step(shell->ruler, now(shell), &shell->list);
		send_all(shell);
		deadline_ms = ruler_deadline(shell->ruler, now(shell));
		if (deadline_ms > now(shell) ||
		    monotonic_ms() - started_ms >= SHELL_TURN_MS)
			break;
	}
	wake_at(shell, deadline_ms);
}

/* ---- connections ----------------------------------------------------------------- */

static void on_greeted(int error, const char *message, void *data);

static void
greet(struct shell *shell)
{
	shell->greeted = false;
	greet_start(&shell->greet, shell->main, shell->setup.ruler.ns, on_greeted, shell);
}

static void
give_up(struct shell *shell, const char *message)
{
	log_error("cannot work with this Redis", LOG_TEXT("redis", shell->url_text),
	          LOG_TEXT("reason", message));
	shell->exit = SHELL_TROUBLE;
	close_all(shell);
}

static void
on_greeted(int error, const char *message, void *data)
{
	struct shell *shell = data;

	if (shell->closing)
		return;
	if (error == ERR_UNSUPPORTED) {
		give_up(shell, message);
		return;
	}
	if (error < 0) {
		redis_drop(shell->main, message);
		return;
	}
	shell->back_off_ms = BACK_OFF_MS_MIN;
	shell->last_ms = 0; /* nothing is known yet that time could go back against */
	shell->greeted = true;
	redis_connect(shell->waiting);
	ruler_connected(shell->ruler, now(shell));
}

static void
on_main_ready(struct redis *redis, void *data)
{
	struct shell *shell = data;

	(void)redis;
	log_info("connected", LOG_TEXT("redis", shell->url_text));
	shell->down_told_ms = 0;
	greet(shell);
}

static uint64_t
next_back_off(struct shell *shell)
{
	uint64_t wait_ms = shell->back_off_ms;

	shell->back_off_ms = MIN(shell->back_off_ms * 2, BACK_OFF_MS_MAX);
	return wait_ms;
}

/* An outage is told at once, when its reason changes, and once a minute. */
static void
tell_down(struct shell *shell, const char *reason, uint64_t wait_ms)
{
	uint64_t now_ms = monotonic_ms();

	if (shell->down_told_ms > 0 && now_ms - shell->down_told_ms < DOWN_TOLD_MS &&
	    strncmp(shell->down_reason, reason, sizeof(shell->down_reason) - 1) == 0)
		return;
	(void)snprintf(shell->down_reason, sizeof(shell->down_reason), "%s", reason);
	shell->down_told_ms = now_ms;
	log_warning("no connection to Redis; trying again until there is one",
	            LOG_TEXT("redis", shell->url_text), LOG_TEXT("reason", reason),
	            LOG_NUMBER("retry_ms", wait_ms));
}

static uint64_t
on_main_down(struct redis *redis, int error, const char *message, void *data)
{
	struct shell *shell = data;
	uint64_t wait_ms = next_back_off(shell);

	(void)redis;
	(void)error;
	if (shell->closing)
		return REDIS_STAY_DOWN;
	tell_down(shell, message, wait_ms);
	if (shell->greeted)
		ruler_lost(shell->ruler, now(shell));
	shell->greeted = false;
	return wait_ms;
}

static void
on_waiting_ready(struct redis *redis, void *data)
{
	(void)redis;
	(void)data;
}

static uint64_t
on_waiting_down(struct redis *redis, int error, const char *message, void *data)
{
	struct shell *shell = data;

	(void)redis;
	(void)error;
	(void)message;
	return shell->closing || !shell->greeted ? REDIS_STAY_DOWN : BACK_OFF_MS_MIN;
}

/* ---- the clock of Redis ---------------------------------------------------------- */

static void
on_measured(int error, const char *message, void *data)
{
	struct shell *shell = data;
	int64_t ms = (int64_t)monotonic_ms() + shell->greet.offset.offset_ms;

	(void)message;
	if (error < 0 || shell->closing || !shell->greeted)
		return;
	if (ms + CLOCK_BACK_MS >= (int64_t)shell->last_ms)
		return;
	log_warning("the clock of Redis went back: reading everything again",
	            LOG_NUMBER("by_ms", (int64_t)shell->last_ms - ms));
	ruler_lost(shell->ruler, shell->last_ms);
	shell->last_ms = 0;
	ruler_connected(shell->ruler, now(shell));
}

static void
on_clock(uv_timer_t *timer)
{
	struct shell *shell = timer->data;

	if (!shell->greeted)
		return;
	if (ruler_wants_library(shell->ruler)) {
		log_warning("the functions are missing in Redis: loading them");
		greet(shell);
		return;
	}
	if (monotonic_ms() >= shell->measure_ms) {
		shell->measure_ms = monotonic_ms() + MEASURE_MS;
		greet_measure(&shell->greet, on_measured, shell);
	}
}

/* ---- start and end --------------------------------------------------------------- */

/* Each kind of sentence has a limit of its own: the words before the first number. */
static struct log_site *
site_of(struct shell *shell, const char *text)
{
	uint32_t hash = 5381;

	for (size_t i = 0; text[i] && (text[i] < '0' || text[i] > '9'); i++)
		hash = hash * 33 + (unsigned char)text[i];
	return &shell->sites[hash % ARRAY_SIZE(shell->sites)];
}

static void
on_note(void *data, const struct ruler_note *note)
{
	static const enum log_level levels[] = {
		[RULER_DEBUG] = LOG_LEVEL_DEBUG,
		[RULER_INFO] = LOG_LEVEL_INFO,
		[RULER_WARNING] = LOG_LEVEL_WARNING,
		[RULER_ERROR] = LOG_LEVEL_ERROR,
	};
	struct shell *shell = data;
	struct log_field fields[7] = { { 0 } };
	size_t count = 1; /* log_write skips the first */

	admin_note(shell->admin, note);
	if (!log_wants(levels[note->level]))
		return;
	if (note->route.len > 0)
		fields[count++] = LOG_SPAN("route", note->route);
	if (note->family.len > 0)
		fields[count++] = LOG_SPAN("family", note->family);
	if (note->budget.len > 0)
		fields[count++] = LOG_SPAN("budget", note->budget);
	if (note->job.len > 0)
		fields[count++] = LOG_SPAN("job", note->job);
	if (note->trace.len > 0)
		fields[count++] = LOG_SPAN("traceparent", note->trace);
	log_write(levels[note->level], site_of(shell, note->text), note->text, fields,
	          count);
}

static void
on_signal(uv_signal_t *handle, int number)
{
	struct shell *shell = handle->data;

	if (shell->stopping) {
		close_all(shell);
		return;
	}
	log_info("stopping", LOG_NUMBER("signal", number));
	shell->stopping = true;
	shell->stop_by_ms = monotonic_ms() + STOP_MS;
	ruler_stop(shell->ruler);
}

static void
on_dump(uv_signal_t *handle, int number)
{
	struct shell *shell = handle->data;

	(void)number;
	if (!shell->record)
		log_warning("nothing is recorded: start it with --record FILE");
	else if (record_file_write(shell->record, shell->record_path) < 0)
		log_error("cannot write the record", LOG_TEXT("file", shell->record_path),
		          LOG_TEXT("reason", strerror(errno)));
	else
		log_info("wrote the record", LOG_TEXT("file", shell->record_path));
}

static void
close_all(struct shell *shell)
{
	if (shell->closing)
		return;
	shell->closing = true;
	uv_close((uv_handle_t *)&shell->timer, NULL);
	uv_close((uv_handle_t *)&shell->clock, NULL);
	uv_close((uv_handle_t *)&shell->prepare, NULL);
	uv_close((uv_handle_t *)&shell->term, NULL);
	uv_close((uv_handle_t *)&shell->interrupt, NULL);
	uv_close((uv_handle_t *)&shell->hangup, NULL);
	uv_close((uv_handle_t *)&shell->dump, NULL);
	shell->admin = admin_close(shell->admin);
	redis_destroy(shell->main, NULL, NULL);
	redis_destroy(shell->waiting, NULL, NULL);
}

static int
open_redis(struct shell *shell)
{
	struct redis_options options = {
		.url = shell->url,
		.handlers = { on_main_ready, on_main_down },
		.data = shell,
		.client_name = "warmq-scheduler",
	};
	int err = redis_create(&shell->loop, &options, &shell->main);

	if (err < 0)
		return err;
	options.handlers = (struct redis_handlers){ on_waiting_ready, on_waiting_down };
	options.client_name = "warmq-scheduler-inbox";
	return redis_create(&shell->loop, &options, &shell->waiting);
}

static int
open_pages(struct shell *shell)
{
	const struct admin_options options = {
		.config = shell->config,
		.url = shell->url,
		.ruler = shell->ruler,
		.now_ms = &shell->last_ms,
	};

	return admin_open(&shell->loop, &options, &shell->admin);
}

static void
open_handles(struct shell *shell)
{
	(void)uv_timer_init(&shell->loop, &shell->timer);
	(void)uv_timer_init(&shell->loop, &shell->clock);
	(void)uv_prepare_init(&shell->loop, &shell->prepare);
	(void)uv_signal_init(&shell->loop, &shell->term);
	(void)uv_signal_init(&shell->loop, &shell->interrupt);
	(void)uv_signal_init(&shell->loop, &shell->hangup);
	(void)uv_signal_init(&shell->loop, &shell->dump);
	shell->timer.data = shell;
	shell->clock.data = shell;
	shell->prepare.data = shell;
	shell->term.data = shell;
	shell->interrupt.data = shell;
	shell->hangup.data = shell;
	shell->dump.data = shell;
	(void)uv_prepare_start(&shell->prepare, on_prepare);
	(void)uv_timer_start(&shell->clock, on_clock, 1000, 1000);
	(void)uv_signal_start(&shell->term, on_signal, SIGTERM);
	(void)uv_signal_start(&shell->interrupt, on_signal, SIGINT);
	(void)uv_signal_start(&shell->hangup, on_signal, hangup_number());
	(void)uv_signal_start(&shell->dump, on_dump, SIGUSR1);
}

static int
open_list(struct shell *shell)
{
	struct call_list *list = &shell->list;

	list->call_max = RULER_CALLS * 4;
	list->arg_max = RULER_ARGS * 2;
	list->byte_max = (uint32_t)MIN(
		2 * RULER_BYTES + 3 * shell->setup.ruler.job_size_max, UINT32_MAX / 2);
	list->calls = calloc(list->call_max, sizeof(*list->calls));
	list->args = calloc(list->arg_max, sizeof(*list->args));
	list->bytes = malloc(list->byte_max);
	shell->words = calloc(list->arg_max, sizeof(*shell->words));
	return list->calls && list->args && list->bytes && shell->words ? 0 : ERR_MEMORY;
}

static int
open_record(struct shell *shell)
{
	if (!shell->record_path)
		return 0;
	shell->record = record_create(RECORD_SIZE, functions_library_version);
	if (!shell->record)
		return ERR_MEMORY;
	shell->setup.ruler.record = shell->record;
	record_file_on_failure(shell->record, shell->record_path);
	return 0;
}

static int
open_shell(struct shell *shell, const struct config *config)
{
	char message[REDIS_URL_ERROR_SIZE];
	int err;

	err = redis_url_parse(span_from(config->redis), &shell->url, message);
	if (err < 0) {
		log_error("the address of Redis is wrong", LOG_TEXT("reason", message));
		return err;
	}
	redis_url_print(&shell->url, shell->url_text);
	err = setup_open(&shell->setup, config);
	if (err < 0)
		return err;
	shell->setup.ruler.say = on_note;
	shell->setup.ruler.data = shell;
	if (getrandom(&shell->setup.ruler.seed, sizeof(uint64_t), 0) < 0)
		shell->setup.ruler.seed = uv_hrtime() ^ (uint64_t)getpid() << 32;
	err = open_record(shell);
	if (err < 0)
		return err;
	shell->ruler = ruler_create(&shell->setup.ruler);
	if (!shell->ruler)
		return ERR_MEMORY;
	return open_list(shell);
}

static void
close_shell(struct shell *shell)
{
	shell->ruler = ruler_destroy(shell->ruler);
	shell->record = record_destroy(shell->record);
	setup_close(&shell->setup);
	free(shell->list.calls);
	free(shell->list.args);
	free(shell->list.bytes);
	free(shell->words);
}

enum shell_exit
shell_run(const struct config *config, const char *record_path)
{
	struct shell *shell = calloc(1, sizeof(*shell));
	enum shell_exit result = SHELL_TROUBLE;
	int err;

	if (!shell)
		return SHELL_TROUBLE;
	(void)signal(SIGPIPE, SIG_IGN);
	shell->config = config;
	shell->record_path = record_path;
	shell->back_off_ms = BACK_OFF_MS_MIN;
	err = open_shell(shell, config);
	if (err < 0)
		goto out;
	(void)uv_loop_init(&shell->loop);
	open_handles(shell);
	err = open_redis(shell);
	if (err == 0)
		err = open_pages(shell);
	if (err == 0)
		redis_connect(shell->main);
	else
		close_all(shell);
	shell->exit = err < 0 ? SHELL_TROUBLE : SHELL_STOPPED;
	(void)uv_run(&shell->loop, UV_RUN_DEFAULT);
	(void)uv_loop_close(&shell->loop);
	result = shell->exit;
out:
	if (err < 0)
		log_error("could not start", LOG_ERROR(err));
	close_shell(shell);
	free(shell);
	return result;
}
