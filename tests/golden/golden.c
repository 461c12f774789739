#include "tests/golden/golden.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

struct span
golden_load(const char *path, char *room, size_t size)
{
	FILE *file = fopen(path, "rb");
	size_t len;

	if (!file) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	len = fread(room, 1, size - 1, file);
	(void)fclose(file);
	VERIFY(len < size - 1);
	room[len] = '\0';
	return (struct span){ room, len };
}

void
golden_save(const char *path, struct span bytes)
{
	FILE *file = fopen(path, "wb");

	VERIFY(file != NULL);
	VERIFY(fwrite(bytes.data, 1, bytes.len, file) == bytes.len);
	VERIFY(fclose(file) == 0);
}

bool
golden_updates(void)
{
	return getenv("UPDATE") != NULL;
}

/* Cuts the ending off; false if the name has another one. */
static bool
cut_ending(char *name, const char *ending)
{
	char *dot = strrchr(name, '.');

	if (!dot || strcmp(dot, ending) != 0)
		return false;
	*dot = '\0';
	return true;
}

int
golden_run(int argc, char **argv, const char *ending, golden_check_fn *check)
{
	struct dirent **entries;
	int count, passed = 0, failed = 0;

	VERIFY(argc == 2);
	count = scandir(argv[1], &entries, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		char *name = entries[i]->d_name;

		if (cut_ending(name, ending)) {
			if (check(argv[1], name))
				passed++;
			else
				failed++;
		}
		free(entries[i]);
	}
	VERIFY(passed + failed > 0);
	free(entries);
	printf("cases: %d passed, %d failed\n", passed, failed);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
