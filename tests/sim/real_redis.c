#include "tests/sim/real_redis.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_WAIT_MS 10000

struct real_redis {
	pid_t pid;
	redisContext *context;
	char directory[64];
	bool is_modelled; /* of the series whose words the small Redis has: 7.0 */
};

static void
die(const char *what)
{
	fprintf(stderr, "redis-server: %s\n", what);
	exit(1);
}

static void
run_server(const char *directory)
{
	char socket[96];

	(void)snprintf(socket, sizeof socket, "%s/redis.sock", directory);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!freopen("/dev/null", "w", stdout))
		_exit(127);
	execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", socket,
	       "--dir", directory, "--save", "", "--appendonly", "no", (char *)NULL);
	_exit(127);
}

/* Answers NULL if the server ended before it listened. */
static redisContext *
wait_for_server(const struct real_redis *real)
{
	char socket[96];

	(void)snprintf(socket, sizeof socket, "%s/redis.sock", real->directory);
	for (int waited_ms = 0; waited_ms < START_WAIT_MS; waited_ms += 10) {
		redisContext *context = redisConnectUnix(socket);

		if (context && !context->err)
			return context;
		if (context)
			redisFree(context);
		if (waitpid(real->pid, NULL, WNOHANG) == real->pid)
			return NULL;
		usleep(10000);
	}
	die("does not answer within ten seconds");
	return NULL;
}

static bool
is_of_series(redisContext *context, const char *series)
{
	redisReply *reply = redisCommand(context, "INFO server");
	bool is;

	if (!reply || reply->type != REDIS_REPLY_STRING)
		die("does not tell its version");
	is = strstr(reply->str, series) != NULL;
	freeReplyObject(reply);
	return is;
}

struct real_redis *
real_redis_open(void)
{
	struct real_redis *real = calloc(1, sizeof *real);

	VERIFY(real);
	(void)snprintf(real->directory, sizeof real->directory, "/tmp/warmq-test-XXXXXX");
	if (!mkdtemp(real->directory))
		die("no temporary directory");
	real->pid = fork();
	if (real->pid < 0)
		die("cannot fork");
	if (real->pid == 0)
		run_server(real->directory);
	real->context = wait_for_server(real);
	if (real->context) {
		real->is_modelled = is_of_series(real->context, "redis_version:7.0.");
		return real;
	}
	real->pid = 0;
	real_redis_close(real);
	return NULL;
}

void
real_redis_close(struct real_redis *real)
{
	char path[96];

	if (real->context)
		redisFree(real->context);
	if (real->pid > 0) {
		(void)kill(real->pid, SIGKILL);
		(void)waitpid(real->pid, NULL, 0);
	}
	(void)snprintf(path, sizeof path, "%s/redis.sock", real->directory);
	(void)unlink(path);
	(void)rmdir(real->directory);
	free(real);
}

static redisReply *
ask(struct real_redis *real, const struct span *argv, size_t argc)
{
	const char *words[256];
	size_t sizes[256];
	redisReply *reply;

	VERIFY(argc <= ARRAY_SIZE(words));
	for (size_t i = 0; i < argc; i++) {
		words[i] = argv[i].data;
		sizes[i] = argv[i].len;
	}
	reply = redisCommandArgv(real->context, (int)argc, words, sizes);
	if (!reply)
		die(real->context->errstr);
	return reply;
}

void
real_redis_text(struct real_redis *real, const char *command)
{
	struct span word = span_from(command);

	freeReplyObject(ask(real, &word, 1));
}

uint64_t
real_redis_time(struct real_redis *real)
{
	struct span word = SPAN("TIME");
	redisReply *reply = ask(real, &word, 1);
	uint64_t now_us;

	VERIFY(reply->type == REDIS_REPLY_ARRAY && reply->elements == 2);
	now_us = strtoull(reply->element[0]->str, NULL, 10) * 1000000 +
	         strtoull(reply->element[1]->str, NULL, 10);
	freeReplyObject(reply);
	return now_us;
}

void
real_redis_load(struct real_redis *real, struct span library)
{
	struct span words[] = { SPAN("FUNCTION"), SPAN("LOAD"), SPAN("REPLACE"),
		                library };
	redisReply *reply = ask(real, words, ARRAY_SIZE(words));

	if (reply->type == REDIS_REPLY_ERROR)
		die(reply->str);
	freeReplyObject(reply);
}

static void
print_text(struct buffer *out, struct span text)
{
	buffer_append_byte(out, '"');
	buffer_append_escaped(out, text);
	buffer_append_byte(out, '"');
}

