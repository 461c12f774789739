/* The way out: the effective configuration as YAML, the table of keys as Markdown. */
#include "common/io/config.h"

#include "common/io/config_value.h"

static void
indent(struct buffer *out, unsigned depth)
{
	for (unsigned i = 0; i < depth; i++)
		(void)buffer_append_text(out, "  ");
}

static void print_section(enum config_section section, const void *base, unsigned depth,
                          bool first_is_indented, struct buffer *out);

static void
print_group(const struct config_group *group, const void *base, unsigned depth,
            struct buffer *out)
{
	const char *child = (const char *)base + group->offset;
	size_t count = 0;

	indent(out, depth);
	(void)buffer_append_format(out, "%s:", group->name);
	if (group->shape == CONFIG_SHAPE_ONE) {
		(void)buffer_append_byte(out, '\n');
		print_section(group->child, child, depth + 1, true, out);
		return;
	}
	count = *(const size_t *)(const void *)((const char *)base + group->count_offset);
	if (count == 0)
		(void)buffer_append_text(out, group->shape == CONFIG_SHAPE_MAP ? " {}"
		                                                               : " []");
	(void)buffer_append_byte(out, '\n');
	for (size_t i = 0; i < count; i++, child += group->size) {
		indent(out, depth + 1);
		if (group->shape == CONFIG_SHAPE_MAP)
			(void)buffer_append_format(out, "%s:\n", child);
		else
			(void)buffer_append_text(out, "- ");
		print_section(group->child, child, depth + 2,
		              group->shape == CONFIG_SHAPE_MAP, out);
	}
}

static void
print_section(enum config_section section, const void *base, unsigned depth,
              bool first_is_indented, struct buffer *out)
{
	for (size_t i = 0; i < config_table_keys_count; i++) {
		const struct config_key *key = &config_table_keys[i];

		if (key->section != section || config_value_is_unset(key, base))
			continue;
		if (first_is_indented)
			indent(out, depth);
		first_is_indented = true;
		(void)buffer_append_format(out, "%s: ", key->name);
		config_value_print(key, base, out);
		(void)buffer_append_byte(out, '\n');
	}
	for (size_t i = 0; i < config_table_groups_count; i++)
		if (config_table_groups[i].parent == section)
			print_group(&config_table_groups[i], base, depth, out);
}

int
config_print(const struct config *config, struct buffer *out)
{
	print_section(CONFIG_SECTION_ROOT, config, 0, true, out);
	return buffer_error(out);
}

static const char *
kind_text(enum config_kind kind)
{
	switch (kind) {
	case CONFIG_KIND_NAME:
		return "name";
	case CONFIG_KIND_TEXT:
		return "text";
	case CONFIG_KIND_DURATION:
		return "duration";
	case CONFIG_KIND_SIZE:
		return "size";
	case CONFIG_KIND_INTEGER:
		return "number";
	case CONFIG_KIND_PRICE:
		return "dollars";
	case CONFIG_KIND_MULTIPLIER:
		return "factor";
	case CONFIG_KIND_DATE:
		return "date";
	case CONFIG_KIND_BOOL:
		return "true, false";
	case CONFIG_KIND_WORD:
		return "word";
	case CONFIG_KIND_LIST:
		return "list";
	case CONFIG_KIND_PAIR:
		return "two patterns";
	case CONFIG_KIND_HEADERS:
	case CONFIG_KIND_HEADERS_ENV:
		return "map";
	}
	VERIFY(false);
	return NULL;
}

static void
print_kind(const struct config_key *key, struct buffer *out)
{
	if (key->kind != CONFIG_KIND_WORD) {
		(void)buffer_append_text(out, kind_text(key->kind));
		return;
	}
	for (size_t i = 0; key->words[i]; i++)
		(void)buffer_append_format(out, "%s`%s`", i > 0 ? ", " : "",
		                           key->words[i]);
}

static void
print_row(const struct config_key *key, struct buffer *out)
{
	(void)buffer_append_format(out, "| `%s` | ", key->name);
	print_kind(key, out);
	if (!key->initial)
		(void)buffer_append_format(out, " | %s | ", key->depends);
	else if (key->initial[0] == '\0')
		(void)buffer_append_text(out, " | empty | ");
	else
		(void)buffer_append_format(out, " | `%s` | ", key->initial);
	(void)buffer_append_format(out, "%s |\n", key->help);
}

static void
print_table(enum config_section section, const char *title, const char *help,
            struct buffer *out)
{
	(void)buffer_append_format(out, "### %s\n\n%s\n\n", title, help);
	(void)buffer_append_text(out, "| key | value | default | meaning |\n"
	                              "|---|---|---|---|\n");
	for (size_t i = 0; i < config_table_keys_count; i++)
		if (config_table_keys[i].section == section)
			print_row(&config_table_keys[i], out);
	(void)buffer_append_byte(out, '\n');
}

int
config_print_reference(struct buffer *out)
{
	static const char *const titles[CONFIG_SECTION_COUNT] = {
		[CONFIG_SECTION_UPSTREAM] = "`upstreams.<name>`",
		[CONFIG_SECTION_CLASS_LIMIT] = "`upstreams.<name>.class_limits.<class>`",
		[CONFIG_SECTION_MODEL] = "`models[]`",
		[CONFIG_SECTION_PRICE] = "`models[].prices[]`",
		[CONFIG_SECTION_POOL] = "`pools[]`",
		[CONFIG_SECTION_SCHEDULER] = "`scheduler`",
		[CONFIG_SECTION_WORKER] = "`worker`",
	};

	print_table(CONFIG_SECTION_ROOT, "Top level", "What all programs share.", out);
	for (size_t i = 0; i < config_table_groups_count; i++)
		print_table(config_table_groups[i].child,
		            titles[config_table_groups[i].child],
		            config_table_groups[i].help, out);
	return buffer_error(out);
}
