/* The small Redis and a real one answer the same to the same random commands.
 *
 *   conformance [--sequences N] [--from S]
 *
 * Each sequence starts on an empty keyspace and draws its commands from the table below:
 * eight keys, few values, now and then a key of the wrong type, a word that does not
 * belong, one too few or too many.  A difference prints the seed and the whole sequence.
 * Without redis-server on the PATH the test is skipped (77). */
#include "common/buffer.h"
#include "common/prng.h"
#include "common/text.h"
#include "tests/sim/real_redis.h"
#include "tests/sim/redis_model.h"

#include <stdio.h>
#include <stdlib.h>

#define STEPS_PER_SEQUENCE 60
#define WORDS_MAX          24

/* Capitals stand for what is drawn: K key, V value, F field, N small number, C count,
 * T seconds, S score, B and E bounds, I stream id, P and Q ends of a range of ids.
 * A leading '?' compares without order, '~' integers that may differ by as
 * many ms as have passed. */
static const char *const COMMANDS[] = {
	"SET K V",
	"SET K V NX",
	"SET K V XX GET",
	"SET K V EX T",
	"SET K V KEEPTTL",
	"GET K",
	"GETDEL K",
	"SETEX K T V",
	"PSETEX K T V",
	"SETNX K V",
	"MGET K K K",
	"STRLEN K",
	"APPEND K V",
	"GETRANGE K N N",
	"INCR K",
	"DECR K",
	"INCRBY K N",
	"DECRBY K N",
	"DEL K K",
	"UNLINK K",
	"EXISTS K K",
	"TYPE K",
	"EXPIRE K T",
	"PEXPIRE K T",
	"EXPIRE K N",
	"~TTL K",
	"~PEXPIRETIME K",
	"PERSIST K",
	"?KEYS *",
	"DBSIZE",
	"LPUSH K V V",
	"RPUSH K V V",
	"LPUSHX K V",
	"RPUSHX K V",
	"LPOP K",
	"RPOP K",
	"LPOP K C",
	"RPOP K C",
	"LLEN K",
	"LINDEX K N",
	"LSET K N V",
	"LRANGE K N N",
	"LTRIM K N N",
	"LREM K N V",
	"RPOPLPUSH K K",
	"LMOVE K K LEFT RIGHT",
	"HSET K F V F V",
	"HMSET K F V",
	"HSETNX K F V",
	"HGET K F",
	"HMGET K F F",
	"?HGETALL K",
	"?HKEYS K",
	"?HVALS K",
	"HDEL K F F",
	"HLEN K",
	"HEXISTS K F",
	"HSTRLEN K F",
	"HINCRBY K F N",
	"SADD K V V",
	"SREM K V",
	"SCARD K",
	"SISMEMBER K V",
	"?SMEMBERS K",
	"ZADD K S V S V",
	"ZADD K NX S V",
	"ZADD K XX S V",
	"ZADD K GT S V",
	"ZADD K LT CH S V",
	"ZADD K INCR S V",
	"ZINCRBY K S V",
	"ZREM K V V",
	"ZSCORE K V",
	"ZMSCORE K V V",
	"ZRANK K V",
	"ZCARD K",
	"ZCOUNT K B E",
	"ZRANGE K N N",
	"ZRANGE K N N WITHSCORES",
	"ZRANGE K N N REV",
	"ZRANGE K B E BYSCORE",
	"ZRANGE K E B BYSCORE REV LIMIT C C",
	"ZRANGEBYSCORE K B E LIMIT C C",
	"ZRANGEBYSCORE K B E WITHSCORES",
	"ZREVRANGE K N N",
	"ZREVRANGEBYSCORE K E B",
	"ZREMRANGEBYSCORE K B E",
	"ZREMRANGEBYRANK K N N",
	"ZPOPMIN K",
	"ZPOPMAX K C",
	"XADD K I F V",
	"XADD K NOMKSTREAM I F V F V",
	"XADD K MAXLEN C I F V",
	"XADD K MINID I I F V",
	"XLEN K",
	"XRANGE K P Q",
	"XRANGE K P Q COUNT C",
	"XREVRANGE K Q P COUNT C",
	"XREAD COUNT C STREAMS K I",
	"XREAD STREAMS K K I I",
	"XDEL K I I",
	"XTRIM K MAXLEN C",
	"XTRIM K MINID = I",
	"PING",
	"PUBLISH K V",
	"FLUSHALL",
	"NONSENSE K",
	"FCALL none 1 K",
	"FCALL none N K",
};

static const char *const VALUES[] = { "a", "b", "c", "7", "-3", "2.5", "", "a b", "10" };
static const char *const SCORES[] = { "1", "2", "-1", "2.5", "0", "inf", "1e3", "-inf" };
static const char *const BOUNDS[] = { "-inf", "0", "1", "(1", "(2.5", "2.5" };
static const char *const ENDS[] = { "+inf", "2.5", "(2", "1000", "(1", "2" };
static const char *const IDS[] = { "1-1", "1-2", "2",   "2-*", "3-0", "5-5",
	                           "0-0", "0",   "4-1", "5-*", "9",   "7-7" };
static const char *const LOWS[] = { "-", "1", "1-2", "(1-1", "3" };
static const char *const HIGHS[] = { "+", "5", "4-1", "(5-5", "2" };
static const char *const JUNK[] = {
	"x",   "",  "-1", "1.5",  "99999999999999999999", "NX", "-", "(",
	"nan", "0", "01", "LIMIT"
}; /* " 1" is a number to Redis 7 only */

struct command {
	struct span words[WORDS_MAX];
	char texts[WORDS_MAX][32];
	size_t count;
	bool unordered;
	bool near;
};

