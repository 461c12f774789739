#include "cli/file.h"

#include <errno.h>
#include <stdio.h>

#define CHUNK_SIZE ((size_t)1 << 16)

int
file_read(const char *path, struct buffer *out)
{
	FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	size_t len = 1;
	int cause = 0;

	if (!file)
		return cli_fail(CLI_USAGE, "Cannot read %s: %s.", path, strerror(errno));
	while (len > 0) {
		char *room = buffer_reserve(out, CHUNK_SIZE);

		if (!room)
			break;
		len = fread(room, 1, CHUNK_SIZE, file);
		buffer_commit(out, len);
	}
	if (ferror(file))
		cause = errno;
	if (file != stdin)
		fclose(file);
	if (cause)
		return cli_fail(CLI_USAGE, "Cannot read %s: %s.", path, strerror(cause));
	if (buffer_error(out) < 0)
		return cli_fail(CLI_USAGE, "%s is larger than %zu MiB.", path,
		                out->size_max >> 20);
	return CLI_OK;
}
