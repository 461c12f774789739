#include "worker/shell.h"

#include "common/io/hangup.h"
#include "common/io/log.h"
#include "common/io/redis.h"
#include "common/io/redis_listen.h"
#include "common/io/state_dir.h"
#include "worker/note.h"
#include "worker/run_log.h"
#include "worker/shell_memory.h"

#include <stdlib.h>

#define STEPS_MAX      64 /* of one turn; the rest waits for the next one */
#define RECONNECT_MS   100
#define RECONNECT_MAX  2000
#define PIPELINE_EXTRA 1024

static uint64_t
now_ms(void)
{
	return uv_hrtime() / 1000000;
}

static uint64_t
context_now_ms(void *data)
{
	(void)data;
	return now_ms();
}

static uint64_t
context_redis_ms(uint64_t local_ms, void *data)
{
	const struct shell *shell = data;

	return agent_redis_ms(shell->agent, local_ms);
}

/* ---- what runs report ------------------------------------------------------------ */

static void
on_run_sent(struct run *run, void *data)
{
	struct shell *shell = data;
	uint32_t deliveries = run->load ? run->load->deliveries : 0;

	agent_sent(shell->agent, now_ms(), run->slot, run->q, run_upstream(run),
	           deliveries);
}

static void
on_run_began(struct run *run, const struct protocol_usage *usage, void *data)
{
	struct shell *shell = data;

	agent_answered(shell->agent, now_ms(), run_upstream(run));
	agent_began(shell->agent, now_ms(), run->slot, run->q, usage);
}

/* By its end it is known who answered. */
static bool
is_answered(const struct run *run)
{
	return run->was_sent && !run->has_missed && run->outcome.end != AGENT_STOPPED;
}

/* May come from within a command of the agent: it is told on the shell's own turn. */
static void
on_run_ended(struct run *run, void *data)
{
	struct shell *shell = data;

	run->next = NULL;
	if (shell->ended_last)
		shell->ended_last->next = run;
	else
		shell->ended_first = run;
	shell->ended_last = run;
}

static void
tell_ends(struct shell *shell)
{
	struct run *run = shell->ended_first;

	shell->ended_first = NULL;
	shell->ended_last = NULL;
	while (run) {
		struct run *next = run->next;

		measure_run(&shell->measure, run);
		run_log_end(run);
		if (is_answered(run))
			agent_answered(shell->agent, now_ms(), run_upstream(run));
		agent_ended(shell->agent, now_ms(), run->slot, run->q, &run->outcome);
		run_finish(run);
		run = next;
	}
}

/* ---- what the agent says --------------------------------------------------------- */

static void
drop_report(struct shell *shell, uint64_t handle)
{
	struct report *report = report_of(handle);

	if (report->is_spooled)
		spool_remove(shell->spool, report);
	(void)report_destroy(report);
}

static void
spool_report(struct shell *shell, uint64_t handle)
{
	struct report *report = report_of(handle);

	report->is_spooled = true;
	spool_write(shell->spool, report);
}

static void
on_written(struct span id, bool is_written, void *data)
{
	struct shell *shell = data;
	struct report *it = shell->context.reports.first;

	for (; !is_written && it; it = it->next) {
		if (span_equals((struct span){ it->id, it->id_len }, id))
			it->is_spooled = false;
	}
	agent_spooled(shell->agent, now_ms(), id, is_written);
}

/* Who has told it to stop looks here for why it has not ended yet. */
static void
explain_wait(const struct shell *shell)
{
	struct agent_stats stats;

	agent_stats(shell->agent, &stats);
	if (stats.is_stopping && !stats.attached)
		log_info(
			"Redis is away: this worker ends when its running jobs have, and "
			"their results are on disk; the next worker in its place "
			"delivers them",
			LOG_NUMBER("running", stats.running),
			LOG_NUMBER("on_disk", stats.on_disk),
			LOG_TEXT("state", spool_dir(shell->spool)));
}

static void
stop(struct shell *shell, const char *why, uint64_t drain_ms)
{
	log_info("stopping: no new jobs, running ones may end", LOG_TEXT("why", why),
	         LOG_NUMBER("drain_ms", drain_ms));
	agent_stop(shell->agent, now_ms(), drain_ms);
	explain_wait(shell);
}

