#include "worker/upstream.h"

#include "common/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define KEY_SIZE_MAX 4096
#define KEY_SIZE_MIN 8 /* "none" and its like are no secrets, but words of answers */

static enum dialect
dialect_of(enum config_dialect dialect)
{
	switch (dialect) {
	case CONFIG_DIALECT_ANTHROPIC:
		return DIALECT_ANTHROPIC;
	case CONFIG_DIALECT_OPENAI_CHAT:
		return DIALECT_OPENAI_CHAT;
	case CONFIG_DIALECT_RAW:
	case CONFIG_DIALECT_COUNT:
		break;
	}
	return DIALECT_RAW;
}

static bool
needs_key(const struct config_upstream *config)
{
	return config->auth != CONFIG_AUTH_NONE;
}

static const char *
add_line(char *texts, size_t size, size_t *used, const char *name, const char *value)
{
	char *line = texts + *used;
	int len = snprintf(line, size - *used, "%s: %s", name, value);

	VERIFY(len > 0);
	VERIFY((size_t)len < size - *used);
	*used += (size_t)len + 1;
	return line;
}

/* The variable stays, for other upstreams: forget_variables wipes all at once.
 * ERR_NOT_FOUND if it is not set or empty, ERR_LIMIT if it is too long. */
static int
take_from_environment(const char *name, char ret_key[KEY_SIZE_MAX])
{
	const char *value = getenv(name);
	size_t len = value ? strlen(value) : 0;

	if (len == 0)
		return ERR_NOT_FOUND;
	if (len >= KEY_SIZE_MAX)
		return ERR_LIMIT;
	memcpy(ret_key, value, len + 1);
	return 0;
}

/* The first line.  ERR_IO with errno if it cannot be read, ERR_NOT_FOUND if it is empty,
 * ERR_LIMIT if it is too long. */
