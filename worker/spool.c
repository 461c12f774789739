#include "worker/spool.h"

#include "common/io/log.h"
#include "common/io/state_dir.h"
#include "common/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE   1024
#define HEADER_MARK "warmq-result 1"
#define REST_AGE_S  60 /* a worker at work delivers sooner, if Redis is there */
#define FILE_MAX    (REPORT_SIZE_MAX + 4096)

struct spool {
	uv_loop_t *loop;
	char dir[PATH_SIZE - 200];
	int lock_fd;
	uint32_t tasks; /* in libuv's threads */
	char **found;   /* names of files of a predecessor */
	size_t found_count, found_next;
	spool_written_fn *on_written;
	void *data;
};

struct task {
	uv_work_t work;
	struct spool *spool;
	char id[PROTOCOL_TICKET_SIZE];
	uint32_t id_len;
	char path[PATH_SIZE];
	struct buffer bytes; /* to write; empty: delete */
	bool removes;
	int error; /* errno */
};

/* ---- the directory --------------------------------------------------------------- */

static int
make_dirs(const char *path)
{
	char part[PATH_SIZE];
	size_t len = strlen(path);

	if (len == 0 || len >= sizeof part)
		return ENAMETOOLONG;
	memcpy(part, path, len + 1);
	for (size_t i = 1; i <= len; i++) {
		if (part[i] != '/' && part[i] != '\0')
			continue;
		part[i] = '\0';
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return errno;
		part[i] = i < len ? '/' : '\0';
	}
	return 0;
}

