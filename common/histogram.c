#include "common/histogram.h"

const uint64_t histogram_bounds_ms[HISTOGRAM_BUCKETS] = {
	10,    50,    100,   250,    500,    1000,   2500,    5000,    10000,
	20000, 30000, 60000, 120000, 300000, 600000, 1800000, 3600000,
};

const char *const histogram_bounds_text[HISTOGRAM_BUCKETS] = {
	"0.01", "0.05", "0.1", "0.25", "0.5", "1",   "2.5",  "5",    "10",
	"20",   "30",   "60",  "120",  "300", "600", "1800", "3600",
};

void
histogram_add(struct histogram *histogram, uint64_t ms)
{
	uint32_t bucket = 0;

	while (bucket < HISTOGRAM_BUCKETS && ms > histogram_bounds_ms[bucket])
		bucket++;
	histogram->counts[bucket]++;
	histogram->sum_ms += ms;
}

uint64_t
histogram_count(const struct histogram *histogram)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i <= HISTOGRAM_BUCKETS; i++)
		count += histogram->counts[i];
	return count;
}
