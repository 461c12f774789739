/* The way in: YAML onto the structs, by the table.  libyaml gives a tree with positions;
 * everything about keys, kinds and limits is in the table. */
#include "common/io/config.h"

#include "common/io/config_value.h"
#include "common/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

#define PATH_SIZE 400
#define DEPTH_MAX 32 /* a configuration has 7 levels */

struct parse {
	yaml_document_t *document;
	const char *name;     /* of the file, for messages */
	char path[PATH_SIZE]; /* "upstreams.main.ttl": where we are */
	struct config_error *error;
};

static int parse_section(struct parse *parse, yaml_node_t *node,
                         enum config_section section, void *base);

static int
fail(struct parse *parse, const yaml_node_t *node, int error, const char *reason)
{
	char path[PATH_SIZE];

	(void)text_escape(span_from(parse->path), path, sizeof path);
	parse->error->line = (uint32_t)node->start_mark.line + 1;
	(void)snprintf(parse->error->message, sizeof parse->error->message,
	               "%s:%u: %s%s%s", parse->name, parse->error->line, path,
	               path[0] ? " " : "", reason);
	return error;
}

/* Goes one step down, into a key or (if `index` > 0) into an element; answers the length
 * to go back to. */
static size_t
enter(struct parse *parse, struct span key, size_t index)
{
	size_t len = strlen(parse->path), room = sizeof parse->path - len;

	if (index > 0)
		(void)snprintf(parse->path + len, room, "[%zu]", index);
	else
		(void)snprintf(parse->path + len, room, "%s%.*s", len > 0 ? "." : "",
		               (int)MIN(key.len, 64), key.data);
	return len;
}

static void
leave(struct parse *parse, size_t len)
{
	parse->path[len] = '\0';
}

static yaml_node_t *
node_at(struct parse *parse, int index)
{
	return yaml_document_get_node(parse->document, index);
}

static struct span
scalar_text(const yaml_node_t *node)
{
	return (struct span){ (const char *)node->data.scalar.value,
		              node->data.scalar.length };
}

/* A scalar, and not one of YAML's ways to say nothing. */
static int
need_scalar(struct parse *parse, const yaml_node_t *node, struct span *ret_text)
{
	bool plain;

	if (node->type != YAML_SCALAR_NODE)
		return fail(parse, node, ERR_MALFORMED, "must be a single value");
	plain = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	if (plain && (node->data.scalar.length == 0 ||
	              span_equals(scalar_text(node), SPAN("null")) ||
	              span_equals(scalar_text(node), SPAN("~"))))
		return fail(parse, node, ERR_MALFORMED,
		            "has no value; leave the key out for its default");
	*ret_text = scalar_text(node);
	return 0;
}

static int
parse_list(struct parse *parse, yaml_node_t *node, const struct config_key *key,
           void *base)
{
	char reason[CONFIG_VALUE_REASON_SIZE];
	struct span text;
	int err;

	if (node->type != YAML_SEQUENCE_NODE)
		return fail(parse, node, ERR_MALFORMED, "must be a list");
	config_value_clear(key, base);
	for (yaml_node_item_t *item = node->data.sequence.items.start;
	     item < node->data.sequence.items.top; item++) {
		err = need_scalar(parse, node_at(parse, *item), &text);
		if (err < 0)
			return err;
		err = config_value_append(key, base, text, reason);
		if (err < 0)
			return fail(parse, node_at(parse, *item), err, reason);
	}
	return 0;
}

static int
parse_pair(struct parse *parse, yaml_node_t *node, const struct config_key *key,
           void *base)
{
	char reason[CONFIG_VALUE_REASON_SIZE];
	size_t half = 0;
	struct span text;
	int err;

	if (node->type != YAML_SEQUENCE_NODE ||
	    node->data.sequence.items.top - node->data.sequence.items.start != 2)
		return fail(parse, node, ERR_MALFORMED,
		            "must be a list of two patterns, route and upstream");
	for (yaml_node_item_t *item = node->data.sequence.items.start;
	     item < node->data.sequence.items.top; item++) {
		err = need_scalar(parse, node_at(parse, *item), &text);
		if (err < 0)
			return err;
		err = config_value_set_half(key, base, half++, text, reason);
		if (err < 0)
			return fail(parse, node_at(parse, *item), err, reason);
	}
	return 0;
}

/* Maps must not say a thing twice: which one counted would be a guess. */
static int
refuse_repeats(struct parse *parse, yaml_node_t *node, yaml_node_pair_t *pair)
{
	yaml_node_t *key = node_at(parse, pair->key);

	if (key->type != YAML_SCALAR_NODE)
		return fail(parse, key, ERR_MALFORMED, "has a key that is no plain text");
	for (yaml_node_pair_t *before = node->data.mapping.pairs.start; before < pair;
	     before++) {
		if (!span_equals(scalar_text(node_at(parse, before->key)),
		                 scalar_text(key)))
			continue;
		(void)enter(parse, scalar_text(key), 0);
		return fail(parse, key, ERR_MALFORMED, "is given twice");
	}
	return 0;
}

