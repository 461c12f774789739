#include "cli/progress.h"

#include "cli/cli.h"

#include <stdio.h>
#include <unistd.h>

#define BAR_CELLS     24
#define REDRAW_MS_MIN 100

void
progress_begin(struct progress *progress, const char *label, uint64_t total, bool quiet)
{
	*progress = (struct progress){
		.label = label,
		.total = total,
		.started_ms = cli_now_ms(),
		.visible = !quiet && isatty(STDERR_FILENO),
	};
}

static void
draw_bar(uint64_t done, uint64_t total)
{
	uint64_t full = total ? MIN(done, total) * BAR_CELLS / total : 0;

	for (uint64_t i = 0; i < BAR_CELLS; i++)
		fputs(i < full ? "█" : "░", stderr);
}

void
progress_draw(struct progress *progress, uint64_t done, uint64_t failed)
{
	uint64_t now = cli_now_ms();
	char passed[32];

	if (!progress->visible)
		return;
	if (done < progress->total && now - progress->drawn_ms < REDRAW_MS_MIN)
		return;
	progress->drawn_ms = now;
	fprintf(stderr, "\r\033[K%s ", progress->label);
	draw_bar(done, progress->total);
	fprintf(stderr, "  %llu/%llu", (unsigned long long)done,
	        (unsigned long long)progress->total);
	if (failed > 0)
		fprintf(stderr, "  %llu failed", (unsigned long long)failed);
	fprintf(stderr, "  %s", cli_duration(now - progress->started_ms, passed));
	fflush(stderr);
}

void
progress_end(struct progress *progress)
{
	if (progress->visible)
		fputs("\r\033[K", stderr);
}
