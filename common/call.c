#include "common/call.h"

void
call_reset(struct call_list *list)
{
	list->call_count = 0;
	list->arg_count = 0;
	list->byte_count = 0;
}

bool
call_fits(const struct call_list *list, uint32_t args, uint32_t bytes)
{
	return list->call_count < list->call_max &&
	       list->arg_max - list->arg_count >= args &&
	       list->byte_max - list->byte_count >= bytes;
}

void
call_begin(struct call_list *list, uint64_t tag)
{
	VERIFY(list->call_count < list->call_max);
	list->calls[list->call_count++] = (struct call){
		.tag = tag,
		.arg_from = list->arg_count,
	};
}

void
call_word(struct call_list *list, struct span word)
{
	VERIFY(list->call_count > 0);
	VERIFY(list->arg_count < list->arg_max);
	VERIFY(list->byte_max - list->byte_count >= word.len);
	list->args[list->arg_count++] = (struct call_arg){
		.from = list->byte_count,
		.len = (uint32_t)word.len,
	};
	if (word.len > 0)
		memcpy(list->bytes + list->byte_count, word.data, word.len);
	list->byte_count += (uint32_t)word.len;
	list->calls[list->call_count - 1].arg_count++;
}

void
call_text(struct call_list *list, const char *text)
{
	call_word(list, span_from(text));
}

void
call_integer(struct call_list *list, int64_t value)
{
	char digits[24];
	uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
	size_t at = sizeof digits;

	do {
		digits[--at] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest > 0);
	if (value < 0)
		digits[--at] = '-';
	call_word(list, (struct span){ digits + at, sizeof digits - at });
}

struct span
call_arg(const struct call_list *list, const struct call *call, uint32_t i)
{
	VERIFY(i < call->arg_count);
	const struct call_arg *arg = &list->args[call->arg_from + i];

	return (struct span){ list->bytes + arg->from, arg->len };
}
