#include "scheduler/board_settings.h"

#include "common/codec/protocol.h"
#include "common/id.h"

#include <ctype.h>

#define DIGITS 16

static void
put_part(const char *group, struct span name, struct span text, struct buffer *out)
{
	char hex[ID_HEX_LEN];

	if (name.len == 0)
		return;
	id_encode(id_of(text, 0), hex);
	if (out->len > 0)
		(void)buffer_append_byte(out, ' ');
	(void)buffer_append_text(out, group);
	(void)buffer_append(out, name);
	(void)buffer_append_byte(out, '=');
	(void)buffer_append(out, (struct span){ hex, DIGITS });
}

/* "  main:" at depth 1 begins a part in `upstreams:`, "pools: …" at depth 0 anywhere. */
static bool
begins_part(struct span line, bool in_upstreams, struct span *ret_name)
{
	size_t depth = in_upstreams && line.len > 2 && line.data[0] == ' ' ? 2 : 0;
	const char *colon = memchr(line.data, ':', line.len);

	if (!colon || line.len <= depth || isspace((unsigned char)line.data[depth]) ||
	    line.data[depth] == '-')
		return false;
	*ret_name =
		(struct span){ line.data + depth, (size_t)(colon - line.data) - depth };
	return true;
}

int
board_settings_print(const struct config *config, struct buffer *out)
{
	struct buffer text;
	struct span rest, line, name, part = SPAN(""), part_name = SPAN("");
	const char *group = "";
	bool in_upstreams = false;
	int err;

	buffer_init(&text, BUFFER_SIZE_DEFAULT);
	err = config_print(config, &text);
	rest = buffer_span(&text);
	while (err == 0 && protocol_cut(&rest, '\n', &line)) {
		if (begins_part(line, in_upstreams, &name)) {
			bool is_top = line.data[0] != ' ';

			put_part(group, part_name, part, out);
			group = is_top ? "" : "upstreams.";
			in_upstreams = is_top ? span_equals(name, SPAN("upstreams"))
			                      : in_upstreams;
			part_name = is_top && in_upstreams ? SPAN("") : name;
			part = (struct span){ line.data, 0 };
		}
		if (part.data)
			part.len = (size_t)(line.data + line.len - part.data);
	}
	put_part(group, part_name, part, out);
	buffer_fini(&text);
	return err < 0 ? err : buffer_error(out);
}

/* Of the words "name=hash" the hash; empty if there is no such name. */
static struct span
hash_of(struct span words, struct span name)
{
	struct span word, key;

	while (protocol_cut(&words, ' ', &word))
		if (protocol_cut(&word, '=', &key) && span_equals(key, name))
			return word;
	return SPAN("");
}

static void
put_names(struct span words, struct span others, bool only_missing, struct buffer *out)
{
	struct span word, name, hash;

	while (protocol_cut(&words, ' ', &word)) {
		if (!protocol_cut(&word, '=', &name))
			continue;
		hash = hash_of(others, name);
		if (only_missing ? hash.len > 0 : span_equals(hash, word))
			continue;
		(void)buffer_append_text(out, out->len > 0 ? ", " : "");
		(void)buffer_append(out, name);
	}
}

void
board_settings_differ(struct span before, struct span now, struct buffer *out)
{
	put_names(now, before, false, out);
	put_names(before, now, true, out);
}
