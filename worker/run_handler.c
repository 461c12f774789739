#include "worker/run_handler.h"

#include "common/codec/splice.h"
#include "common/io/log.h"
#include "worker/child.h"
#include "worker/run_log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENVIRONMENT_MAX 4096
#define EXTRA_MAX       8
#define EXTRA_SIZE      1024
#define LAST_LINE_SIZE  256
#define SPAWN_RETRY_MS  5000
#define LINGER_MS       1000 /* for output behind the end of the process */
#define EXIT_RETRY      75   /* EX_TEMPFAIL */

struct work {
	struct child child; /* the first: on_exit finds its work by it */
	struct run *run;    /* NULL: nobody waits for it any more */
	uv_pipe_t in, out, err;
	uv_timer_t timer;
	uint32_t handles; /* not closed yet */
	uv_write_t write;
	struct buffer body;
	struct buffer output; /* as much as a result may have, and a byte */
	uint64_t output_size;
	char line[LAST_LINE_SIZE]; /* of stderr, being read */
	size_t line_len;
	char last_line[LAST_LINE_SIZE];
	char chunk[65536];
	bool has_exited, out_ended, err_ended;
	bool was_timed_out;
	int status; /* as of waitpid(2), once it has exited */
};

/* ---- the body -------------------------------------------------------------------- */

/* Nothing is added for a handler: it gets what the producer sent. */
static int
write_body(const struct run *run, struct buffer *out)
{
	const struct envelope *envelope = &run->envelope;
	struct part_px px[PART_NODES_MAX];
	struct dialect_traits traits;
	struct splice_report report;
	struct part_own own;
	int err;

	if (envelope->body_kind != ENVELOPE_OWN)
		return buffer_append(out, envelope->body);
	err = part_own_read(envelope->body, &own);
	if (err < 0)
		return err;
	traits = (struct dialect_traits){ .dialect = own.dialect };
	for (unsigned i = 0; i < run->load->segments_count; i++)
		px[i] = run->load->segments[i].px;
	err = splice_render(
		&(struct splice_request){
			.traits = &traits,
			.px = px,
			.px_count = run->load->segments_count,
			.own = &own,
			.markers_never = true,
			.stream_never = true,
		},
		out, &report);
	return err < 0 ? err : buffer_error(out);
}

/* ---- the end --------------------------------------------------------------------- */

static void
free_work(struct work *work)
{
	buffer_fini(&work->body);
	buffer_fini(&work->output);
	free(work);
}

static void
on_closed(uv_handle_t *handle)
{
	struct work *work = handle->data;

	if (--work->handles == 0)
		free_work(work);
}

static void
close_handle(uv_handle_t *handle)
{
	if (!uv_is_closing(handle))
		uv_close(handle, on_closed);
}

/* Behind the end of the process. */
static void
close_work(struct work *work)
{
	child_release(&work->child);
	close_handle((uv_handle_t *)&work->in);
	close_handle((uv_handle_t *)&work->out);
	close_handle((uv_handle_t *)&work->err);
	close_handle((uv_handle_t *)&work->timer);
}

static void
kill_group(const struct work *work, int number)
{
	if (!work->has_exited)
		(void)kill(-work->child.pid, number);
}

static void
on_grace_over(uv_timer_t *timer)
{
	struct work *work = timer->data;

	if (work->has_exited)
		close_work(work);
	else
		kill_group(work, SIGKILL);
}

static void
end_done(struct work *work, struct run *run)
{
	struct report *report = run_report(run);
	struct report_facts facts = run_facts(run, "done");
	struct span body = buffer_span(&work->output);

	body.len = (size_t)MAX(work->output_size, body.len);
	if (!report || report_write(report, &facts,
	                            body.len > REPORT_RESULT_MAX ? REPORT_TEXT
	                                                         : report_format_of(body),
	                            body) < 0) {
		run_fail(run, AGENT_RETRY, "memory",
		         SPAN("There was no memory for the result."), 0, 0);
		return;
	}
	run_end(run, AGENT_DONE);
}