/* errno; EWOULDBLOCK: another process has it. */
static int
lock_dir(struct spool *spool, const char *state_dir, int number)
{
	char path[PATH_SIZE];
	int err;

	(void)snprintf(spool->dir, sizeof spool->dir, "%s/worker.%d", state_dir, number);
	err = make_dirs(spool->dir);
	if (err != 0)
		return err;
	(void)snprintf(path, sizeof path, "%s/lock", spool->dir);
	spool->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (spool->lock_fd < 0)
		return errno;
	if (flock(spool->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	err = errno;
	(void)close(spool->lock_fd);
	spool->lock_fd = -1;
	return err;
}

/* The first bytes of a small file of the directory; 0 without it. */
static size_t
read_small(const struct spool *spool, const char *name, char *ret_text, size_t size)
{
	char path[PATH_SIZE];
	FILE *file;
	size_t len;

	(void)snprintf(path, sizeof path, "%s/%s", spool->dir, name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	len = fread(ret_text, 1, size, file);
	(void)fclose(file);
	return len;
}

/* A few bytes without a sync: the next process does without them. */
static void
write_small(const struct spool *spool, const char *name, const char *text, size_t len)
{
	char path[PATH_SIZE], temporary[PATH_SIZE];
	FILE *file;
	bool is_written;

	(void)snprintf(path, sizeof path, "%s/%s", spool->dir, name);
	(void)snprintf(temporary, sizeof temporary, "%s/%s.new", spool->dir, name);
	file = fopen(temporary, "we");
	if (!file)
		return;
	is_written = fwrite(text, 1, len, file) == len;
	if (fclose(file) == 0 && is_written)
		(void)rename(temporary, path);
}

static uint64_t
read_session(const struct spool *spool)
{
	char text[ID_HEX_LEN];
	struct id128 id;

	/* 32 digits: the way the nonce is printed, behind 16 zeros. */
	if (read_small(spool, "session", text, sizeof text) != sizeof text ||
	    id_decode((struct span){ text, sizeof text }, &id) < 0)
		id = ID_NONE;
	return id.low;
}

/* True if the directory was used for another queue last. */
static bool
is_of_another(const struct spool *spool, const char *queue)
{
	char other[STATE_DIR_QUEUE_SIZE];

	state_dir_read_queue(spool->dir, other);
	return other[0] != '\0' && strcmp(other, queue) != 0;
}

/* What a process left that died while it wrote: half a result. */
static bool
is_half(const char *name)
{
	size_t len = strlen(name), end_len = strlen(".result.new");

	return len > end_len && strcmp(name + len - end_len, ".result.new") == 0;
}

static void
remove_half(const struct spool *spool, const char *name)
{
	char path[PATH_SIZE];

	(void)snprintf(path, sizeof path, "%s/%s", spool->dir, name);
	(void)unlink(path);
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
find_results(struct spool *spool)
{
	DIR *dir = opendir(spool->dir);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL) {
		char **found;

		if (is_half(entry->d_name))
			remove_half(spool, entry->d_name);
		if (!state_dir_is_result(entry->d_name))
			continue;
		found = realloc(spool->found, (spool->found_count + 1) * sizeof(char *));
		if (!found)
			break;
		spool->found = found;
		spool->found[spool->found_count] = strdup(entry->d_name);
		if (spool->found[spool->found_count])
			spool->found_count++;
	}
	if (dir)
		(void)closedir(dir);
	if (spool->found_count > 1)
		qsort(spool->found, spool->found_count, sizeof(char *), by_name);
}

static void
forget_results(struct spool *spool)
{
	for (size_t i = 0; i < spool->found_count; i++)
		free(spool->found[i]);
	free(spool->found);
	spool->found = NULL;
	spool->found_count = 0;
}

/* As lock_dir, but leaves alone what waits for another queue. */
static int
take_dir(struct spool *spool, const char *state_dir, int number, const char *queue,
         uint64_t *ret_nonce)
{
	int err = lock_dir(spool, state_dir, number);
	bool is_strange;

	if (err != 0)
		return err;
	find_results(spool);
	is_strange = is_of_another(spool, queue);
	if (is_strange && spool->found_count > 0) {
		forget_results(spool);
		(void)close(spool->lock_fd);
		spool->lock_fd = -1;
		return EWOULDBLOCK;
	}
	*ret_nonce = is_strange ? 0 : read_session(spool);
	write_small(spool, "queue", queue, strlen(queue));
	return 0;
}

/* Where this process is, and whose results it delivers. */
struct place {
	const char *dir, *queue;
};

/* A directory that no worker takes is not looked into again: now somebody reads. */
static void
tell_rest(const struct state_dir_rest *rest, void *data)
{
	const struct place *place = data;

	if (strcmp(rest->path, place->dir) == 0)
		return;
	if (strcmp(rest->queue, place->queue) != 0)
		log_warning("undelivered results of another queue wait on disk. Start a "
		            "worker of that queue with this state_dir; or, if it is this "
		            "queue and only its address has changed, write the new name "
		            "into the file `queue` there and start a worker again",
		            LOG_NUMBER("results", rest->results),
		            LOG_TEXT("dir", rest->path), LOG_TEXT("queue", rest->queue),
		            LOG_TEXT("name", place->queue));
	else if (rest->age_s >= REST_AGE_S)
		log_warning("undelivered results of this queue wait on disk for another "
		            "worker than this one; if none runs there, start one more",
		            LOG_NUMBER("results", rest->results),
		            LOG_TEXT("dir", rest->path),
		            LOG_NUMBER("seconds", rest->age_s));
}

int
spool_create(uv_loop_t *loop, const char *state_dir, const char *queue,
             struct spool **ret_spool, uint64_t *ret_nonce, char reterr[SPOOL_ERROR_SIZE])
{
	struct spool *spool = calloc(1, sizeof *spool);
	int err = EWOULDBLOCK;

	if (!spool)
		return ERR_MEMORY;
	spool->loop = loop;
	spool->lock_fd = -1;
	for (int i = 0; err == EWOULDBLOCK && i < STATE_DIR_WORKERS_MAX; i++)
		err = take_dir(spool, state_dir, i, queue, ret_nonce);
	if (err != 0) {
		(void)snprintf(
			reterr, SPOOL_ERROR_SIZE,
			"Cannot use %s to keep results that Redis does not take: %s. "
			"Make it writable, or set state_dir to a directory that is.",
			spool->dir, strerror(err));
		free(spool);
		return ERR_IO;
	}
	state_dir_look(state_dir, tell_rest, &(struct place){ spool->dir, queue });
	*ret_spool = spool;
	return 0;
}

struct spool *
spool_destroy(struct spool *spool)
{
	if (!spool)
		return NULL;
	VERIFY(spool->tasks == 0);
	forget_results(spool);
	(void)close(spool->lock_fd);
	free(spool);
	return NULL;
}

void
spool_listen(struct spool *spool, spool_written_fn *fn, void *data)
{
	spool->on_written = fn;
	spool->data = data;
}

const char *
spool_dir(const struct spool *spool)
{
	return spool->dir;
}

bool
spool_is_busy(const struct spool *spool)
{
	return spool->tasks > 0;
}

void
spool_note_session(struct spool *spool, uint64_t nonce)
{
	char hex[ID_HEX_LEN];

	id_encode((struct id128){ 0, nonce }, hex);
	write_small(spool, "session", hex, sizeof hex);
}

/* ---- threads --------------------------------------------------------------------- */

static int
write_all(int fd, struct span bytes)
{
	while (bytes.len > 0) {
		ssize_t len = write(fd, bytes.data, bytes.len);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0)
			return errno;
		bytes.data += len;
		bytes.len -= (size_t)len;
	}
	return fsync(fd) == 0 ? 0 : errno;
}

static void
sync_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)fsync(fd);
	(void)close(fd);
}

