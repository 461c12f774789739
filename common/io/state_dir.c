#include "common/io/state_dir.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME_MAX_LEN 100

void
state_dir_queue(const char *ns, const struct redis_url *url,
                char ret_queue[STATE_DIR_QUEUE_SIZE])
{
	char address[REDIS_URL_TEXT_SIZE];

	redis_url_print(url, address);
	(void)snprintf(ret_queue, STATE_DIR_QUEUE_SIZE, "%s at %s", ns, address);
}

/* People try things out without being root. */
const char *
state_dir_choose(const char *configured, char ret_path[STATE_DIR_PATH_SIZE])
{
	const char *home = getenv("XDG_STATE_HOME");
	const char *fallback = "";

	if (strcmp(configured, STATE_DIR_DEFAULT) != 0 ||
	    access(STATE_DIR_DEFAULT, W_OK) == 0 || geteuid() == 0)
		return configured;
	if (!home) {
		home = getenv("HOME");
		fallback = "/.local/state";
	}
	if (!home)
		return configured;
	(void)snprintf(ret_path, STATE_DIR_PATH_SIZE, "%s%s/warmq", home, fallback);
	return ret_path;
}

bool
state_dir_is_result(const char *name)
{
	static const char end[] = ".result";
	size_t len = strlen(name), end_len = sizeof end - 1;

	return len > end_len && len < NAME_MAX_LEN &&
	       strcmp(name + len - end_len, end) == 0;
}

void
state_dir_read_queue(const char *path, char ret_queue[STATE_DIR_QUEUE_SIZE])
{
	char name[STATE_DIR_PATH_SIZE];
	size_t len = 0;
	FILE *file;

	(void)snprintf(name, sizeof name, "%s/queue", path);
	file = fopen(name, "re");
	if (file) {
		len = fread(ret_queue, 1, STATE_DIR_QUEUE_SIZE - 1, file);
		(void)fclose(file);
	}
	while (len > 0 && ret_queue[len - 1] == '\n') /* somebody has edited it */
		len--;
	ret_queue[len] = '\0';
}

static void
count(struct state_dir_rest *rest, DIR *dir)
{
	const struct dirent *entry;
	time_t now = time(NULL);
	struct stat stat;

	while ((entry = readdir(dir)) != NULL) {
		if (!state_dir_is_result(entry->d_name) ||
		    fstatat(dirfd(dir), entry->d_name, &stat, 0) < 0)
			continue; /* it was delivered in this moment */
		rest->results++;
		if (now > stat.st_mtime)
			rest->age_s = MAX(rest->age_s, (uint64_t)(now - stat.st_mtime));
	}
}

void
state_dir_look(const char *state_dir,
               void (*tell)(const struct state_dir_rest *rest, void *data), void *data)
{
	char path[STATE_DIR_PATH_SIZE - 8], queue[STATE_DIR_QUEUE_SIZE];

	for (int i = 0; i < STATE_DIR_WORKERS_MAX; i++) {
		struct state_dir_rest rest = { .path = path, .queue = queue };
		DIR *dir;

		(void)snprintf(path, sizeof path, "%s/worker.%d", state_dir, i);
		dir = opendir(path);
		if (!dir)
			continue;
		count(&rest, dir);
		(void)closedir(dir);
		state_dir_read_queue(path, queue);
		if (rest.results > 0)
			tell(&rest, data);
	}
}