static int
take_from_file(const char *path, char ret_key[KEY_SIZE_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;
	int cause;

	if (fd < 0)
		return ERR_IO;
	len = read(fd, ret_key, KEY_SIZE_MAX);
	cause = errno;
	(void)close(fd);
	errno = cause;
	if (len < 0)
		return ERR_IO;
	if (len == KEY_SIZE_MAX && !memchr(ret_key, '\n', (size_t)len))
		return ERR_LIMIT;
	ret_key[MIN(len, KEY_SIZE_MAX - 1)] = '\0';
	ret_key[strcspn(ret_key, "\r\n")] = '\0';
	return ret_key[0] != '\0' ? 0 : ERR_NOT_FOUND;
}

/* A key with a line break would be two headers.  The value of a header may have blanks
 * within ("Bearer …"). */
static bool
is_sound(const char *key, bool may_have_blanks)
{
	size_t len = strlen(key);

	for (size_t i = 0; i < len; i++) {
		bool is_within = i > 0 && i + 1 < len;

		if ((unsigned char)key[i] < ' ' || (unsigned char)key[i] >= 127 ||
		    (key[i] == ' ' && !(may_have_blanks && is_within)))
			return false;
	}
	return true;
}

/* Where a secret is looked for. */
struct place {
	const char *what; /* "a key", "the header x-…" */
	const char *name; /* of the variable or file */
	bool in_file;
};

/* Why there is none, where it was looked for, and what to do. */
static void
say_why_not(const struct config_upstream *config, const struct place *place, int err,
            char reterr[UPSTREAM_ERROR_SIZE])
{
	if (err == ERR_MALFORMED)
		(void)snprintf(reterr, UPSTREAM_ERROR_SIZE,
		               "What upstream %s has as %s contains blanks or bytes that "
		               "no key has. Check %s.",
		               config->name, place->what, place->name);
	else if (err == ERR_LIMIT)
		(void)snprintf(reterr, UPSTREAM_ERROR_SIZE,
		               "What upstream %s has as %s is longer than %d bytes. "
		               "Check %s.",
		               config->name, place->what, KEY_SIZE_MAX - 1, place->name);
	else if (!place->in_file)
		(void)snprintf(reterr, UPSTREAM_ERROR_SIZE,
		               "Upstream %s needs %s: set the environment variable %s.",
		               config->name, place->what, place->name);
	else
		(void)snprintf(reterr, UPSTREAM_ERROR_SIZE,
		               "Upstream %s needs %s: cannot read one from %s (%s).",
		               config->name, place->what, place->name,
		               err == ERR_IO ? strerror(errno)
		                             : "its first line is empty");
}

/* From the variable or the file: the configuration has exactly one of them. */
static int
take_key(const struct config_upstream *config, char ret_key[KEY_SIZE_MAX],
         char reterr[UPSTREAM_ERROR_SIZE])
{
	bool in_file = config->key_file[0] != '\0';
	struct place place = { "a key", in_file ? config->key_file : config->key_env,
		               in_file };
	int err = in_file ? take_from_file(place.name, ret_key)
	                  : take_from_environment(place.name, ret_key);

	if (err == 0 && !is_sound(ret_key, false))
		err = ERR_MALFORMED;
	if (err < 0)
		say_why_not(config, &place, err, reterr);
	return err;
}

/* A line whose end is `key`. */
static void
add_secret(struct upstream_list *list, struct upstream *upstream, const char *name,
           const char *value, const char *key)
{
	upstream->lines[upstream->lines_count++] = add_line(
		list->secrets, list->secrets_size, &list->secrets_used, name, value);
	upstream->keys[upstream->keys_count++] =
		list->secrets + list->secrets_used - 1 - strlen(key);
}

static void
add_key(struct upstream_list *list, struct upstream *upstream, const char *key)
{
	enum config_auth auth = upstream->config->auth;
	char value[KEY_SIZE_MAX + 8];

	(void)snprintf(value, sizeof value, "%s%s",
	               auth == CONFIG_AUTH_BEARER ? "Bearer " : "", key);
	add_secret(list, upstream, config_auth_header(auth), value, key);
	explicit_bzero(value, sizeof value);
}

/* What is secret of "Bearer sk-…" stands behind its blank. */
static int
add_header_env(struct upstream_list *list, struct upstream *upstream,
               const struct config_header *header, char reterr[UPSTREAM_ERROR_SIZE])
{
	char what[CONFIG_NAME_SIZE + 16], value[KEY_SIZE_MAX];
	struct place place = { what, header->value, false };
	int err = take_from_environment(header->value, value);

	(void)snprintf(what, sizeof what, "the header %s", header->name);
	if (err == 0 && !is_sound(value, true))
		err = ERR_MALFORMED;
	if (err == 0) {
		const char *blank = strrchr(value, ' ');

		add_secret(list, upstream, header->name, value,
		           blank ? blank + 1 : value);
	} else {
		say_why_not(upstream->config, &place, err, reterr);
	}
	explicit_bzero(value, sizeof value);
	return err;
}

static bool
has_header(const struct config_upstream *config, const char *name)
{
	for (size_t i = 0; i < config->headers_count; i++) {
		if (strcasecmp(config->headers[i].name, name) == 0)
			return true;
	}
	for (size_t i = 0; i < config->headers_env_count; i++) {
		if (strcasecmp(config->headers_env[i].name, name) == 0)
			return true;
	}
	return false;
}

static void
add_text(struct upstream_list *list, struct upstream *upstream, const char *name,
         const char *value)
{
	if (has_header(upstream->config, name))
		return; /* the configuration's own wins */
	upstream->lines[upstream->lines_count++] =
		add_line(list->texts, list->texts_size, &list->texts_used, name, value);
}

static void
add_lines(struct upstream_list *list, struct upstream *upstream)
{
	const struct config_upstream *config = upstream->config;

	add_text(list, upstream, "content-type", "application/json");
	add_text(list, upstream, "user-agent", "warmq");
	if (upstream->dialect == DIALECT_ANTHROPIC)
		add_text(list, upstream, "anthropic-version", "2023-06-01");
	/* curl would ask for leave before it sends a large body, and wait a second. */
	upstream->lines[upstream->lines_count++] = "expect:";
	for (size_t i = 0; i < config->headers_count; i++)
		upstream->lines[upstream->lines_count++] =
			add_line(list->texts, list->texts_size, &list->texts_used,
		                 config->headers[i].name, config->headers[i].value);
}

static int
open_upstream(struct upstream_list *list, struct upstream *upstream, bool needs_keys,
              char reterr[UPSTREAM_ERROR_SIZE])
{
	const struct config_upstream *config = upstream->config;
	char key[KEY_SIZE_MAX];
	int err;

	upstream->dialect = dialect_of(config->dialect);
	(void)snprintf(upstream->url, sizeof upstream->url, "%s%s%s%s", config->url,
	               config->path, config->query[0] ? "?" : "", config->query);
	add_lines(list, upstream);
	if (!needs_keys)
		return 0;
	for (size_t i = 0; i < config->headers_env_count; i++) {
		err = add_header_env(list, upstream, &config->headers_env[i], reterr);
		if (err < 0)
			return err;
	}
	if (!needs_key(config))
		return 0;
	err = take_key(config, key, reterr);
	if (err == 0)
		add_key(list, upstream, key);
	explicit_bzero(key, sizeof key);
	return err;
}

/* Anonymous pages of their own: locked where the limits allow it, never in a dump. */
static char *
map_secrets(size_t size)
{
	char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return NULL;
	(void)mlock(pages, size);
	(void)madvise(pages, size, MADV_DONTDUMP);
	(void)madvise(pages, size, MADV_DONTFORK);
	return pages;
}

/* Where the kernel shows it to other processes, too. */
static void
forget_variable(const char *name)
{
	char *value = name[0] ? getenv(name) : NULL;

	if (!value)
		return;
	explicit_bzero(value, strlen(value));
	(void)unsetenv(name);
}

static void
forget_variables(const struct config *config)
{
	for (size_t i = 0; i < config->upstreams_count; i++) {
		const struct config_upstream *upstream = &config->upstreams[i];

		forget_variable(upstream->key_env);
		for (size_t j = 0; j < upstream->headers_env_count; j++)
			forget_variable(upstream->headers_env[j].value);
	}
}

/* One for each upstream, and one for each header of the environment. */
static size_t
count_secrets(const struct config *config)
{
	size_t count = config->upstreams_count;

	for (size_t i = 0; i < config->upstreams_count; i++)
		count += config->upstreams[i].headers_env_count;
	return count;
}

int
upstream_open(const struct config *config, bool needs_keys,
              struct upstream_list *ret_list, char reterr[UPSTREAM_ERROR_SIZE])
{
	size_t count = config->upstreams_count;
	struct upstream_list list = { .config = config, .count = count };
	int err = 0;

	list.upstreams = calloc(count + 1, sizeof *list.upstreams);
	list.texts_size = (count + 1) * UPSTREAM_HEADERS_MAX *
	                  (CONFIG_NAME_SIZE + CONFIG_HEADER_SIZE + 4);
	list.texts = malloc(list.texts_size);
	list.secrets_size =
		(count_secrets(config) + 1) * (KEY_SIZE_MAX + CONFIG_NAME_SIZE + 16);
	list.secrets = map_secrets(list.secrets_size);
	if (!list.upstreams || !list.texts || !list.secrets) {
		(void)snprintf(reterr, UPSTREAM_ERROR_SIZE, "Out of memory.");
		err = ERR_MEMORY;
	}
	for (size_t i = 0; err == 0 && i < count; i++) {
		list.upstreams[i].config = &config->upstreams[i];
		err = open_upstream(&list, &list.upstreams[i], needs_keys, reterr);
	}
	forget_variables(config);
	if (err < 0) {
		upstream_close(&list);
		return err;
	}
	*ret_list = list;
	return 0;
}

void
upstream_close(struct upstream_list *list)
{
	if (list->secrets) {
		explicit_bzero(list->secrets, list->secrets_size);
		(void)munmap(list->secrets, list->secrets_size);
	}
	free(list->texts);
	free(list->upstreams);
	*list = (struct upstream_list){ 0 };
}

static void
overwrite(char *bytes, size_t len, const char *key)
{
	size_t key_len = strlen(key);
	char *end = bytes + len;

	if (key_len < KEY_SIZE_MIN)
		return;
	while ((bytes = memmem(bytes, (size_t)(end - bytes), key, key_len)) != NULL) {
		memset(bytes, '*', key_len);
		bytes += key_len;
	}
}

static int
hex_digit(char byte)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *found = byte ? strchr(digits, byte) : NULL;

	return found ? (int)(found - digits) % 16 : -1;
}