static int
parse_headers(struct parse *parse, yaml_node_t *node, const struct config_key *key,
              void *base)
{
	char reason[CONFIG_VALUE_REASON_SIZE];
	struct span name, text;
	size_t len;
	int err;

	if (node->type != YAML_MAPPING_NODE)
		return fail(parse, node, ERR_MALFORMED,
		            "must be a map of names to values");
	config_value_clear(key, base);
	for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top; pair++) {
		err = refuse_repeats(parse, node, pair);
		if (err < 0)
			return err;
		name = scalar_text(node_at(parse, pair->key));
		len = enter(parse, name, 0);
		err = need_scalar(parse, node_at(parse, pair->value), &text);
		if (err < 0)
			return err;
		err = config_value_add_header(key, base, name, text, reason);
		if (err < 0)
			return fail(parse, node_at(parse, pair->key), err, reason);
		leave(parse, len);
	}
	return 0;
}

static int
parse_value(struct parse *parse, yaml_node_t *node, const struct config_key *key,
            void *base)
{
	char reason[CONFIG_VALUE_REASON_SIZE];
	struct span text;
	int err;

	if (key->kind == CONFIG_KIND_LIST)
		return parse_list(parse, node, key, base);
	if (key->kind == CONFIG_KIND_PAIR)
		return parse_pair(parse, node, key, base);
	if (key->kind == CONFIG_KIND_HEADERS || key->kind == CONFIG_KIND_HEADERS_ENV)
		return parse_headers(parse, node, key, base);

	err = need_scalar(parse, node, &text);
	if (err < 0)
		return err;
	err = config_value_set(key, base, text, reason);
	return err < 0 ? fail(parse, node, err, reason) : 0;
}

static int
parse_map(struct parse *parse, yaml_node_t *node, const struct config_group *group,
          void *base)
{
	struct span name;
	void *child;
	size_t len;
	int err;

	if (node->type != YAML_MAPPING_NODE)
		return fail(parse, node, ERR_MALFORMED, "must be a map of names");
	for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top; pair++) {
		err = refuse_repeats(parse, node, pair);
		if (err < 0)
			return err;
		name = scalar_text(node_at(parse, pair->key));
		len = enter(parse, name, 0);
		if (!text_is_name(name))
			return fail(parse, node_at(parse, pair->key), ERR_MALFORMED,
			            "must be a name: 1 to 128 of A-Z a-z 0-9 . _ -");
		child = config_table_child(group, base, name);
		if (!child)
			return fail(parse, node_at(parse, pair->key), ERR_LIMIT,
			            "is one too many");
		err = parse_section(parse, node_at(parse, pair->value), group->child,
		                    child);
		if (err < 0)
			return err;
		leave(parse, len);
	}
	return 0;
}

/* A list in the file replaces what was there before. */
static int
parse_sections(struct parse *parse, yaml_node_t *node, const struct config_group *group,
               void *base)
{
	size_t len, index = 0;
	void *child;
	int err;

	if (node->type != YAML_SEQUENCE_NODE)
		return fail(parse, node, ERR_MALFORMED, "must be a list");
	*(size_t *)(void *)((char *)base + group->count_offset) = 0;
	for (yaml_node_item_t *item = node->data.sequence.items.start;
	     item < node->data.sequence.items.top; item++) {
		len = enter(parse, (struct span){ 0 }, ++index);
		child = config_table_add_child(group, base);
		if (!child)
			return fail(parse, node_at(parse, *item), ERR_LIMIT,
			            "is one too many");
		err = parse_section(parse, node_at(parse, *item), group->child, child);
		if (err < 0)
			return err;
		leave(parse, len);
	}
	return 0;
}

static int
parse_group(struct parse *parse, yaml_node_t *node, const struct config_group *group,
            void *base)
{
	switch (group->shape) {
	case CONFIG_SHAPE_MAP:
		return parse_map(parse, node, group, base);
	case CONFIG_SHAPE_LIST:
		return parse_sections(parse, node, group, base);
	case CONFIG_SHAPE_ONE:
		break;
	}
	return parse_section(parse, node, group->child, (char *)base + group->offset);
}

static int
fail_unknown(struct parse *parse, const yaml_node_t *node, enum config_section section)
{
	const char *nearest = config_table_nearest(section, scalar_text(node));
	char reason[CONFIG_VALUE_REASON_SIZE];

	(void)snprintf(reason, sizeof reason, "is not a known key%s%s%s",
	               nearest ? "; did you mean " : ". docs/CONFIG.md lists all",
	               nearest ? nearest : "", nearest ? "?" : ".");
	return fail(parse, node, ERR_UNKNOWN_KEY, reason);
}