static void
obey(struct shell *shell, const struct agent_command *command)
{
	switch (command->kind) {
	case AGENT_START:
		run_start(&shell->runs[command->slot], &shell->context, command->job);
		return;
	case AGENT_ABORT:
		if (shell->runs[command->slot].q == command->q)
			run_stop(&shell->runs[command->slot]);
		return;
	case AGENT_SPOOL:
		spool_report(shell, command->handle);
		return;
	case AGENT_DROP:
		drop_report(shell, command->handle);
		return;
	case AGENT_SESSION:
		spool_note_session(shell->spool, command->number);
		return;
	case AGENT_CLOSE:
		redis_drop(shell->redis, "no answer in time");
		return;
	case AGENT_NOTE:
		note_log(command, command->number < shell->options->slots
		                          ? &shell->runs[command->number]
		                          : NULL);
		return;
	case AGENT_DISMISSED:
		stop(shell, "told so through Redis", shell->options->drain_ms);
		return;
	case AGENT_FINISHED:
		shell->is_finished = true;
		return;
	}
}

static void
on_answer(struct redis *redis, const struct reply *reply, int error, void *data)
{
	struct shell *shell = data;
	uint64_t tag = shell->tags[shell->tags_first];

	VERIFY(shell->tags_count > 0);
	shell->tags_first = (shell->tags_first + 1) % SHELL_TAGS_MAX;
	shell->tags_count--;
	if (error < 0)
		return; /* on_down follows, and tells of all at once */
	agent_answer(shell->agent, now_ms(), tag, reply);
	lag_mark(&shell->lag, "answers of Redis");
}

static void
send_call(struct shell *shell, const struct call *call)
{
	VERIFY(call->arg_count <= SHELL_ARGS_MAX);
	for (uint32_t i = 0; i < call->arg_count; i++)
		shell->words[i] = call_arg(&shell->calls, call, i);
	/* Not ready means that on_down is on its way; then the agent learns it there. */
	if (redis_command(shell->redis, shell->words, call->arg_count, on_answer, shell) <
	    0)
		return;
	VERIFY(shell->tags_count < SHELL_TAGS_MAX);
	shell->tags[(shell->tags_first + shell->tags_count++) % SHELL_TAGS_MAX] =
		call->tag;
}

static void
feed_late(struct shell *shell)
{
	struct report *report;

	while (agent_late_room(shell->agent) &&
	       (report = spool_next(shell->spool, &shell->context.reports)) != NULL) {
		struct agent_late late = {
			.handle = report_handle(report),
			.id = { report->id, report->id_len },
			.reply = span_from(report->reply),
			.result_ttl_ms = report->result_ttl_ms,
			.result = buffer_span(&report->result),
		};

		agent_late(shell->agent, now_ms(), &late);
	}
	agent_late_more(shell->agent, now_ms(), spool_has_next(shell->spool));
}

static void
step(struct shell *shell)
{
	agent_step(shell->agent, now_ms(), &shell->output);
	for (uint32_t i = 0; i < shell->output.commands_count; i++)
		obey(shell, &shell->commands[i]);
	for (uint32_t i = 0; i < shell->calls.call_count; i++)
		send_call(shell, &shell->calls.calls[i]);
}

static void close_all(struct shell *shell);

static void
on_timer(uv_timer_t *timer)
{
	(void)timer; /* waking the loop is all it is for */
}

static void
turn(struct shell *shell)
{
	uint64_t deadline_ms;
	int steps = 0;

	do {
		tell_ends(shell);
		feed_late(shell);
		step(shell);
		deadline_ms = agent_deadline(shell->agent);
	} while ((deadline_ms <= now_ms() || shell->ended_first) && ++steps < STEPS_MAX);

	if (shell->is_finished && !spool_is_busy(shell->spool)) {
		close_all(shell);
		return;
	}
	uv_update_time(&shell->loop);
	if (deadline_ms == AGENT_DEADLINE_NONE)
		(void)uv_timer_stop(&shell->timer);
	else
		(void)uv_timer_start(&shell->timer, on_timer,
		                     deadline_ms > now_ms() ? deadline_ms - now_ms() : 0,
		                     0);
}