/* In a thread: written aside, synced, then renamed, so a file is whole or not there. */
static int
write_file(const struct task *task)
{
	char temporary[PATH_SIZE + 8];
	int fd, err;

	(void)snprintf(temporary, sizeof temporary, "%s.new", task->path);
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	err = write_all(fd, buffer_span(&task->bytes));
	(void)close(fd);
	if (err == 0 && rename(temporary, task->path) < 0)
		err = errno;
	if (err == 0)
		sync_dir(task->spool->dir);
	else
		(void)unlink(temporary); /* half a file helps nobody on a full disk */
	return err;
}

static void
work_in_thread(uv_work_t *work)
{
	struct task *task = work->data;

	if (!task->removes)
		task->error = write_file(task);
	else if (unlink(task->path) < 0 && errno != ENOENT)
		task->error = errno;
}

static void
complain(const char *path, int error)
{
	log_error(
		"cannot keep a result on disk; it is tried again every 2 s, and lost if "
		"this process ends before Redis or the disk takes it: make room there",
		LOG_TEXT("file", path), LOG_TEXT("cause", strerror(error)));
}

static void
tell(const struct spool *spool, struct span id, bool wrote, int error)
{
	if (wrote && spool->on_written)
		spool->on_written(id, error == 0, spool->data);
}

static void
end_task(struct task *task, int error)
{
	if (error != 0)
		complain(task->path, error);
	tell(task->spool, (struct span){ task->id, task->id_len }, !task->removes, error);
	buffer_fini(&task->bytes);
	free(task);
}

static void
on_worked(uv_work_t *work, int status)
{
	struct task *task = work->data;

	(void)status;
	task->spool->tasks--;
	end_task(task, task->error);
}

static struct task *
make_task(struct spool *spool, const struct report *report)
{
	struct task *task = calloc(1, sizeof *task);

	if (!task)
		return NULL;
	task->spool = spool;
	task->work.data = task;
	task->id_len = report->id_len;
	memcpy(task->id, report->id, report->id_len);
	buffer_init(&task->bytes, FILE_MAX);
	(void)snprintf(task->path, sizeof task->path, "%s/%.*s.result", spool->dir,
	               (int)report->id_len, report->id);
	return task;
}

/* Threads take tasks in order, but run side by side: a removal may overtake the writing
 * of the same file by nothing but luck, since seconds lie between the two. */
static void
queue(struct task *task)
{
	struct spool *spool = task->spool;

	if (uv_queue_work(spool->loop, &task->work, work_in_thread, on_worked) == 0)
		spool->tasks++;
	else
		end_task(task, ENOMEM);
}