/* Length of the JSON escape that begins at a backslash, 0 if it is none, and the ASCII
 * character that it stands for, else 0. */
static size_t
read_escape(struct span text, char *ret_byte)
{
	unsigned value = 0;

	*ret_byte = '\0';
	if (text.len < 2 || text.data[0] != '\\')
		return 0;
	if (text.data[1] != 'u') {
		if (memchr("\"\\/", text.data[1], 3))
			*ret_byte = text.data[1];
		return 2;
	}
	if (text.len < 6)
		return 0;
	for (size_t i = 2; i < 6; i++) {
		int digit = hex_digit(text.data[i]);

		if (digit < 0)
			return 0;
		value = value << 4 | (unsigned)digit;
	}
	*ret_byte = value < 0x80 ? (char)value : '\0';
	return 6;
}

/* How many bytes of `text` spell `key`, each as it is or escaped; 0: they do not. */
static size_t
spelt(struct span text, const char *key)
{
	size_t at = 0;

	for (; *key; key++) {
		struct span rest = { text.data + at, text.len - at };
		char byte = rest.len > 0 ? rest.data[0] : '\0';
		size_t len = 1;

		if (byte == '\\')
			len = read_escape(rest, &byte);
		if (len == 0 || byte != *key)
			return 0;
		at += len;
	}
	return at;
}

