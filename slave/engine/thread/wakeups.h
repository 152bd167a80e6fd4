/* What a thread's sleeps are like on its core: by how much they end late, and what CPU time one takes.
 *
 * Both depend on the machine and on what else it does: a timer rings 1 us late on bare metal, 40 us late in a virtual
 * machine, more after a deep idle state. So both are measured, before the first step and at every sleep that its timer
 * ended, and the oldest are forgotten.
 */
#ifndef IVYPY_WAKEUPS_H
#define IVYPY_WAKEUPS_H

#include <stdint.h>

enum { WAKEUPS = 128 }; /* sleeps that are remembered */

struct wakeups {
    uint64_t late_ns[WAKEUPS]; /* a ring */
    uint32_t count;            /* of all that were ever added */
    uint64_t mean_ns, p90_ns, p99_ns;
    uint64_t cost_ns; /* CPU time of a sleep, a running mean */
};

/* A sleep that its timer ended ended so late. */
void wakeups_add(struct wakeups *w, uint64_t late_ns);

/* It took so much CPU time. */
void wakeups_add_cost(struct wakeups *w, uint64_t cpu_ns);

/* By the thread itself, before its first step: measures a few dozen short sleeps, for some milliseconds at most. */
void wakeups_measure(struct wakeups *w);

#endif
