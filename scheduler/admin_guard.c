#include "scheduler/admin_guard.h"

#include "common/io/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define TOKEN_LEN_MIN 8

/* ---- the token ------------------------------------------------------------------- */

/* ERR_IO with errno if the file cannot be read, ERR_NOT_FOUND if it is empty, ERR_LIMIT
 * if its first line does not fit. */
static int
read_first_line(const char *path, char *ret_text, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t len;
	int cause;

	if (!file)
		return ERR_IO;
	errno = 0;
	len = fgets(ret_text, (int)size, file) ? strlen(ret_text) : 0;
	cause = ferror(file) ? errno : 0;
	(void)fclose(file);
	errno = cause;
	if (len == 0)
		return cause ? ERR_IO : ERR_NOT_FOUND;
	if (len == size - 1 && ret_text[len - 1] != '\n')
		return ERR_LIMIT;
	ret_text[strcspn(ret_text, "\r\n")] = '\0';
	return ret_text[0] ? 0 : ERR_NOT_FOUND;
}

static int
refuse_token(const struct config_scheduler *config, int err)
{
	log_error("the token of the pages cannot be used",
	          LOG_TEXT("place", config->token_file[0] ? config->token_file
	                                                  : config->token_env),
	          LOG_TEXT("cause", err == ERR_IO ? strerror(errno)
	                            : err == ERR_NOT_FOUND
	                                    ? "its first line is empty"
	                                    : "it is too short or too long"),
	          LOG_NUMBER("bytes_min", TOKEN_LEN_MIN),
	          LOG_NUMBER("bytes_max", ADMIN_TOKEN_SIZE - 1));
	return err;
}

int
admin_guard_open(struct admin *admin)
{
	const struct config_scheduler *config = &admin->config->scheduler;
	const char *value = config->token_env[0] ? getenv(config->token_env) : NULL;
	int err = 0;

	if (config->token_file[0])
		err = read_first_line(config->token_file, admin->token,
		                      sizeof(admin->token));
	else if (value && strlen(value) >= sizeof(admin->token))
		err = ERR_LIMIT;
	else if (value)
		(void)snprintf(admin->token, sizeof(admin->token), "%s", value);
	if (err == 0 && admin->token[0] && strlen(admin->token) < TOKEN_LEN_MIN)
		err = ERR_LIMIT;
	return err < 0 ? refuse_token(config, err) : 0;
}

/* Takes as long wherever they differ. */
static bool
equals(const char *given, const char *token)
{
	size_t len = strlen(token);
	unsigned differ = strlen(given) != len;

	for (size_t i = 0; i < len && given[i]; i++)
		differ |= (unsigned char)(given[i] ^ token[i]);
	return differ == 0;
}

bool
admin_guard_has_token(const struct admin *admin,
                      const struct http_server_request *request)
{
	static const char scheme[] = "Bearer ";
	const char *given = http_server_header(request, "Authorization");

	return admin->token[0] && given &&
	       strncmp(given, scheme, sizeof(scheme) - 1) == 0 &&
	       equals(given + sizeof(scheme) - 1, admin->token);
}

/* ---- names ----------------------------------------------------------------------- */

/* "name:port", "[::1]:port" -> the name. */
static void
cut_port(const char *text, char *ret_name, size_t size)
{
	const char *end = text + strlen(text);
	const char *colon = strrchr(text, ':');

	if (*text == '[') {
		text++;
		end = text + strcspn(text, "]");
	} else if (colon) {
		end = colon;
	}
	(void)snprintf(ret_name, size, "%.*s", (int)MIN(end - text, 256), text);
}

static bool
is_our_name(const struct config_scheduler *config, const char *name)
{
	unsigned char address[sizeof(struct in6_addr)];

	if (strcasecmp(name, "localhost") == 0 ||
	    inet_pton(AF_INET, name, address) == 1 ||
	    inet_pton(AF_INET6, name, address) == 1)
		return true;
	for (size_t i = 0; i < config->hosts_count; i++)
		if (strcasecmp(name, config->hosts[i]) == 0)
			return true;
	return false;
}

bool
admin_guard_host(const struct admin *admin, const struct http_server_request *request,
                 struct http_server_response *response)
{
	const char *host = http_server_header(request, "Host");
	char name[260];

	if (!host) {
		admin_put_error(response, 400, "the request names no Host");
		return false;
	}
	cut_port(host, name, sizeof(name));
	if (is_our_name(&admin->config->scheduler, name))
		return true;
	admin_put_error(response, 421,
	                "these pages do not go by this name: ask by IP address or "
	                "localhost, or add the name to scheduler.hosts");
	return false;
}

/* ---- actions --------------------------------------------------------------------- */

/* Browsers name the page that makes a request; programs name none. */
static bool
is_foreign(const struct http_server_request *request)
{
	const char *origin = http_server_header(request, "Origin");
	const char *site = http_server_header(request, "Sec-Fetch-Site");
	const char *host = http_server_header(request, "Host");
	const char *from;

	if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
		return true;
	if (!origin)
		return false;
	from = strstr(origin, "://");
	return !from || !host || strcasecmp(from + 3, host) != 0;
}

bool
admin_guard_action(const struct admin *admin, const struct http_server_request *request,
                   struct http_server_response *response)
{
	const char *type = http_server_header(request, "Content-Type");

	if (is_foreign(request)) {
		admin_put_error(response, 403, "actions come from our own page only");
		return false;
	}
	if (!type || strncasecmp(type, "application/json", 16) != 0) {
		admin_put_error(response, 415, "the body of an action is JSON");
		return false;
	}
	if (admin->config->scheduler.read_only || !admin->token[0]) {
		admin_put_error(
			response, 403,
			admin->token[0]
				? "these pages are read-only: scheduler.read_only "
				  "is set"
				: "these pages are read-only: the scheduler has no "
				  "token (scheduler.token_env, token_file)");
		return false;
	}
	if (!admin_guard_has_token(admin, request)) {
		admin_put_error(response, 401,
		                "this needs the token: Authorization: Bearer TOKEN");
		return false;
	}
	return true;
}
