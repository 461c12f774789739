/* metrics_money.h - tokens by cause and their price, from the ledger.  Part of metrics.c.
 */
#ifndef SCHEDULER_METRICS_MONEY_H
#define SCHEDULER_METRICS_MONEY_H

#include "common/buffer.h"
#include "scheduler/ledger/ledger_view.h"

void metrics_money_write(const struct ledger *ledger, uint64_t now_ms,
                         struct buffer *out);

#endif