static void
end_failed(struct work *work, struct run *run)
{
	char reason[32], text[LAST_LINE_SIZE + 128];
	int status = WIFEXITED(work->status) ? WEXITSTATUS(work->status) : 0;
	int number = WIFSIGNALED(work->status) ? WTERMSIG(work->status) : 0;

	if (work->was_timed_out) {
		run_fail(run, AGENT_RETRY, "timeout",
		         SPAN("The handler did not end within the job's time-out."), 0,
		         0);
		return;
	}
	if (number != 0) {
		(void)snprintf(reason, sizeof reason, "signal_%d", number);
		(void)snprintf(text, sizeof text, "The handler died of signal %d.%s%s",
		               number, work->last_line[0] ? " " : "", work->last_line);
	} else {
		(void)snprintf(reason, sizeof reason, "exit_%d", status);
		(void)snprintf(text, sizeof text, "The handler ended with status %d.%s%s",
		               status, work->last_line[0] ? " " : "", work->last_line);
	}
	run_fail(run, number != 0 || status == EXIT_RETRY ? AGENT_RETRY : AGENT_FATAL,
	         reason, span_from(text), 0, 0);
}

static void
finish(struct work *work)
{
	struct run *run = work->run;

	if (run) {
		work->run = NULL;
		run->work = NULL;
		if (work->status == 0 && !work->was_timed_out)
			end_done(work, run);
		else
			end_failed(work, run);
	}
	close_work(work);
}

static void
finish_if_over(struct work *work)
{
	if (work->has_exited && work->out_ended && work->err_ended)
		finish(work);
}

static void
on_linger_over(uv_timer_t *timer)
{
	finish(timer->data);
}

static void
on_exit_of_child(struct child *child, int status)
{
	struct work *work = (struct work *)child; /* its first member */

	work->status = status;
	work->has_exited = true;
	/* A child of it may hold the pipes open for ever. */
	(void)uv_timer_start(&work->timer, on_linger_over, LINGER_MS, 0);
	finish_if_over(work);
}

static void
on_timeout(uv_timer_t *timer)
{
	struct work *work = timer->data;

	work->was_timed_out = true;
	kill_group(work, SIGTERM);
	(void)uv_timer_start(&work->timer, on_grace_over, HANDLER_GRACE_MS, 0);
}

/* ---- input and output ------------------------------------------------------------ */

static void
on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *ret_buffer)
{
	struct work *work = handle->data;

	(void)size;
	*ret_buffer = uv_buf_init(work->chunk, sizeof work->chunk);
}

static void
on_output(uv_stream_t *stream, ssize_t len, const uv_buf_t *bytes)
{
	struct work *work = stream->data;
	size_t room = REPORT_RESULT_MAX + 1 - work->output.len;

	if (len < 0) {
		work->out_ended = true;
		finish_if_over(work);
		return;
	}
	work->output_size += (uint64_t)len;
	(void)buffer_append(&work->output,
	                    (struct span){ bytes->base, MIN((size_t)len, room) });
}

static void
end_line(struct work *work)
{
	struct span line = { work->line, work->line_len };

	work->line_len = 0;
	if (line.len == 0)
		return;
	memcpy(work->last_line, line.data, line.len);
	work->last_line[line.len] = '\0';
	if (work->run)
		run_log_info(work->run, "a handler says", LOG_SPAN("text", line));
}

static void
on_error_output(uv_stream_t *stream, ssize_t len, const uv_buf_t *bytes)
{
	struct work *work = stream->data;

	if (len < 0) {
		end_line(work);
		work->err_ended = true;
		finish_if_over(work);
		return;
	}
	for (ssize_t i = 0; i < len; i++) {
		if (bytes->base[i] == '\n')
			end_line(work);
		else if (work->line_len < sizeof work->line - 1)
			work->line[work->line_len++] = bytes->base[i];
	}
}

/* A handler that does not read its input closes the pipe: that is its own affair. */
static void
on_written(uv_write_t *write, int status)
{
	struct work *work = write->data;

	(void)status;
	close_handle((uv_handle_t *)&work->in);
}

/* ---- the beginning --------------------------------------------------------------- */

static void
put(char **environment, size_t *count, char *text, const char *name, struct span value)
{
	if (value.len == 0)
		return;
	(void)snprintf(text, EXTRA_SIZE, "%s=%.*s", name, (int)value.len, value.data);
	environment[(*count)++] = text;
}

