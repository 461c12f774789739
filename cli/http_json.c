#include "cli/http_json.h"

#include "common/buffer.h"

#include <curl/curl.h>
#include <stdlib.h>

#define TIMEOUT_MS      10000L
#define ANSWER_SIZE_MAX ((size_t)16 << 20)

static size_t
on_bytes(char *data, size_t size, size_t count, void *context)
{
	return buffer_append(context, (struct span){ data, size * count }) < 0
	               ? 0
	               : size * count;
}

static int
perform(CURL *curl, const char **ret_cause)
{
	CURLcode code = curl_easy_perform(curl);
	long status = 0;

	*ret_cause = curl_easy_strerror(code);
	if (code == CURLE_OPERATION_TIMEDOUT)
		return ERR_TIMEOUT;
	if (code != CURLE_OK)
		return ERR_CONNECTION;
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	return status >= 200 && status < 300 ? 0 : ERR_IO;
}

int
http_json(const char *url, const json_t *body, json_t **ret_answer,
          const char **ret_cause)
{
	struct buffer answer = BUFFER_INIT(ANSWER_SIZE_MAX);
	struct curl_slist *headers =
		curl_slist_append(NULL, "Content-Type: application/json");
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	CURL *curl = curl_easy_init();
	int err = ERR_MEMORY;

	*ret_cause = error_text(err);
	if (curl) {
		curl_easy_setopt(curl, CURLOPT_URL, url);
		curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
		curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
		curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
		curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
		curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
		curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
		if (text)
			curl_easy_setopt(curl, CURLOPT_POSTFIELDS, text);
		err = perform(curl, ret_cause);
		curl_easy_cleanup(curl);
	}
	if (err == 0) {
		*ret_answer = json_loadb(buffer_text(&answer), answer.len,
		                         JSON_DECODE_ANY, NULL);
		err = *ret_answer ? 0 : ERR_MALFORMED;
		*ret_cause = "the answer is no JSON";
	}
	curl_slist_free_all(headers);
	free(text);
	buffer_fini(&answer);
	return err;
}
