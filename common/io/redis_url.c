#include "common/io/redis_url.h"

#include "common/text.h"

#include <stdio.h>

#define DATABASES_MAX 65535

static int
refuse(char *ret_error, int error, const char *sentence)
{
	(void)snprintf(ret_error, REDIS_URL_ERROR_SIZE, "%s", sentence);
	return error;
}

/* Cuts `text` at the first (or last) `mark`: the part before goes to ret_head, the part
 * behind stays.  False, and nothing changes, if there is no mark. */
static bool
split(struct span *text, char mark, bool last, struct span *ret_head)
{
	const char *at = NULL;

	if (text->len > 0)
		at = last ? memrchr(text->data, mark, text->len)
		          : memchr(text->data, mark, text->len);
	if (!at)
		return false;
	*ret_head = (struct span){ text->data, (size_t)(at - text->data) };
	*text = (struct span){ at + 1, text->len - ret_head->len - 1 };
	return true;
}

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Undoes %XX into a C string. */
static int
decode(struct span text, char *out, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < text.len; i++) {
		int byte = (unsigned char)text.data[i];

		if (byte == '%') {
			if (i + 2 >= text.len)
				return ERR_MALFORMED;
			byte = hex_value(text.data[i + 1]) * 16;
			if (byte < 0 || hex_value(text.data[i + 2]) < 0)
				return ERR_MALFORMED;
			byte += hex_value(text.data[i + 2]);
			i += 2;
		}
		if (byte == 0)
			return ERR_MALFORMED;
		if (len + 1 >= size)
			return ERR_LIMIT;
		out[len++] = (char)byte;
	}
	out[len] = '\0';
	return 0;
}

static int
parse_database(struct span text, struct redis_url *url, char *ret_error)
{
	uint64_t database;

	if (text_parse_unsigned(text, DATABASES_MAX, &database) < 0)
		return refuse(ret_error, ERR_MALFORMED,
		              "The database of a Redis address is a number, as in "
		              "redis://host/0.");
	url->database = (uint16_t)database;
	return 0;
}

static int
refuse_credentials(char *ret_error, int err)
{
	return refuse(ret_error, err,
	              "User or password of the Redis address is too long or has a "
	              "broken %XX.");
}

static int
parse_user(struct span credentials, struct redis_url *url, char *ret_error)
{
	struct span user = { 0 }, password = credentials;
	int err;

	if (!split(&password, ':', false, &user)) {
		user = credentials;
		password = (struct span){ 0 };
	}
	err = decode(user, url->user, sizeof url->user);
	if (err == 0)
		err = decode(password, url->password, sizeof url->password);
	if (err < 0)
		return refuse_credentials(ret_error, err);
	return 0;
}

/* One `name=value` behind the question mark; they are those of redis-py. */
static int
parse_option(struct span option, struct redis_url *url, char *ret_error)
{
	struct span value = option, name = { "", 0 };
	int err;

	(void)split(&value, '=', false, &name);
	if (span_equals(name, SPAN("db")))
		return parse_database(value, url, ret_error);
	if (span_equals(name, SPAN("username")))
		err = decode(value, url->user, sizeof url->user);
	else if (span_equals(name, SPAN("password")))
		err = decode(value, url->password, sizeof url->password);
	else
		return refuse(ret_error, ERR_MALFORMED,
		              "The options of a unix:// address are ?db=N, username= and "
		              "password=, with & between them.");
	return err < 0 ? refuse_credentials(ret_error, err) : 0;
}

static int
parse_options(struct span query, struct redis_url *url, char *ret_error)
{
	struct span option;
	int err = 0;

	while (err == 0 && split(&query, '&', false, &option))
		err = parse_option(option, url, ret_error);
	return err < 0 ? err : parse_option(query, url, ret_error);
}

/* Up to the slash of the path, which user and password cannot contain but as %2F. */
static int
parse_owner(struct span owner, struct redis_url *url, char *ret_error)
{
	if (owner.data[owner.len - 1] != '@')
		return refuse(ret_error, ERR_MALFORMED,
		              "A unix:// address needs an absolute path, as in "
		              "unix:///run/redis/redis.sock, or with "
		              "user:password@ before it.");
	owner.len--;
	return parse_user(owner, url, ret_error);
}

static int
parse_unix(struct span rest, struct redis_url *url, char *ret_error)
{
	struct span path = rest, query = rest;
	size_t owner_len = 0;
	bool has_options = split(&query, '?', false, &path);
	int err = 0;

	while (owner_len < path.len && path.data[owner_len] != '/')
		owner_len++;
	if (owner_len > 0)
		err = parse_owner((struct span){ path.data, owner_len }, url, ret_error);
	if (err == 0 && has_options)
		err = parse_options(query, url, ret_error);
	if (err < 0)
		return err;
	path.data += owner_len;
	path.len -= owner_len;
	if (path.len == 0)
		return refuse(ret_error, ERR_MALFORMED,
		              "A unix:// address needs an absolute path, as in "
		              "unix:///run/redis/redis.sock.");
	err = decode(path, url->path, sizeof url->path);
	if (err < 0)
		return refuse(ret_error, err,
		              "The path of a unix:// address has at most 107 bytes "
		              "and valid %XX only.");
	return 0;
}