/* Right before the loop waits: everything that happened in this turn is known. */
static void
on_prepare(uv_prepare_t *prepare)
{
	struct shell *shell = prepare->data;

	lag_mark(&shell->lag, "the agent's turn");
	turn(shell);
	lag_mark(&shell->lag, NULL);
}

static void
on_check(uv_check_t *check)
{
	struct shell *shell = check->data;

	lag_mark(&shell->lag, "timers");
}

/* ---- Redis ----------------------------------------------------------------------- */

static void
on_ready(struct redis *redis, void *data)
{
	struct shell *shell = data;

	(void)redis;
	if (shell->is_down_told)
		log_info("connected to Redis again");
	shell->is_down_told = false;
	shell->reconnects = 0;
	agent_connected(shell->agent, now_ms());
}

static uint64_t
on_down(struct redis *redis, int error, const char *message, void *data)
{
	struct shell *shell = data;
	uint64_t wait_ms = (uint64_t)RECONNECT_MS << MIN(shell->reconnects, 5);
	char address[REDIS_URL_TEXT_SIZE];

	(void)redis;
	(void)error;
	if (shell->is_closing)
		return REDIS_STAY_DOWN;
	redis_url_print(&shell->options->url, address);
	if (!shell->is_down_told)
		log_warning("no connection to Redis; trying again",
		            LOG_TEXT("address", address), LOG_TEXT("cause", message));
	agent_lost(shell->agent, now_ms());
	if (!shell->is_down_told)
		explain_wait(shell);
	shell->is_down_told = true;
	shell->reconnects++;
	return MIN(wait_ms, RECONNECT_MAX);
}

static void
on_wake(struct span message, void *data)
{
	struct shell *shell = data;

	if (span_equals(message, span_from(shell->pool)))
		agent_wake(shell->agent, now_ms());
}

/* ---- beginning and end ----------------------------------------------------------- */

static void
on_signal(uv_signal_t *handle, int number)
{
	struct shell *shell = handle->data;

	(void)number;
	if (shell->was_stopped)
		log_warning("stopping at once; running jobs are given back");
	stop(shell, "a signal", shell->was_stopped ? 0 : shell->options->drain_ms);
	shell->was_stopped = true;
}

static bool
open_redis(struct shell *shell)
{
	const struct shell_options *options = shell->options;
	struct redis_options redis = {
		.url = options->url,
		.handlers = { on_ready, on_down },
		.data = shell,
		.client_name = "warmq-worker",
		.pipeline_max = options->slots * 8 + PIPELINE_EXTRA,
	};
	struct span ns = span_from(options->config->namespace);
	char channel[CONFIG_NAME_SIZE + 8];

	if (redis_create(&shell->loop, &redis, &shell->redis) < 0)
		return false;
	redis_connect(shell->redis);
	if (store_create(shell->redis, ns, &shell->store) < 0)
		return false;
	(void)snprintf(channel, sizeof channel, "%s:wake", options->config->namespace);
	return redis_listen_create(&shell->loop, &options->url, span_from(channel),
	                           on_wake, shell, &shell->wake) == 0;
}

static bool
open_context(struct shell *shell)
{
	const struct config *config = shell->options->config;
	struct http_options http = {
		.connect_timeout_ms = config->worker.connect_timeout_ms,
		.connections_max = (long)shell->options->slots + 16,
	};

	shell->context = (struct run_context){
		.loop = &shell->loop,
		.config = config,
		.executor = shell->options->executor,
		.store = shell->store,
		.upstreams = shell->options->upstreams,
		.now_ms = context_now_ms,
		.redis_ms = context_redis_ms,
		.on_sent = on_run_sent,
		.on_began = on_run_began,
		.on_ended = on_run_ended,
		.data = shell,
	};
	measure_init(&shell->measure, shell->options->upstreams);
	chain_init(&shell->context.chain);
	child_list_open(&shell->context.children, &shell->loop, shell->options->guard,
	                shell->options->files_inherited);
	return http_create(&shell->loop, &http, &shell->context.http) == 0;
}

