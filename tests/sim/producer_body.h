/* producer_body.h - the requests that simulated producers ask for. */
#ifndef TESTS_SIM_PRODUCER_BODY_H
#define TESTS_SIM_PRODUCER_BODY_H

#include "tests/sim/producer.h"

/* Writes the request of a job into the producer's body. */
void producer_body_write(struct producer *producer, const struct producer_job *job,
                         uint32_t number);

/* Appends the text of a shared system prompt, which only its title tells from others. */
void producer_body_system(struct buffer *out, const char *title);

#endif
