#include "common/info.h"

#include "common/text.h"

struct span
info_find(struct span info, const char *name)
{
	size_t name_len = strlen(name);

	while (info.len > 0) {
		const char *end = memchr(info.data, '\n', info.len);
		size_t len = end ? (size_t)(end - info.data) : info.len;
		size_t past = end ? len + 1 : len;

		if (len > name_len && info.data[name_len] == ':' &&
		    memcmp(info.data, name, name_len) == 0) {
			struct span value = { info.data + name_len + 1,
				              len - name_len - 1 };

			value.len -= value.len > 0 && value.data[value.len - 1] == '\r';
			return value;
		}
		info.data += past;
		info.len -= past;
	}
	return SPAN("");
}

uint64_t
info_number(struct span info, const char *name)
{
	struct span value = info_find(info, name);
	size_t len = 0;
	uint64_t number;

	while (len < value.len && value.data[len] >= '0' && value.data[len] <= '9')
		len++;
	value.len = len;
	return text_parse_unsigned(value, UINT64_MAX, &number) < 0 ? 0 : number;
}