static int
parse_port(struct span text, struct redis_url *url, char *ret_error)
{
	uint64_t port;

	if (text_parse_unsigned(text, 65535, &port) < 0 || port == 0)
		return refuse(ret_error, ERR_MALFORMED,
		              "The port of a Redis address is a number from 1 to 65535.");
	url->port = (uint16_t)port;
	return 0;
}

/* Names and addresses; in brackets also the colons of IPv6 and its zone's percent. */
static bool
is_host(struct span host, bool in_brackets)
{
	for (size_t i = 0; i < host.len; i++) {
		char c = host.data[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		    (c >= '0' && c <= '9'))
			continue;
		if (c != '.' && c != '-' && c != '_' &&
		    !(in_brackets && (c == ':' || c == '%')))
			return false;
	}
	return host.len > 0;
}

static int
parse_host(struct span rest, struct redis_url *url, char *ret_error)
{
	struct span host = rest, port = rest;
	int err;

	if (rest.len > 0 && rest.data[0] == '[') { /* [IPv6]:port */
		port = (struct span){ rest.data + 1, rest.len - 1 };
		if (!split(&port, ']', false, &host))
			return refuse(ret_error, ERR_MALFORMED,
			              "An IPv6 address needs its closing bracket.");
		if (port.len > 0 && port.data[0] != ':')
			return refuse(ret_error, ERR_MALFORMED,
			              "After an IPv6 address comes :port or nothing.");
		if (port.len > 0)
			port = (struct span){ port.data + 1, port.len - 1 };
	} else if (!split(&port, ':', false, &host)) {
		port.len = 0;
	}
	if (!is_host(host, rest.len > 0 && rest.data[0] == '[') ||
	    host.len >= sizeof url->host)
		return refuse(ret_error, ERR_MALFORMED,
		              "The Redis address names no host, or one that cannot be.");
	if (port.len > 0) {
		err = parse_port(port, url, ret_error);
		if (err < 0)
			return err;
	}
	memcpy(url->host, host.data, host.len);
	url->host[host.len] = '\0';
	return 0;
}

static int
parse_tcp(struct span rest, struct redis_url *url, char *ret_error)
{
	struct span authority = rest, database = rest, credentials;
	int err;

	if (!split(&database, '/', false, &authority))
		database.len = 0;
	if (database.len > 0) {
		err = parse_database(database, url, ret_error);
		if (err < 0)
			return err;
	}
	if (split(&authority, '@', true, &credentials)) {
		err = parse_user(credentials, url, ret_error);
		if (err < 0)
			return err;
	}
	return parse_host(authority, url, ret_error);
}

static bool
starts_with(struct span *text, struct span prefix)
{
	if (text->len < prefix.len || memcmp(text->data, prefix.data, prefix.len) != 0)
		return false;
	*text = (struct span){ text->data + prefix.len, text->len - prefix.len };
	return true;
}

int
redis_url_parse(struct span text, struct redis_url *ret_url,
                char ret_error[REDIS_URL_ERROR_SIZE])
{
	struct redis_url url = { .port = 6379 };
	int err;

	if (starts_with(&text, SPAN("redis://")))
		err = parse_tcp(text, &url, ret_error);
	else if (starts_with(&text, SPAN("unix://")))
		err = parse_unix(text, &url, ret_error);
	else if (starts_with(&text, SPAN("rediss://")))
		err = refuse(ret_error, ERR_UNSUPPORTED,
		             "rediss:// needs TLS, which this build has not. Use a local "
		             "TLS proxy such as stunnel, and redis:// to it.");
	else
		err = refuse(ret_error, ERR_MALFORMED,
		             "A Redis address begins with redis:// or unix://.");
	if (err < 0)
		return err;
	*ret_url = url;
	return 0;
}

void
redis_url_print(const struct redis_url *url, char ret_text[REDIS_URL_TEXT_SIZE])
{
	bool six = strpbrk(url->host, ":%") != NULL;
	size_t len;

	if (url->path[0])
		(void)snprintf(ret_text, REDIS_URL_TEXT_SIZE, "unix://%s", url->path);
	else
		(void)snprintf(ret_text, REDIS_URL_TEXT_SIZE, "redis://%s%s%s:%u",
		               six ? "[" : "", url->host, six ? "]" : "",
		               (unsigned)url->port);
	len = strlen(ret_text);
	if (url->database != 0)
		(void)snprintf(ret_text + len, REDIS_URL_TEXT_SIZE - len,
		               url->path[0] ? "?db=%u" : "/%u", (unsigned)url->database);
}
