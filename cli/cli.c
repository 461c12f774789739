#include "cli/cli.h"

#include "common/codec/protocol.h"
#include "common/io/hangup.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

int
cli_fail(enum cli_exit code, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	VERIFY(len >= 0);
	fputs("warmq: ", stderr);
	cli_put_safely(stderr, (struct span){ text, (size_t)len });
	fputc('\n', stderr);
	free(text);
	return (int)code;
}

uint64_t
cli_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void
on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

bool
cli_is_interrupted(void)
{
	return interrupted != 0;
}

void
cli_catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(hangup_number(), &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int
cli_check_job_id(const char *text)
{
	struct protocol_job_id id;

	if (protocol_parse_job_id(span_from(text), &id) == 0)
		return CLI_OK;
	return cli_fail(CLI_USAGE,
	                "\"%.60s\" is no id of a job: `warmq enqueue` and XADD answer "
	                "one, such as 1764450000000-0.",
	                text);
}
