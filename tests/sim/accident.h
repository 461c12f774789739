/* accident.h - what happens to a world's processes: crashes, frosts, stops, cuts, clocks.
 *
 * How many of each the weather says; when, and whom they meet, is drawn when the world
 * begins.  accident_stop ends all of it: what is down comes up, what is cut off is heard
 * again. */
#ifndef TESTS_SIM_ACCIDENT_H
#define TESTS_SIM_ACCIDENT_H

#include "tests/sim/world.h"

void accident_start(struct world *world);
void accident_stop(struct world *world);

/* A message of the wake channel goes out to all workers, and some of them get it. */
void accident_wake(struct world *world, struct span pool);

#endif
