#include "cli/columns.h"

#include <stdio.h>
#include <stdlib.h>

void
columns_begin(struct columns *table, const struct column *columns, size_t count)
{
	*table = (struct columns){ columns, count, json_array() };
}

void
columns_add(struct columns *table, const char *const *cells)
{
	json_t *row = json_array();

	for (size_t i = 0; i < table->count; i++)
		json_array_append_new(row, cli_json_safe(span_from(cells[i])));
	json_array_append_new(table->rows, row);
}

/* Characters, not bytes. */
static size_t
length_of(const char *text)
{
	size_t length = 0;

	for (; *text; text++)
		length += (*text & 0xc0) != 0x80;
	return length;
}

static const char *
cell_at(const json_t *row, size_t i)
{
	return json_string_value(json_array_get(row, i));
}

static size_t
width_of(const struct columns *table, size_t column)
{
	size_t width = length_of(table->columns[column].name);
	const json_t *row;
	size_t i;

	json_array_foreach(table->rows, i, row)
	{
		width = MAX(width, length_of(cell_at(row, column)));
	}
	return MIN(width, COLUMNS_WIDTH_MAX);
}

static void
print_blanks(size_t count)
{
	printf("%*s", (int)count, "");
}

/* The first characters of a cell that is too long. */
static void
print_cut(const char *text, size_t width)
{
	size_t shown = 0;

	for (; *text; text++) {
		shown += (*text & 0xc0) != 0x80;
		if (shown == width)
			break;
		putchar(*text);
	}
	fputs("…", stdout);
}

static void
print_cell(const struct columns *table, size_t i, const char *text, size_t width)
{
	bool is_last = i + 1 == table->count;
	size_t length = length_of(text);
	size_t blanks = width > length ? width - length : 0;

	if (table->columns[i].is_number)
		print_blanks(blanks);
	if (length > width && !is_last)
		print_cut(text, width);
	else
		fputs(text, stdout);
	if (is_last)
		return;
	print_blanks((table->columns[i].is_number ? 0 : blanks) + 2);
}

void
columns_print(struct columns *table, const char *indent)
{
	size_t *widths = calloc(table->count + 1, sizeof(*widths));
	const json_t *row;
	size_t i;

	VERIFY(widths);
	for (size_t j = 0; j < table->count; j++)
		widths[j] = width_of(table, j);
	if (json_array_size(table->rows) > 0) {
		printf("%s%s", indent, cli_style(CLI_BOLD));
		for (size_t j = 0; j < table->count; j++)
			print_cell(table, j, table->columns[j].name, widths[j]);
		printf("%s\n", cli_style(CLI_PLAIN));
	}
	json_array_foreach(table->rows, i, row)
	{
		fputs(indent, stdout);
		for (size_t j = 0; j < table->count; j++)
			print_cell(table, j, cell_at(row, j), widths[j]);
		putchar('\n');
	}
	free(widths);
	json_decref(table->rows);
	*table = (struct columns){ 0 };
}
