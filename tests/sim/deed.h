/* deed.h - what people do to a queue at work: unpark accounts, steer workers,
 * switch holding off for a route, warm families, pause them.
 *
 * In the midst of accidents, true or not, and at the worst moment.  When the weather
 * clears, what they have switched off is switched on again. */
#ifndef TESTS_SIM_DEED_H
#define TESTS_SIM_DEED_H

#include "tests/sim/world.h"

void deed_start(struct world *world);
void deed_stop(struct world *world);

#endif
