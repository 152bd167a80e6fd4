/* What drivers ask of the simulated machine (simulation.c). */
#ifndef SIMULATION_H
#define SIMULATION_H

#include <stdint.h>

#pragma GCC visibility push(default)

/* What takes time there: to submit a batch, and to poll the ring. */
extern uint64_t simulation_batch_ns, simulation_poll_ns;

/* From now on others take all cores but the driver's for `ns` at the begin of each `of_ns`; 0, 0: no longer. */
void simulation_take_cores(uint64_t of_ns, uint64_t ns);

/* Until a file can be read, at most so long: as poll. For who is not linked with this. */
int simulation_poll(int fd, int timeout_ms);

#pragma GCC visibility pop

#endif
