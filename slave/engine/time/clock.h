/* The kernel's clocks: nanoseconds on CLOCK_MONOTONIC's scale, where nothing else is said.
 *
 * Rule: no other file asks the system for the time. What takes the place of clock_gettime in the loop (clock_map.h,
 * tsc.h) keeps the scale, since due times, boundaries and the lease come from other clocks of the same scale.
 */
#ifndef IVYPY_CLOCK_H
#define IVYPY_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

uint64_t clock_now(void);

/* Any of the system's clocks. */
uint64_t clock_read(int clock);

/* CPU time of the calling thread. */
uint64_t clock_thread_cpu(void);

struct timespec clock_timespec(uint64_t ns);

/* A condition variable whose deadlines are by this clock. */
void clock_condition_init(pthread_cond_t *condition);

#endif
