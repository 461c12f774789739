#include "scheduler/record_file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static struct record *failing_record;
static const char *failing_path;

static int
write_whole(int file, struct span part)
{
	while (part.len > 0) {
		ssize_t written = write(file, part.data, part.len);

		if (written <= 0)
			return ERR_IO;
		part = (struct span){ part.data + written, part.len - (size_t)written };
	}
	return 0;
}

int
record_file_write(struct record *record, const char *path)
{
	static const char SUFFIX[] = ".new";
	char beside[RECORD_FILE_PATH_SIZE];
	struct span parts[RECORD_PARTS];
	size_t len = strlen(path);
	int err = 0;
	int file;

	if (len + sizeof SUFFIX > sizeof beside)
		return ERR_LIMIT;
	memcpy(beside, path, len);
	memcpy(beside + len, SUFFIX, sizeof SUFFIX);
	file = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (file < 0)
		return ERR_IO;
	record_parts(record, parts);
	for (int i = 0; i < RECORD_PARTS && err == 0; i++)
		err = write_whole(file, parts[i]);
	if (close(file) < 0 && err == 0)
		err = ERR_IO;
	if (err == 0 && rename(beside, path) < 0)
		err = ERR_IO;
	return err;
}

/* The handler is gone when it runs: what it returns to ends the process as it should. */
static void
on_failure(int number)
{
	if (record_file_write(failing_record, failing_path) == 0)
		(void)write_whole(STDERR_FILENO, SPAN("the record was written\n"));
	(void)raise(number);
}

void
record_file_on_failure(struct record *record, const char *path)
{
	static const int NUMBERS[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE };
	struct sigaction action = { .sa_handler = on_failure,
		                    .sa_flags = (int)SA_RESETHAND };

	failing_record = record;
	failing_path = path;
	for (size_t i = 0; i < ARRAY_SIZE(NUMBERS); i++)
		(void)sigaction(NUMBERS[i], &action, NULL);
}
