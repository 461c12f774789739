/* The ways in that are no YAML text: files by their name, flags by their path. */
#include "common/io/config.h"

#include "common/io/config_value.h"
#include "common/text.h"

#include <errno.h>
#include <stdio.h>

int
config_load(struct config *config, const char *path, struct config_error *reterr)
{
	struct buffer text = BUFFER_INIT(CONFIG_FILE_SIZE_MAX + 1);
	FILE *file = fopen(path, "re");
	char *to = file ? buffer_reserve(&text, CONFIG_FILE_SIZE_MAX + 1) : NULL;
	int err = ERR_IO;

	*reterr = (struct config_error){ 0 };
	if (to) {
		buffer_commit(&text, fread(to, 1, CONFIG_FILE_SIZE_MAX + 1, file));
		err = ferror(file) ? ERR_IO : 0;
	}
	if (err < 0)
		(void)snprintf(reterr->message, sizeof reterr->message, "%s: %s", path,
		               strerror(errno));
	else
		err = config_parse(config, buffer_span(&text), path, reterr);
	if (file)
		(void)fclose(file);
	buffer_fini(&text);
	return err;
}

static int
fail_set(struct config_error *reterr, int error, const char *path, const char *reason)
{
	*reterr = (struct config_error){ 0 };
	(void)snprintf(reterr->message, sizeof reterr->message, "%s %s", path, reason);
	return error;
}

int
config_set(struct config *config, const char *path, struct span value,
           struct config_error *reterr)
{
	const char *dot = strchr(path, '.'), *last = strrchr(path, '.');
	enum config_section section = CONFIG_SECTION_ROOT;
	const struct config_group *group = NULL;
	char reason[CONFIG_VALUE_REASON_SIZE];
	const struct config_key *key;
	void *base = config;
	int err;

	if (dot) {
		group = config_table_group(CONFIG_SECTION_ROOT,
		                           (struct span){ path, (size_t)(dot - path) });
		if (!group || group->shape == CONFIG_SHAPE_LIST)
			return fail_set(reterr, ERR_UNKNOWN_KEY, path,
			                "is not a known key");
		section = group->child;
		base = (char *)config + group->offset;
	}
	if (group && group->shape == CONFIG_SHAPE_MAP) {
		struct span name = { dot + 1, last > dot ? (size_t)(last - dot - 1) : 0 };

		if (!text_is_name(name))
			return fail_set(
				reterr, ERR_MALFORMED, path,
				"needs a name and a key, as in upstreams.main.url");
		base = config_table_child(group, config, name);
		if (!base)
			return fail_set(reterr, ERR_LIMIT, path, "is one too many");
	}
	key = config_table_key(section, span_from(dot ? last + 1 : path));
	if (!key)
		return fail_set(reterr, ERR_UNKNOWN_KEY, path, "is not a known key");
	err = config_value_set(key, base, value, reason);
	return err < 0 ? fail_set(reterr, err, path, reason) : 0;
}
