#include "tests/lib/temp.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char directory[TEMP_PATH_SIZE];
static pid_t owner;

static int
remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
	(void)info;
	(void)kind;
	(void)walk;
	return remove(path);
}

static void
remove_all(void)
{
	if (getpid() == owner) /* Check forks: children must not clean up */
		(void)nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *
temp_dir(void)
{
	const char *base = getenv("TMPDIR");

	if (directory[0])
		return directory;
	if (!base || strlen(base) > 60)
		base = "/tmp";
	(void)snprintf(directory, sizeof directory, "%s/wq-XXXXXX", base);
	if (!mkdtemp(directory)) {
		perror(directory);
		exit(EXIT_FAILURE);
	}
	owner = getpid();
	(void)atexit(remove_all);
	return directory;
}

void
temp_path(const char *name, char ret_path[TEMP_PATH_SIZE])
{
	int len = snprintf(ret_path, TEMP_PATH_SIZE, "%s/%s", temp_dir(), name);

	VERIFY(len > 0);
	VERIFY(len < TEMP_PATH_SIZE);
}