static void
open_handles(struct shell *shell)
{
	const int numbers[] = { SIGTERM, SIGINT, hangup_number() };

	(void)uv_prepare_init(&shell->loop, &shell->prepare);
	(void)uv_check_init(&shell->loop, &shell->check);
	(void)uv_timer_init(&shell->loop, &shell->timer);
	shell->prepare.data = shell;
	shell->check.data = shell;
	shell->timer.data = shell;
	(void)uv_prepare_start(&shell->prepare, on_prepare);
	(void)uv_check_start(&shell->check, on_check);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		(void)uv_signal_init(&shell->loop, &shell->signals[i]);
		shell->signals[i].data = shell;
		(void)uv_signal_start(&shell->signals[i], on_signal, numbers[i]);
	}
}

static void
close_runs(struct shell *shell)
{
	tell_ends(shell);
	for (uint32_t i = 0; i < shell->options->slots; i++) {
		struct run *run = &shell->runs[i];

		if (run->state == RUN_FREE)
			continue;
		run_stop(run);
		run_finish(run);
	}
}

static void
close_all(struct shell *shell)
{
	if (shell->is_closing)
		return;
	shell->is_closing = true;
	close_runs(shell);
	health_close(shell->health);
	http_destroy(shell->context.http, NULL, NULL);
	child_list_close(&shell->context.children);
	redis_listen_destroy(shell->wake);
	redis_destroy(shell->redis, NULL, NULL);
	uv_close((uv_handle_t *)&shell->prepare, NULL);
	uv_close((uv_handle_t *)&shell->check, NULL);
	uv_close((uv_handle_t *)&shell->timer, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(shell->signals); i++)
		uv_close((uv_handle_t *)&shell->signals[i], NULL);
}

static void
open_health(struct shell *shell)
{
	shell->sources = (struct health_sources){
		.version = shell->options->version,
		.pool = shell->pool,
		.label = shell->options->label,
		.agent = shell->agent,
		.lag = &shell->lag,
		.measure = &shell->measure,
		.reports = &shell->context.reports,
	};
	shell->health = health_open(&shell->loop, shell->options->config->worker.listen,
	                            &shell->sources);
}

static bool
open_all(struct shell *shell, uint64_t replaces)
{
	return shell_memory_open(shell, now_ms(), replaces) && open_redis(shell) &&
	       open_context(shell);
}

enum shell_exit
shell_run(const struct shell_options *options)
{
	struct shell *shell = calloc(1, sizeof *shell);
	char why[SPOOL_ERROR_SIZE] = "out of memory";
	char queue[STATE_DIR_QUEUE_SIZE];
	uint64_t replaces = 0;

	if (!shell || uv_loop_init(&shell->loop) < 0) {
		log_error("cannot start", LOG_TEXT("cause", "out of memory"));
		free(shell);
		return SHELL_EXIT_FAILED;
	}
	shell->options = options;
	(void)snprintf(shell->pool, sizeof shell->pool, "%s", options->pool);
	state_dir_queue(options->config->namespace, &options->url, queue);
	if (spool_create(&shell->loop, options->state_dir, queue, &shell->spool,
	                 &replaces, why) < 0) {
		log_error("cannot start", LOG_TEXT("cause", why));
		free(shell);
		return SHELL_EXIT_FAILED;
	}
	/* What is open already goes with the process. */
	if (!open_all(shell, replaces)) {
		log_error("cannot start", LOG_TEXT("cause", "out of memory or handles"));
		return SHELL_EXIT_FAILED;
	}
	spool_listen(shell->spool, on_written, shell);
	open_handles(shell);
	open_health(shell);
	log_info("started", LOG_TEXT("pool", shell->pool),
	         LOG_TEXT("executor", options->executor->name),
	         LOG_NUMBER("slots", options->slots),
	         LOG_TEXT("state", spool_dir(shell->spool)));
	(void)uv_run(&shell->loop, UV_RUN_DEFAULT);
	note_farewell(shell->agent, &shell->lag, spool_dir(shell->spool));
	VERIFY(uv_loop_close(&shell->loop) == 0);
	shell_memory_free(shell);
	return SHELL_EXIT_OK;
}
