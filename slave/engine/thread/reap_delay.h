/* Reap delay: for how long a thread was kept from polling the ring while completions waited in it.
 *
 * A completion is stamped when it is found, so whatever keeps the thread from polling lengthens service times. Two things
 * do: other work between two polls, and having no core. Time in the submit call is neither: it is the kernel at work on
 * I/Os. In a sleep the kernel waits for completions, and wakes the thread; then it may wait for a core, and only the kernel knows
 * for how long. It is asked for every sleep that was longer than REAP_DELAY_WATCH_NS, and of the shorter ones for one in that
 * time, which stands for those since the one before, but for no more than they lasted.
 * Rule: counted by completion, and never more than it was in flight, so that it compares with service times.
 */
#ifndef IVYPY_REAP_DELAY_H
#define IVYPY_REAP_DELAY_H

#include "thread.h"

#define REAP_DELAY_WATCH_NS NS_PER_MS

/* A sleep is about to begin. */
void reap_delay_sleeps(struct thread *t, uint64_t now_ns);

/* It ended, with so many completions, so long after the poll before it. Here and below: how late that was, if known. */
uint64_t reap_delay_slept(struct thread *t, uint32_t found, uint64_t gap_ns);

/* A poll came so long after the one before that the thread may have been preempted. */
uint64_t reap_delay_preempted(struct thread *t, uint32_t found, uint64_t gap_ns, uint64_t in_submit_ns);

/* So many completions were polled for so late. */
static inline void reap_delay_count(struct thread *t, uint64_t late_ns, uint64_t completions)
{
    t->running->reap_delay[bucket_of(late_ns)] += completions;
    t->running->figures.reap_delay += late_ns * completions;
}

/* A poll came that long after the one before, for other work. */
static inline uint64_t reap_delay_busy(struct thread *t, uint32_t found, uint64_t late_ns)
{
    reap_delay_count(t, late_ns, found);
    return late_ns;
}

#endif
