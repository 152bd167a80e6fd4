/* The loop of a workload thread.
 *
 * In order of priority: file what completed, submit what is due, record, wait until the next thing can happen. Every
 * pass has two readings of the clock: one immediately before the submit call, and one after it, which stamps the
 * completions found by then (the ring is polled first, so a stamp is never early).
 * Rule: nothing here allocates, nothing takes a lock, and no wait is longer than THREAD_LONGEST_WAIT_NS.
 */
#ifndef IVYPY_LOOP_H
#define IVYPY_LOOP_H

#include <stdint.h>

struct thread;

struct loop {
    uint32_t attention; /* the step's, as last seen */
};

/* From the step's start to its end. Returns how many of t->reap.completions are not filed, and their stamp. */
uint32_t loop_run(struct thread *t, uint64_t *now_ns);

#endif