static int
parse_section(struct parse *parse, yaml_node_t *node, enum config_section section,
              void *base)
{
	const struct config_group *group;
	const struct config_key *key;
	struct span name;
	size_t len;
	int err;

	if (node->type != YAML_MAPPING_NODE)
		return fail(parse, node, ERR_MALFORMED,
		            "must be a map of keys and values");
	for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top; pair++) {
		err = refuse_repeats(parse, node, pair);
		if (err < 0)
			return err;
		name = scalar_text(node_at(parse, pair->key));
		len = enter(parse, name, 0);
		key = config_table_key(section, name);
		group = config_table_group(section, name);
		if (key)
			err = parse_value(parse, node_at(parse, pair->value), key, base);
		else if (group)
			err = parse_group(parse, node_at(parse, pair->value), group,
			                  base);
		else
			err = fail_unknown(parse, node_at(parse, pair->key), section);
		if (err < 0)
			return err;
		leave(parse, len);
	}
	return 0;
}

static int
fail_yaml(const yaml_parser_t *parser, const char *name, struct config_error *reterr)
{
	reterr->line = (uint32_t)parser->problem_mark.line + 1;
	(void)snprintf(reterr->message, sizeof reterr->message,
	               "%s:%u: this is no YAML: %s", name, reterr->line,
	               parser->problem ? parser->problem : "unreadable");
	return ERR_MALFORMED;
}

/* "---" begins another document: what stands there would be left out without a word. */
static int
refuse_more(yaml_parser_t *parser, const char *name, struct config_error *reterr)
{
	yaml_document_t document;
	yaml_node_t *root;
	size_t line;

	if (!yaml_parser_load(parser, &document))
		return fail_yaml(parser, name, reterr);
	root = yaml_document_get_root_node(&document);
	line = root ? root->start_mark.line + 1 : 0;
	yaml_document_delete(&document);
	if (!root)
		return 0;
	(void)snprintf(reterr->message, sizeof reterr->message,
	               "%s:%zu: a second document begins; a configuration has one", name,
	               line);
	reterr->line = (uint32_t)line;
	return ERR_MALFORMED;
}

static int
fail_depth(const yaml_event_t *event, const char *name, struct config_error *reterr)
{
	reterr->line = (uint32_t)event->start_mark.line + 1;
	(void)snprintf(reterr->message, sizeof reterr->message,
	               "%s:%u: column %zu: this is nested more than %d levels deep; no "
	               "configuration is",
	               name, reterr->line, event->start_mark.column + 1, DEPTH_MAX);
	return ERR_LIMIT;
}

/* libyaml knows no limit, and its time grows with the square of the depth: event by event
 * it never gets there.  What is no YAML is left to yaml_parser_load. */
static int
refuse_depth(struct span text, const char *name, struct config_error *reterr)
{
	yaml_parser_t parser;
	yaml_event_t event;
	bool is_over = false;
	int depth = 0, err = 0;

	if (!yaml_parser_initialize(&parser))
		return ERR_MEMORY;
	yaml_parser_set_input_string(&parser, (const unsigned char *)text.data, text.len);
	while (!is_over && yaml_parser_parse(&parser, &event)) {
		depth += event.type == YAML_SEQUENCE_START_EVENT ||
		         event.type == YAML_MAPPING_START_EVENT;
		depth -= event.type == YAML_SEQUENCE_END_EVENT ||
		         event.type == YAML_MAPPING_END_EVENT;
		if (depth > DEPTH_MAX)
			err = fail_depth(&event, name, reterr);
		is_over = err < 0 || event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return err;
}

/* Parses onto `config`, which may be left half changed. */
static int
parse_onto(struct config *config, struct span text, const char *name,
           struct config_error *reterr)
{
	struct parse parse = { .name = name, .error = reterr };
	yaml_document_t document;
	yaml_parser_t parser;
	yaml_node_t *root;
	int err = refuse_depth(text, name, reterr);

	if (err < 0)
		return err;
	if (!yaml_parser_initialize(&parser))
		return ERR_MEMORY;
	yaml_parser_set_input_string(&parser, (const unsigned char *)text.data, text.len);
	if (!yaml_parser_load(&parser, &document)) {
		err = fail_yaml(&parser, name, reterr);
		yaml_parser_delete(&parser);
		return err;
	}
	parse.document = &document;
	root = yaml_document_get_root_node(&document);
	if (root && !(root->type == YAML_SCALAR_NODE && root->data.scalar.length == 0))
		err = parse_section(&parse, root, CONFIG_SECTION_ROOT, config);
	yaml_document_delete(&document);
	if (err == 0 && root)
		err = refuse_more(&parser, name, reterr);
	yaml_parser_delete(&parser);
	return err;
}

int
config_parse(struct config *config, struct span text, const char *name,
             struct config_error *reterr)
{
	struct config *draft;
	int err;

	*reterr = (struct config_error){ 0 };
	if (text.len > CONFIG_FILE_SIZE_MAX) {
		(void)snprintf(reterr->message, sizeof reterr->message,
		               "%s: a configuration has at most 1 MiB", name);
		return ERR_LIMIT;
	}
	draft = malloc(sizeof *draft);
	if (!draft)
		return ERR_MEMORY;
	*draft = *config;
	err = parse_onto(draft, (struct span){ text.data ? text.data : "", text.len },
	                 name, reterr);
	if (err == 0)
		*config = *draft;
	free(draft);
	return err;
}
