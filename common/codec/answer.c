#include "common/codec/answer.h"

#include "common/codec/tape.h"
#include "common/codec/tape_text.h"
#include "common/text.h"

#include <stdarg.h>
#include <stdio.h>

#define TEXT_SHOWN 140 /* of the provider's message */

/* What was found in an error body. */
struct fault {
	char type[64]; /* error.type, or error.code where that says more */
	char code[64];
	char detail[64]; /* error.details.error_code */
	char message[TEXT_SHOWN];
	int status; /* error.code, where that is a status; 0: it is none */
	bool found;
	bool is_error; /* the body says that it is one */
	bool is_json;
};

static void
copy_text(const struct tape *tape, uint32_t at, char *to, size_t size)
{
	struct buffer text = BUFFER_INIT(BUFFER_SIZE_DEFAULT);

	to[0] = '\0';
	if (!tape_is(tape, at, TAPE_STRING))
		return;
	(void)tape_text_decode(tape_inside(tape, at), &text);
	(void)text_escape(buffer_span(&text), to, size);
	buffer_fini(&text);
}

/* Gateways that have said 200 already give the status that they meant as a number, or as
 * text: codes of OpenAI's errors are text, and Azure's is "429". */
static int
read_status(const struct tape *tape, uint32_t at)
{
	int64_t number = 0;
	uint64_t written;

	if (tape_is(tape, at, TAPE_STRING) &&
	    text_parse_unsigned(tape_inside(tape, at), 599, &written) == 0)
		number = (int64_t)written;
	else if (tape_integer(tape, at, &number) < 0)
		return 0;
	return number >= 400 && number <= 599 ? (int)number : 0;
}

/* Both vendors nest `error`; some servers answer the object itself, some only a text. */
static void
read_fault(struct span body, struct fault *fault)
{
	struct tape_error where;
	struct tape tape;
	uint32_t error;

	*fault = (struct fault){ 0 };
	tape_init(&tape);
	if (tape_parse(&tape, body, &where) == 0) {
		fault->is_json = true;
		error = tape_find(&tape, 0, "error");
		fault->is_error =
			(error != TAPE_NONE && tape_type(&tape, error) != TAPE_NULL) ||
			tape_string_is(&tape, tape_find(&tape, 0, "object"), "error");
		if (!tape_is(&tape, error, TAPE_OBJECT))
			error = error == TAPE_NONE ? 0 : error;
		copy_text(&tape, tape_find(&tape, error, "type"), fault->type,
		          sizeof fault->type);
		copy_text(&tape, tape_find(&tape, error, "code"), fault->code,
		          sizeof fault->code);
		fault->status = read_status(&tape, tape_find(&tape, error, "code"));
		copy_text(&tape, tape_find(&tape, error, "message"), fault->message,
		          sizeof fault->message);
		copy_text(&tape, tape_path(&tape, error, "details", "error_code", NULL),
		          fault->detail, sizeof fault->detail);
		if (tape_is(&tape, error, TAPE_STRING))
			copy_text(&tape, error, fault->message, sizeof fault->message);
		fault->found = fault->type[0] || fault->code[0] || fault->message[0];
	}
	tape_fini(&tape);
	if (!fault->found)
		(void)text_escape(body, fault->message, sizeof fault->message);
}

static bool
is_word(const char *text, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(text, words[i]) == 0)
			return true;
	return false;
}