static const char *
pick(struct prng *prng, const char *const *words, size_t count)
{
	return words[prng_below(prng, count)];
}

#define PICK(prng, words) pick((prng), (words), ARRAY_SIZE(words))

static void
draw_word(struct prng *prng, char kind, char ret_text[32])
{
	const char *word = "?";
	char text[32] = "";

	switch (kind) {
	case 'K':
		(void)snprintf(text, sizeof text, "key%d", (int)prng_below(prng, 8));
		break;
	case 'F':
		(void)snprintf(text, sizeof text, "f%d", (int)prng_below(prng, 4));
		break;
	case 'N':
		(void)snprintf(text, sizeof text, "%d", (int)prng_below(prng, 9) - 4);
		break;
	case 'C':
		(void)snprintf(text, sizeof text, "%d", (int)prng_below(prng, 4));
		break;
	case 'T':
		(void)snprintf(text, sizeof text, "%d",
		               500000 + (int)prng_below(prng, 9) * 1000);
		break;
	case 'V':
		word = PICK(prng, VALUES);
		break;
	case 'S':
		word = PICK(prng, SCORES);
		break;
	case 'B':
		word = PICK(prng, BOUNDS);
		break;
	case 'E':
		word = PICK(prng, ENDS);
		break;
	case 'I':
		word = PICK(prng, IDS);
		break;
	case 'P':
		word = PICK(prng, LOWS);
		break;
	case 'Q':
		word = PICK(prng, HIGHS);
		break;
	}
	(void)snprintf(ret_text, 32, "%s", text[0] ? text : word);
}

static void
add_word(struct command *command, const char *text)
{
	VERIFY(command->count < WORDS_MAX);
	(void)snprintf(command->texts[command->count], sizeof command->texts[0], "%s",
	               text);
	command->count++;
}

/* Spoils a command: a strange word, a missing one, one too many. */
static void
spoil(struct prng *prng, struct command *command)
{
	switch (prng_below(prng, 20)) {
	case 0:
	case 1:
		if (command->count > 1)
			(void)snprintf(
				command->texts[prng_between(prng, 1, command->count - 1)],
				sizeof command->texts[0], "%s", PICK(prng, JUNK));
		break;
	case 2:
		if (command->count > 1)
			command->count--;
		break;
	case 3:
		add_word(command, PICK(prng, JUNK));
		break;
	}
}

static void
draw(struct prng *prng, struct command *command)
{
	const char *at = PICK(prng, COMMANDS);
	char text[32];

	*command = (struct command){ .unordered = *at == '?', .near = *at == '~' };
	at += command->unordered || command->near;
	while (*at) {
		size_t len = strcspn(at, " ");

		if (len == 1 && *at != '*' && *at != '=')
			draw_word(prng, *at, text);
		else
			(void)snprintf(text, sizeof text, "%.*s", (int)len, at);
		add_word(command, text);
		at += len;
		at += *at == ' ';
	}
	spoil(prng, command);
	for (size_t i = 0; i < command->count; i++)
		command->words[i] = span_from(command->texts[i]);
}

/* A sequence and how far it got, for the report. */
static bool
run_sequence(struct real_redis *real, uint64_t seed)
{
	struct redis_model *model = redis_model_create();
	struct command commands[STEPS_PER_SEQUENCE];
	struct buffer ours = BUFFER_INIT(1 << 20);
	struct buffer theirs = BUFFER_INIT(1 << 20);
	struct prng prng;
	uint64_t began_us;
	bool same = true;
	size_t i;

	prng_init(&prng, seed);
	real_redis_text(real, "FLUSHALL");
	began_us = real_redis_time(real);
	redis_model_set_time(model, began_us);
	for (i = 0; i < STEPS_PER_SEQUENCE && same; i++) {
		struct command *command = &commands[i];

		draw(&prng, command);
		same = real_redis_agrees(real, model, command->words, command->count,
		                         (struct real_redis_rules){
						 .unordered = command->unordered,
						 .near = command->near,
						 .since_us = began_us,
					 },
		                         &ours, &theirs);
	}
	if (!same) {
		fprintf(stderr, "seed %llu differs at its last command:\n",
		        (unsigned long long)seed);
		for (size_t k = 0; k < i; k++) {
			for (size_t w = 0; w < commands[k].count; w++)
				fprintf(stderr, "%s'%s'", w ? " " : "  ",
				        commands[k].texts[w]);
			fprintf(stderr, "\n");
		}
		fprintf(stderr, "model: %s\nredis: %s\n", buffer_text(&ours),
		        buffer_text(&theirs));
	}
	buffer_fini(&ours);
	buffer_fini(&theirs);
	redis_model_destroy(model);
	return same;
}

static uint64_t
option(int argc, char **argv, const char *name, uint64_t fallback)
{
	for (int i = 1; i + 1 < argc; i++) {
		if (strcmp(argv[i], name) == 0)
			return strtoull(argv[i + 1], NULL, 10);
	}
	return fallback;
}

int
main(int argc, char **argv)
{
	uint64_t count = option(argc, argv, "--sequences", 400);
	uint64_t from = option(argc, argv, "--from", 1);
	struct real_redis *real = real_redis_open();
	uint64_t failed = 0;

	if (!real) {
		fprintf(stderr, "There is no redis-server to compare with; skipped.\n");
		return 77;
	}
	for (uint64_t seed = from; seed < from + count && failed < 3; seed++)
		failed += !run_sequence(real, seed);
	real_redis_close(real);
	printf("%llu sequences, %llu differ\n", (unsigned long long)count,
	       (unsigned long long)failed);
	return failed > 0;
}