static int
spawn(struct run *run, struct work *work)
{
	const struct config_worker *config = &run->context->config->worker;
	const struct envelope *envelope = &run->envelope;
	char *words[CONFIG_HANDLER_MAX + 1] = { 0 };
	char *environment[ENVIRONMENT_MAX + EXTRA_MAX + 1] = { 0 };
	char extra[EXTRA_MAX][EXTRA_SIZE];
	char attempt[24];
	size_t count = 0;

	/* exec's type lacks the const; it only reads them. */
	for (size_t i = 0; i < config->handler_count; i++)
		words[i] = (char *)(uintptr_t)config->handler[i];
	while (count < ENVIRONMENT_MAX && environ[count]) {
		environment[count] = environ[count];
		count++;
	}
	(void)snprintf(attempt, sizeof attempt, "%u", run->load->attempts + 1);
	put(environment, &count, extra[0], "WARMQ_JOB", run_id(run));
	put(environment, &count, extra[1], "WARMQ_ROUTE", envelope->route);
	put(environment, &count, extra[2], "WARMQ_UPSTREAM", envelope->upstream);
	put(environment, &count, extra[3], "WARMQ_REF", envelope->ref);
	put(environment, &count, extra[4], "WARMQ_HANDLER", envelope->handler);
	put(environment, &count, extra[5], "WARMQ_ATTEMPT", span_from(attempt));
	put(environment, &count, extra[6], "TRACEPARENT", envelope->traceparent);
	work->child.on_exit = on_exit_of_child;
	return child_start(&run->context->children, words, environment, &work->child);
}

/* From here on the descriptors are libuv's. */
static void
open_handles(struct run *run, struct work *work)
{
	uv_loop_t *loop = run->context->loop;

	(void)uv_pipe_init(loop, &work->in, 0);
	(void)uv_pipe_init(loop, &work->out, 0);
	(void)uv_pipe_init(loop, &work->err, 0);
	(void)uv_timer_init(loop, &work->timer);
	work->in.data = work;
	work->out.data = work;
	work->err.data = work;
	work->timer.data = work;
	work->write.data = work;
	work->handles = 4;
	VERIFY(uv_pipe_open(&work->in, work->child.in) == 0);
	VERIFY(uv_pipe_open(&work->out, work->child.out) == 0);
	VERIFY(uv_pipe_open(&work->err, work->child.err) == 0);
}

static void
begin_io(struct run *run, struct work *work)
{
	uv_buf_t body = uv_buf_init(work->body.data, (unsigned)work->body.len);

	(void)uv_read_start((uv_stream_t *)&work->out, on_alloc, on_output);
	(void)uv_read_start((uv_stream_t *)&work->err, on_alloc, on_error_output);
	if (work->body.len == 0 ||
	    uv_write(&work->write, (uv_stream_t *)&work->in, &body, 1, on_written) < 0)
		close_handle((uv_handle_t *)&work->in);
	(void)uv_timer_start(&work->timer, on_timeout, run_timeout_ms(run), 0);
}

static void
begin(struct run *run)
{
	struct protocol_usage usage = protocol_usage_none();
	struct work *work = calloc(1, sizeof *work);
	int err;

	if (!work) {
		run_fail(run, AGENT_UNSENT, "memory",
		         SPAN("There was no memory for the handler."), SPAWN_RETRY_MS, 0);
		return;
	}
	buffer_init(&work->body, BUFFER_SIZE_DEFAULT);
	buffer_init(&work->output, REPORT_RESULT_MAX + 2);
	err = write_body(run, &work->body);
	if (err < 0) {
		free_work(work);
		run_fail(run, AGENT_FATAL, "malformed", span_from(error_text(err)), 0, 0);
		return;
	}
	if (spawn(run, work) < 0) {
		run_log_error(
			run,
			"the handler cannot be started; the job goes back to its queue",
			LOG_TEXT("program", run->context->config->worker.handler[0]),
			LOG_TEXT("cause", strerror(errno)));
		free_work(work);
		run->has_missed = true;
		run_fail(run, AGENT_UNSENT, "handler",
		         SPAN("The handler could not be started."), SPAWN_RETRY_MS, 0);
		return;
	}
	open_handles(run, work);
	work->run = run;
	run->work = work;
	run_sent(run);
	run_began(run, &usage);
	begin_io(run, work);
}

/* The process is asked to end, and nobody waits for what it still says. */
static void
stop(struct run *run)
{
	struct work *work = run->work;

	run->work = NULL;
	work->run = NULL;
	kill_group(work, SIGTERM);
	(void)uv_timer_start(&work->timer, on_grace_over, HANDLER_GRACE_MS, 0);
}

const struct executor run_handler_executor = {
	.name = "handler",
	.wants = STORE_PAYLOAD | STORE_SEGMENTS | STORE_PAST,
	.files_per_slot = 5, /* three pipes; at the start, two more */
	.begin = begin,
	.stop = stop,
};
