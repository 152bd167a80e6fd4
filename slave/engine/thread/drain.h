/* The end of a step, on one thread: what is in flight is waited for, for a bounded time. What does not come back is an
 * orphaned I/O: it keeps its tag and its memory until it does, in whatever step. Between steps nobody polls the ring,
 * so whoever needs the tags of orphans back asks here.
 */
#ifndef IVYPY_DRAIN_H
#define IVYPY_DRAIN_H

#include <stdint.h>

struct thread;

/* How a step ended for this thread. */
struct drain {
    uint64_t caught, failed, uncaught, oldest_uncaught_ns, longest_caught_ns, dropped;
};

/* At the start of a step. */
void drain_start(struct thread *t);

/* After the loop, which left so many completions of the last poll unfiled. */
void drain_in_flight(struct thread *t, uint32_t found, uint64_t now_ns);

/* Takes the orphans that have come back. By the thread itself, or once it has ended. */
void drain_orphans(struct thread *t);

/* By the thread itself, about to end: also those that come back until then. */
void drain_await_orphans(struct thread *t, uint64_t until_ns);

#endif
