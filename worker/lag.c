#include "worker/lag.h"

#include "common/io/log.h"

#include <uv.h>

void
lag_mark(struct lag *lag, const char *what)
{
	uint64_t now_ns = uv_hrtime();
	uint64_t spent_ns = now_ns - lag->since_ns;

	if (lag->what) {
		lag->busy_ns += spent_ns;
		if (spent_ns > lag->worst_ns) {
			lag->worst_ns = spent_ns;
			lag->worst_what = lag->what;
		}
		if (spent_ns > (uint64_t)LAG_ALARM_MS * 1000000)
			log_warning("the loop was held up; leases are in danger",
			            LOG_TEXT("by", lag->what),
			            LOG_NUMBER("ms", spent_ns / 1000000));
	}
	lag->what = what;
	lag->since_ns = now_ns;
}