static void
print_ours(const struct reply *reply, struct buffer *out)
{
	switch (reply->kind) {
	case REPLY_NIL:
		buffer_append_text(out, "nil");
		break;
	case REPLY_INTEGER:
		buffer_append_signed(out, reply->integer);
		break;
	case REPLY_TEXT:
		if (redis_model_is_status(reply))
			buffer_append_byte(out, '+');
		print_text(out, reply->text);
		break;
	case REPLY_ERROR:
		buffer_append_byte(out, '-');
		buffer_append_escaped(out, reply->text);
		break;
	case REPLY_ARRAY:
		buffer_append_byte(out, '[');
		for (size_t i = 0; i < reply->count; i++) {
			buffer_append_text(out, i ? " " : "");
			print_ours(&reply->items[i], out);
		}
		buffer_append_byte(out, ']');
		break;
	}
}

static void
print_theirs(const redisReply *reply, struct buffer *out)
{
	struct span text = { reply->str, reply->len };

	switch (reply->type) {
	case REDIS_REPLY_NIL:
		buffer_append_text(out, "nil");
		break;
	case REDIS_REPLY_INTEGER:
		buffer_append_signed(out, reply->integer);
		break;
	case REDIS_REPLY_STATUS:
		buffer_append_byte(out, '+');
		print_text(out, text);
		break;
	case REDIS_REPLY_STRING:
		print_text(out, text);
		break;
	case REDIS_REPLY_ERROR:
		buffer_append_byte(out, '-');
		buffer_append_escaped(out, text);
		break;
	case REDIS_REPLY_ARRAY:
		buffer_append_byte(out, '[');
		for (size_t i = 0; i < reply->elements; i++) {
			buffer_append_text(out, i ? " " : "");
			print_theirs(reply->element[i], out);
		}
		buffer_append_byte(out, ']');
		break;
	}
}

static int
compare_texts(const void *a, const void *b)
{
	const char *const *left = a;
	const char *const *right = b;

	return strcmp(*left, *right);
}

/* Puts the words of a printed flat array into order; HGETALL's pairs fall apart, which
 * its own fields and values cannot hide. */
static void
sort_words(struct buffer *text)
{
	char *words[512];
	size_t count = 0;
	char *copy = strdup(buffer_text(text));
	char *state = NULL;

	VERIFY(copy);
	for (char *word = strtok_r(copy, "[] ", &state); word;
	     word = strtok_r(NULL, "[] ", &state)) {
		VERIFY(count < ARRAY_SIZE(words));
		words[count++] = word;
	}
	qsort(words, count, sizeof *words, compare_texts);
	buffer_clear(text);
	for (size_t i = 0; i < count; i++) {
		buffer_append_text(text, words[i]);
		buffer_append_byte(text, ' ');
	}
	free(copy);
}

static bool
is_error(const struct buffer *text)
{
	return text->len > 0 && text->data[0] == '-' &&
	       !(text->len > 1 && text->data[1] >= '0' && text->data[1] <= '9');
}

/* Of an error the beginning must agree.  Later series word their own errors differently
 * and know more options; there, and for those only, that it is one must do. */
static bool
errors_agree(const struct real_redis *real, const char *a, const char *b)
{
	if (!real->is_modelled && strncmp(a, "-ERR ", 5) == 0 &&
	    strncmp(b, "-ERR ", 5) == 0)
		return true;
	return strncmp(a, b, strlen(a)) == 0;
}

/* A time that the server was told to reckon from its own clock, or the rest of one: the
 * model took it from the instant at which the sequence began.  Below zero are words:
 * there is no key, it has no end. */
static bool
times_agree(struct real_redis *real, int64_t ours, int64_t theirs, uint64_t since_us)
{
	uint64_t difference = (uint64_t)llabs(ours - theirs);

	if (ours < 0 || theirs < 0)
		return ours == theirs;
	return difference <= 2 ||
	       difference <= (real_redis_time(real) - since_us) / 1000 + 2;
}

static bool
texts_agree(struct real_redis *real, const struct buffer *ours,
            const struct buffer *theirs, struct real_redis_rules rules)
{
	const char *a = buffer_text(ours);
	const char *b = buffer_text(theirs);

	if (is_error(ours) && is_error(theirs))
		return errors_agree(real, a, b);
	if (rules.near && !is_error(ours) && !is_error(theirs))
		return times_agree(real, strtoll(a, NULL, 10), strtoll(b, NULL, 10),
		                   rules.since_us);
	return strcmp(a, b) == 0;
}

bool
real_redis_agrees(struct real_redis *real, struct redis_model *model,
                  const struct span *argv, size_t argc, struct real_redis_rules rules,
                  struct buffer *ret_ours, struct buffer *ret_theirs)
{
	redisReply *reply = ask(real, argv, argc);

	buffer_clear(ret_ours);
	buffer_clear(ret_theirs);
	print_theirs(reply, ret_theirs);
	freeReplyObject(reply);
	print_ours(redis_model_call(model, argv, argc), ret_ours);
	if (rules.unordered && !is_error(ret_ours) && !is_error(ret_theirs)) {
		sort_words(ret_ours);
		sort_words(ret_theirs);
	}
	return texts_agree(real, ret_ours, ret_theirs, rules);
}
