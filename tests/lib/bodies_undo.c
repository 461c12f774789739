#include "tests/lib/bodies.h"

static bool
is_one_of(struct span edit, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct span text = span_from(list[i]);

		/* The comma is missing where the member is the first one of the body. */
		if (span_equals(edit, text) ||
		    (text.data[0] == ',' && text.data[1] == '"' &&
		     span_equals(edit, (struct span){ text.data + 1, text.len - 1 })))
			return true;
	}
	return false;
}

/* The transformation table: everything WarmQ may insert. */
static bool
is_allowed(struct span edit, const struct dialect_traits *traits)
{
	static const char *const any[] = {
		"[{\"type\":\"text\",\"text\":",
		",\"stream\":true",
	};
	static const char *const usage[] = {
		",\"stream_options\":{\"include_usage\":true}",
	};
	static const char *const markers[] = {
		",\"cache_control\":{\"type\":\"ephemeral\"}",
		",\"cache_control\":{\"type\":\"ephemeral\"}}]",
		",\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":\"1h\"}",
		",\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":\"1h\"}}]",
	};
	static const char *const breakpoints[] = {
		",\"prompt_cache_breakpoint\":{\"mode\":\"explicit\"}",
		",\"prompt_cache_breakpoint\":{\"mode\":\"explicit\"}}]",
	};
	static const char *const modes[] = {
		",\"prompt_cache_options\":{\"mode\":\"explicit\"}",
	};
	static const char *const keys[] = { ",\"prompt_cache_key\":\"" BODIES_CACHE_KEY
		                            "\"" };

	return is_one_of(edit, any, ARRAY_SIZE(any)) ||
	       (traits->include_usage && is_one_of(edit, usage, ARRAY_SIZE(usage))) ||
	       (traits->markers == MARKER_CACHE_CONTROL &&
	        is_one_of(edit, markers, ARRAY_SIZE(markers))) ||
	       (traits->markers == MARKER_BREAKPOINT &&
	        is_one_of(edit, breakpoints, ARRAY_SIZE(breakpoints))) ||
	       (traits->cache_mode && is_one_of(edit, modes, ARRAY_SIZE(modes))) ||
	       (traits->cache_key && is_one_of(edit, keys, ARRAY_SIZE(keys)));
}

static void
set_back(json_t *body, const struct splice_report *report)
{
	json_t *options = json_object_get(body, "stream_options");

	if (report->stream == SPLICE_FALSE || report->stream == SPLICE_NULL)
		(void)json_object_set_new(body, "stream",
		                          report->stream == SPLICE_FALSE ? json_false()
		                                                         : json_null());
	switch (report->usage) {
	case SPLICE_KEPT:
	case SPLICE_NO_PARENT:
		break;
	case SPLICE_ABSENT:
		(void)json_object_del(options, "include_usage");
		break;
	case SPLICE_FALSE:
		(void)json_object_set_new(options, "include_usage", json_false());
		break;
	case SPLICE_NULL:
		(void)json_object_set_new(options, "include_usage", json_null());
		break;
	case SPLICE_NULL_PARENT:
		(void)json_object_set_new(body, "stream_options", json_null());
		break;
	}
}

json_t *
bodies_undo(struct span sent, const struct splice_report *report,
            const struct dialect_traits *traits)
{
	struct buffer left = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	size_t at = 0;
	json_t *body;

	for (unsigned i = 0; i < report->edit_count; i++) {
		const struct splice_edit *edit = &report->edit[i];
		struct span bytes = { sent.data + edit->at, edit->len };

		if (!is_allowed(bytes, traits)) {
			buffer_fini(&left);
			return NULL;
		}
		(void)buffer_append(&left,
		                    (struct span){ sent.data + at, edit->at - at });
		at = edit->at + edit->len;
	}
	(void)buffer_append(&left, (struct span){ sent.data + at, sent.len - at });
	body = json_loadb(buffer_text(&left), left.len, JSON_ALLOW_NUL, NULL);
	buffer_fini(&left);
	if (body)
		set_back(body, report);
	return body;
}
