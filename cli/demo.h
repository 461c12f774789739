/* demo.h - one burst measured twice: all at once, and with one writer first. */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

#include "cli/burst.h"
#include "cli/cli.h"

struct demo_options {
	struct burst burst;
	uint64_t slots;
	uint64_t lag_ms; /* between the writer's first event and the entry being readable
	                  */
	uint64_t job_ms; /* from the first event to the last */
	uint64_t output_limit; /* tokens a minute; 0: none */
};

/* The books of one burst: tokens and requests by the provider, times by us. */
struct demo_arm {
	uint64_t done, failed;
	uint64_t writes,
		duplicate_writes; /* requests that wrote a prefix; of these too many */
	uint64_t written, read, uncached; /* tokens */
	uint64_t makespan_ms;             /* first XADD to last result */
	uint64_t peak_in_flight;
	uint64_t peak_writers; /* most requests that wrote one prefix at once */
	uint64_t held_ms_p50, held_ms_max; /* from XADD to the request leaving */
};

#define DEMO_BURSTS_MAX 16

/* One arm: its bursts in a row; none if it was not run. */
struct demo_bursts {
	size_t count;
	struct demo_arm arms[DEMO_BURSTS_MAX];
};

/* Jobs that failed, of all its bursts. */
uint64_t demo_failed(const struct demo_bursts *bursts);

/* Cold prefill, lag, then the warm waves: no schedule that writes once is faster.  Where
 * no two jobs share a prefix, cold waves. */
uint64_t demo_lower_bound_ms(const struct demo_options *options);

/* What the tokens cost, in millionths of the price of one uncached prefix, and in
 * hundredths of a cent, by the built-in table of models (0: their price is not known). */
uint64_t demo_price_prefixes(const struct demo_options *options,
                             const struct demo_arm *arm);
uint64_t demo_price_dollars(const struct demo_options *options,
                            const struct demo_arm *arm);

/* The last burst of each arm; in JSON the earlier ones, too. */
void demo_print(const struct demo_options *options, const struct demo_bursts *naive,
                const struct demo_bursts *held);
json_t *demo_json(const struct demo_options *options, const struct demo_bursts *naive,
                  const struct demo_bursts *held);

#endif