void
spool_write(struct spool *spool, const struct report *report)
{
	struct task *task = make_task(spool, report);

	if (!task) {
		complain(spool->dir, ENOMEM);
		tell(spool, (struct span){ report->id, report->id_len }, true, ENOMEM);
		return;
	}
	(void)buffer_append_format(&task->bytes, "%s %llu %s\n", HEADER_MARK,
	                           (unsigned long long)report->result_ttl_ms,
	                           report->reply[0] ? report->reply : "-");
	(void)buffer_append(&task->bytes, buffer_span(&report->result));
	if (buffer_error(&task->bytes) < 0)
		end_task(task, ENOMEM); /* half a result would look like a whole one */
	else
		queue(task);
}

void
spool_remove(struct spool *spool, const struct report *report)
{
	struct task *task = make_task(spool, report);

	if (!task)
		return;
	task->removes = true;
	queue(task);
}

/* ---- what a predecessor left ----------------------------------------------------- */

static int
read_file(const char *path, struct buffer *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *place;
	ssize_t len = 1;

	if (fd < 0)
		return ERR_IO;
	while (len > 0 && (place = buffer_reserve(bytes, 65536)) != NULL) {
		len = read(fd, place, 65536);
		if (len > 0)
			buffer_commit(bytes, (size_t)len);
	}
	(void)close(fd);
	return len < 0 ? ERR_IO : buffer_error(bytes);
}

/* "warmq-result 1 <ttl> <reply or ->" and the bytes. */
static bool
parse(struct span bytes, struct report *report)
{
	const char *newline = memchr(bytes.data ? bytes.data : "", '\n', bytes.len);
	struct span line, word, ttl;

	if (!newline)
		return false;
	line = (struct span){ bytes.data, (size_t)(newline - bytes.data) };
	if (!protocol_cut(&line, ' ', &word) ||
	    !span_equals(word, SPAN("warmq-result")) ||
	    !protocol_cut(&line, ' ', &word) || !span_equals(word, SPAN("1")) ||
	    !protocol_cut(&line, ' ', &ttl) || !protocol_cut(&line, ' ', &word) ||
	    word.len >= sizeof report->reply)
		return false;
	if (text_parse_unsigned(ttl, UINT64_MAX, &report->result_ttl_ms) < 0)
		return false;
	if (!span_equals(word, SPAN("-")))
		memcpy(report->reply, word.data, word.len);
	bytes.len -= (size_t)(newline + 1 - bytes.data);
	bytes.data = newline + 1;
	return buffer_append(&report->result, bytes) == 0;
}

static struct report *
read_report(struct report_list *list, const char *path, const char *name)
{
	struct span id = { name, strlen(name) - strlen(".result") };
	struct protocol_job_id parsed;
	struct buffer bytes = BUFFER_INIT(FILE_MAX);
	struct report *report = NULL;

	if (protocol_parse_job_id(id, &parsed) == 0)
		report = report_create(list, id);
	if (report &&
	    (read_file(path, &bytes) < 0 || !parse(buffer_span(&bytes), report)))
		report = report_destroy(report);
	buffer_fini(&bytes);
	if (report)
		report->is_spooled = true;
	return report;
}

bool
spool_has_next(const struct spool *spool)
{
	return spool->found_next < spool->found_count;
}

struct report *
spool_next(struct spool *spool, struct report_list *list)
{
	while (spool->found_next < spool->found_count) {
		const char *name = spool->found[spool->found_next++];
		char path[PATH_SIZE], aside[PATH_SIZE + 16];
		struct report *report;

		(void)snprintf(path, sizeof path, "%s/%s", spool->dir, name);
		report = read_report(list, path, name);
		if (report)
			return report;
		/* Never delete what somebody paid for: people may make sense of it. */
		(void)snprintf(aside, sizeof aside, "%s.broken", path);
		(void)rename(path, aside);
		log_error("a kept result cannot be read; it was put aside",
		          LOG_TEXT("file", aside));
	}
	return NULL;
}