/* The key with the escape at `at` as the first that it has. */
static void
overwrite_around(char *bytes, size_t len, size_t at, char byte, const char *key)
{
	for (size_t before = 0; key[before] && before <= at; before++) {
		char *start = bytes + at - before;
		size_t size;

		if (key[before] != byte || memcmp(start, key, before) != 0)
			continue;
		size = spelt((struct span){ start, len - (at - before) }, key);
		memset(start, '*', size);
	}
}

/* JSON may spell it in other ways: encoders differ about slashes, quotes, plus signs. */
static void
overwrite_escaped(char *bytes, size_t len, const char *key)
{
	size_t at = 0;

	if (strlen(key) < KEY_SIZE_MIN)
		return;
	while (at < len) {
		char *backslash = memchr(bytes + at, '\\', len - at);
		size_t size;
		char byte;

		if (!backslash)
			return;
		at = (size_t)(backslash - bytes);
		size = read_escape((struct span){ backslash, len - at }, &byte);
		if (byte)
			overwrite_around(bytes, len, at, byte, key);
		at += MAX(size, (size_t)1);
	}
}

void
upstream_redact(const struct upstream_list *list, char *bytes, size_t len)
{
	if (len == 0)
		return;
	for (size_t i = 0; i < list->count; i++) {
		const struct upstream *upstream = &list->upstreams[i];

		for (size_t j = 0; j < upstream->keys_count; j++) {
			overwrite(bytes, len, upstream->keys[j]);
			overwrite_escaped(bytes, len, upstream->keys[j]);
		}
	}
}

const struct upstream *
upstream_find(const struct upstream_list *list, struct span name)
{
	for (size_t i = 0; i < list->count; i++) {
		if (span_equals(span_from(list->upstreams[i].config->name), name))
			return &list->upstreams[i];
	}
	return NULL;
}

struct dialect_traits
upstream_traits(const struct upstream_list *list, const struct upstream *upstream,
                struct span model_name)
{
	const struct config_upstream *config = upstream->config;
	const struct config_model *model = config_model_find(list->config, model_name);
	struct dialect_traits traits = dialect_for_upstream(
		upstream->dialect, config->stream == CONFIG_SWITCH_AUTO, config->ttl_ms);

	return dialect_for_model(
		&traits,
		&(struct dialect_model){
			.ours = config->markers == CONFIG_SWITCH_AUTO,
			.cache_key = model->cache_key,
			.breakpoint = model->breakpoint,
			.tokens_min = (uint32_t)MIN(model->minimum_tokens, UINT32_MAX),
		});
}

bool
upstream_allows_beta(const struct upstream *upstream, struct span beta)
{
	for (size_t i = 0; i < upstream->config->betas_count; i++) {
		if (span_equals(span_from(upstream->config->betas[i]), beta))
			return true;
	}
	return false;
}