#define IS_WORD(text, ...)                                  \
	is_word(text, (const char *const[]){ __VA_ARGS__ }, \
	        sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

/* The names of what we add to requests, most telling first. */
static enum answer_addition
named_addition(struct span body)
{
	static const struct {
		const char *word;
		enum answer_addition addition;
	} words[] = {
		{ "cache_control", ANSWER_ADDED_MARKER },
		{ "prompt_cache_breakpoint", ANSWER_ADDED_MARKER },
		{ "prompt_cache_options", ANSWER_ADDED_MARKER },
		{ "prompt_cache_key", ANSWER_ADDED_CACHE_KEY },
		{ "stream_options", ANSWER_ADDED_USAGE },
		{ "include_usage", ANSWER_ADDED_USAGE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (body.len > 0 &&
		    memmem(body.data, body.len, words[i].word, strlen(words[i].word)))
			return words[i].addition;
	if (body.len > 0 && memmem(body.data, body.len, "stream", 6))
		return ANSWER_ADDED_STREAM;
	return ANSWER_ADDED_NONE;
}

/* Statuses that no provider gives to a request of ours: who stands before it does. */
static bool
is_of_proxy(int status)
{
	return (status >= 300 && status < 400) || status == 407 || status == 511;
}

/* Does it call itself what it should be? */
static bool
is_typed(const struct answer_headers *headers)
{
	const char *type = headers->content_type;
	size_t len = strlen(type);

	return strcmp(type, "text/event-stream") == 0 ||
	       (len >= 4 && strcmp(type + len - 4, "json") == 0);
}

/* It is what a provider would say, though perhaps cut off or broken on its way. */
static bool
is_meant_as_answer(const struct answer_headers *headers, struct span body)
{
	struct span start = text_trim(body);
	char first = start.len > 0 ? start.data[0] : '\0';

	return first != '<' && (is_typed(headers) || first == '{' || first == '[');
}

/* Providers say in JSON what is wrong with a request.  A page, a line of text or nothing
 * at all comes from a gateway that has no way to them (a route that is gone, a firewall),
 * but for what any server may find out by itself about this one request. */
static bool
is_of_gateway(int status, const struct answer_headers *headers, struct span body)
{
	struct span start = text_trim(body);

	if (status < 400 || status >= 500 || headers->should_retry != ANSWER_UNKNOWN ||
	    is_meant_as_answer(headers, body))
		return false;
	switch (status) {
	case 400: /* a page: of another port, say; a text: of who could not read it */
		return start.len > 0 && start.data[0] == '<';
	case 411: /* length, size, form */
	case 413:
	case 414:
	case 415:
	case 422:
	case 431:
		return false;
	default:
		return true;
	}
}

static bool
is_spend_word(const char *word)
{
	return IS_WORD(word, "enforced_spend_limit_reached", "insufficient_quota",
	               "billing_hard_limit_reached", "billing_error",
	               "billing_not_active", "exceeded_current_quota_error",
	               "insufficient_user_quota", "Arrearage");
}

/* What a 400 of type invalid_request_error says of an account without money.  It is how
 * the message begins, so no words of a prompt that are quoted in it can be taken for it.
 */
static bool
is_spend_sentence(const char *message)
{
	static const char *const beginnings[] = {
		"Your credit balance is too low",
		"You have reached your specified API usage limits",
		"You have reached your specified workspace API usage limits",
	};

	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++)
		if (strncmp(message, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
}

static bool
is_spend_cap(const struct fault *fault)
{
	return is_spend_word(fault->detail) || is_spend_word(fault->code) ||
	       is_spend_word(fault->type) || is_spend_sentence(fault->message);
}

static bool
is_overload(const struct fault *fault, int status)
{
	return status == 529 ||
	       IS_WORD(fault->type, "overloaded_error", "unavailable_error",
	               "server_overloaded") ||
	       IS_WORD(fault->code, "server_overloaded", "overloaded");
}

static bool
is_rate_limit(const struct fault *fault, int status)
{
	return status == 429 ||
	       IS_WORD(fault->type, "rate_limit_error", "rate_limit_exceeded") ||
	       IS_WORD(fault->code, "rate_limit_exceeded");
}

static bool
is_key_refused(const struct fault *fault, int status)
{
	return status == 401 ||
	       IS_WORD(fault->type, "authentication_error", "invalid_api_key") ||
	       IS_WORD(fault->code, "invalid_api_key", "account_deactivated");
}

/* Words that say more than the status of a stream that had begun with 200. */
static bool
may_pass(const struct fault *fault, int status)
{
	if (IS_WORD(fault->type, "api_error", "timeout_error", "server_error",
	            "conflict_error", "internal_server_error") ||
	    IS_WORD(fault->code, "server_error"))
		return true;
	if (IS_WORD(fault->type, "invalid_request_error", "not_found_error",
	            "permission_error", "request_too_large"))
		return status == 408 || status == 409;
	return status == 408 || status == 409 || status >= 500 || status == 0 ||
	       status == 200;
}

static enum answer_kind
kind_of(const struct fault *fault, int status, const struct answer_headers *headers)
{
	if (is_of_proxy(status))
		return ANSWER_FOREIGN;
	if (is_spend_cap(fault) || status == 402)
		return ANSWER_SPEND_CAP;
	if (is_overload(fault, status) || is_rate_limit(fault, status))
		return ANSWER_DEFER;
	if (is_key_refused(fault, status))
		return ANSWER_KEY;
	if (headers->should_retry != ANSWER_UNKNOWN)
		return headers->should_retry ? ANSWER_RETRY : ANSWER_FATAL;
	return may_pass(fault, status) ? ANSWER_RETRY : ANSWER_FATAL;
}

static void PRINTF(2, 3) say(struct answer *answer, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(answer->text, sizeof answer->text, format, arguments);
	va_end(arguments);
}

static const char *
what_now(const struct answer *answer)
{
	switch (answer->kind) {
	case ANSWER_OK:
		return "";
	case ANSWER_RETRY:
		return "It counts as an attempt.";
	case ANSWER_DEFER:
		return answer->overloaded ? "The provider is overloaded; the job waits."
		                          : "A rate limit is reached; the job waits.";
	case ANSWER_FATAL:
		return "Sending it again would not help.";
	case ANSWER_SPEND_CAP:
		return "The account has reached its spending limit and is parked; raise "
		       "the limit.";
	case ANSWER_KEY:
		return "The key is refused and the account is parked; check the worker's "
		       "key.";
	case ANSWER_BAD_MARKER:
		return "It names a field that WarmQ added; it is sent again without.";
	case ANSWER_FOREIGN:
		return "No provider says that: look at the upstream's url and what is "
		       "between. The job waits.";
	case ANSWER_COUNT:
		break;
	}
	return "";
}

/* What ends a provider's message, if it does not end by itself. */
static const char *
full_stop(const char *message)
{
	size_t len = strlen(message);

	return len > 0 && strchr(".!?", message[len - 1]) ? "" : ".";
}

static void
describe(struct answer *answer, const struct fault *fault, int status)
{
	const char *word = fault->type[0] ? fault->type : fault->code;
	const char *next = what_now(answer);

	if (status >= 300 && status < 400)
		next = "It redirects, and keys are sent nowhere else: set the upstream's "
		       "url to where it is now. The job waits.";
	if (word[0])
		(void)snprintf(answer->type, sizeof answer->type, "%s", word);
	else
		(void)snprintf(answer->type, sizeof answer->type, "http_%d", status);
	if (status == 0)
		say(answer, "No answer: %s%s %s",
		    fault->message[0] ? fault->message : "lost",
		    full_stop(fault->message), next);
	else
		say(answer, "%d%s%s%s%s%s %s", status, word[0] ? " " : "", word,
		    fault->message[0] ? ": " : "", fault->message,
		    full_stop(fault->message), next);
}

void
answer_blame_job(struct answer *answer)
{
	/* Absent where the message left no room for all of it. */
	char *sentence = strstr(answer->text, what_now(answer));

	VERIFY(answer->kind == ANSWER_BAD_MARKER);
	answer->kind = ANSWER_FATAL;
	if (sentence) {
		size_t len = (size_t)(sentence - answer->text);

		(void)snprintf(sentence, sizeof answer->text - len, "%s",
		               what_now(answer));
	}
}

void
answer_classify(enum dialect dialect, int status, const struct answer_headers *headers,
                struct span body, struct answer *ret_answer)
{
	struct answer answer = { .after_ms = ANSWER_UNKNOWN };
	struct fault fault;

	read_fault(body, &fault);
	if (status >= 200 && status < 300 && !fault.is_error) {
		(void)snprintf(answer.type, sizeof answer.type, "ok");
		*ret_answer = answer;
		return;
	}
	if (status >= 200 && status < 300 && fault.status != 0)
		status = fault.status;
	answer.kind = status == 0 ? ANSWER_RETRY : kind_of(&fault, status, headers);
	answer.overloaded = is_overload(&fault, status);
	if (answer.kind == ANSWER_FATAL && dialect != DIALECT_RAW &&
	    is_of_gateway(status, headers, body))
		answer.kind = ANSWER_FOREIGN;
	if (answer.kind == ANSWER_FATAL && status == 400) {
		answer.addition = named_addition(body);
		if (answer.addition != ANSWER_ADDED_NONE)
			answer.kind = ANSWER_BAD_MARKER;
	}
	if (answer.kind == ANSWER_RETRY || answer.kind == ANSWER_DEFER)
		answer.after_ms = headers->retry_after_ms;
	describe(&answer, &fault, status);
	*ret_answer = answer;
}

static enum answer_kind
strange_kind(const struct answer_headers *headers, struct span body)
{
	if (is_meant_as_answer(headers, body))
		return ANSWER_RETRY;
	return text_is_utf8(body) && !memchr(body.data ? body.data : "", '\0', body.len)
	               ? ANSWER_FOREIGN
	               : ANSWER_FATAL;
}

void
answer_classify_strange(int status, const struct answer_headers *headers,
                        struct span body, struct answer *ret_answer)
{
	struct answer answer = {
		.kind = strange_kind(headers, body),
		.after_ms = ANSWER_UNKNOWN,
	};
	struct fault fault;

	read_fault(text_trim(body), &fault);
	(void)snprintf(answer.type, sizeof answer.type, "%s",
	               fault.is_json ? "no_answer" : "not_json");
	say(&answer, "%d, but no %s. %s%s%s", status, fault.is_json ? "answer" : "JSON",
	    what_now(&answer), fault.message[0] ? " It begins: " : " It is empty.",
	    fault.message);
	*ret_answer = answer;
}

const char *
answer_kind_name(enum answer_kind kind)
{
	static const char *const names[ANSWER_COUNT] = {
		[ANSWER_OK] = "ok",
		[ANSWER_RETRY] = "retry",
		[ANSWER_DEFER] = "defer",
		[ANSWER_FATAL] = "fatal",
		[ANSWER_SPEND_CAP] = "spend_cap",
		[ANSWER_KEY] = "key",
		[ANSWER_BAD_MARKER] = "bad_marker",
		[ANSWER_FOREIGN] = "foreign",
	};

	VERIFY(kind < ANSWER_COUNT);
	return names[kind];
}
