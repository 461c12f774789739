/* The engine that needs no clang: corpus files first, then mutations of them.
 *
 *   fuzz_tape CORPUS_DIRECTORY [ROUNDS [SEED]]
 *
 * When the target aborts, the input is in `crash-<target>` in the working directory. */
#include "common/prng.h"
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define INPUTS_MAX   512
#define INPUT_SIZE   65536
#define ROUNDS       20000
#define TRICKS_COUNT 7

struct input {
	uint8_t *data;
	size_t size;
};

static struct input inputs[INPUTS_MAX];
static size_t inputs_count;
static uint8_t now[INPUT_SIZE];
static size_t now_size;
static char crash_name[64];

static void
on_abort(int signal_number)
{
	FILE *file = fopen(crash_name, "wb"); /* we die anyway */

	(void)signal_number;
	if (file) {
		(void)fwrite(now, 1, now_size, file);
		(void)fclose(file);
	}
	(void)!write(STDERR_FILENO, "the input is in ", 16);
	(void)!write(STDERR_FILENO, crash_name, strlen(crash_name));
	(void)!write(STDERR_FILENO, "\n", 1);
	_exit(1);
}

static void
run(void)
{
	uint8_t *exact = malloc(now_size ? now_size : 1); /* so that ASan sees its end */

	if (!exact)
		abort();
	memcpy(exact, now, now_size);
	(void)LLVMFuzzerTestOneInput(exact, now_size);
	free(exact);
}

static void
load(const char *directory, const char *name)
{
	char path[4096];
	FILE *file;
	struct input *input = &inputs[inputs_count];

	(void)snprintf(path, sizeof path, "%s/%s", directory, name);
	file = fopen(path, "rb");
	if (!file) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(EXIT_FAILURE);
	}
	input->data = malloc(INPUT_SIZE);
	if (!input->data)
		abort();
	input->size = fread(input->data, 1, INPUT_SIZE, file);
	if (fgetc(file) != EOF) {
		fprintf(stderr, "%s: has more than %d bytes\n", path, INPUT_SIZE);
		exit(EXIT_FAILURE);
	}
	(void)fclose(file);
	inputs_count++;
}

static int
keep(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void
load_all(const char *directory)
{
	struct dirent **names;
	int count = scandir(directory, &names, keep, alphasort);

	if (count < 0) {
		fprintf(stderr, "%s: %s\n", directory, strerror(errno));
		exit(EXIT_FAILURE);
	}
	if (count == 0 || count > INPUTS_MAX) {
		fprintf(stderr, "%s: has %d inputs; 1 to %d can be replayed\n", directory,
		        count, INPUTS_MAX);
		exit(EXIT_FAILURE);
	}
	for (int i = 0; i < count; i++) {
		load(directory, names[i]->d_name);
		free(names[i]);
	}
	free(names);
}

static void
remove_run(struct prng *prng)
{
	size_t from = (size_t)prng_below(prng, now_size);
	size_t len = 1 + (size_t)prng_below(prng, MIN(now_size - from, 16));

	memmove(now + from, now + from + len, now_size - from - len);
	now_size -= len;
}

/* Copies a run of some input (perhaps this one) to a place in this one. */
static void
insert_run(struct prng *prng)
{
	const struct input *source = &inputs[prng_below(prng, inputs_count)];
	size_t from, len, to;

	if (source->size == 0)
		return;
	from = (size_t)prng_below(prng, source->size);
	len = 1 + (size_t)prng_below(prng, MIN(source->size - from, 64));
	to = (size_t)prng_below(prng, now_size + 1);
	if (now_size + len > INPUT_SIZE)
		return;
	memmove(now + to + len, now + to, now_size - to);
	memcpy(now + to, source->data + from, len);
	now_size += len;
}

static void
mutate(struct prng *prng)
{
	static const char marks[] = "{}[]\",:\\ \n\r0-e.unt\xff\xc3\x80\xed";
	size_t at;

	if (now_size == 0) {
		insert_run(prng);
		return;
	}
	at = (size_t)prng_below(prng, now_size);
	switch (prng_below(prng, TRICKS_COUNT)) {
	case 0:
		now[at] ^= (uint8_t)(1u << prng_below(prng, 8));
		break;
	case 1:
		now[at] = (uint8_t)prng_next(prng);
		break;
	case 2:
		now[at] = (uint8_t)marks[prng_below(prng, sizeof marks - 1)];
		break;
	case 3:
		remove_run(prng);
		break;
	case 4:
		now_size = at;
		break;
	default:
		insert_run(prng);
		break;
	}
}

static void
hunt(uint64_t rounds, uint64_t seed)
{
	struct prng prng;

	prng_init(&prng, seed);
	for (uint64_t round = 0; round < rounds; round++) {
		const struct input *input = &inputs[prng_below(&prng, inputs_count)];
		uint64_t tricks = 1 + prng_below(&prng, 6);

		memcpy(now, input->data, input->size);
		now_size = input->size;
		for (uint64_t i = 0; i < tricks; i++)
			mutate(&prng);
		run();
	}
}

int
main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');

	if (argc < 2) {
		fprintf(stderr, "usage: %s CORPUS_DIRECTORY [ROUNDS [SEED]]\n", argv[0]);
		return EXIT_FAILURE;
	}
	(void)snprintf(crash_name, sizeof crash_name, "crash-%s",
	               slash ? slash + 1 : argv[0]);
	(void)signal(SIGABRT, on_abort);
	load_all(argv[1]);
	for (size_t i = 0; i < inputs_count; i++) {
		memcpy(now, inputs[i].data, inputs[i].size);
		now_size = inputs[i].size;
		run();
	}
	hunt(argc > 2 ? strtoull(argv[2], NULL, 10) : ROUNDS,
	     argc > 3 ? strtoull(argv[3], NULL, 10) : 1);
	for (size_t i = 0; i < inputs_count; i++)
		free(inputs[i].data);
	return EXIT_SUCCESS;
}
