/* columns.h - a table for a terminal: as wide as what stands in it, numbers to the right.
 *
 *   JOB              ROUTE    SLOT
 *   1764450000000-0  triage     12
 *
 * Rows are gathered first, since the widest cell makes a column.  What stands in a cell
 * may be anybody's text: it is escaped.  A cell of more than COLUMNS_WIDTH_MAX characters
 * is cut there, and ends with "…"; the last column is as long as it is. */
#ifndef CLI_COLUMNS_H
#define CLI_COLUMNS_H

#include "cli/cli.h"

#define COLUMNS_WIDTH_MAX 40

struct column {
	const char *name;
	bool is_number; /* to the right */
};

struct columns {
	const struct column *columns;
	size_t count;
	json_t *rows; /* arrays of strings, escaped */
};

/* Begins an empty table; `columns` outlives it. */
void columns_begin(struct columns *table, const struct column *columns, size_t count);

/* Copies one row: a text for each column. */
void columns_add(struct columns *table, const char *const *cells);

/* Prints the heading and all rows on stdout, each behind `indent`, and ends the table. An
 * empty one prints nothing. */
void columns_print(struct columns *table, const char *indent);

#endif
