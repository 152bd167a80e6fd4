/* Late harvests: for how long a thread was kept from looking at the ring while completions waited in it.
 *
 * A completion is stamped when it is found, so whatever keeps the thread from looking lengthens service times. Two things
 * do: other work between two looks, and having no core. Time in the submit call is neither: it is the kernel at work on
 * I/Os. In a sleep the kernel looks for us, and wakes the thread; then it may wait for a core, and only the kernel knows
 * for how long. It is asked for every sleep that was longer than LATE_WATCH_NS, and of the shorter ones for one in that
 * time, which stands for those since the one before, but for no more than they lasted.
 * Rule: counted by completion, and never more than it was in flight, so that it compares with service times.
 */
#ifndef IVYPY_LATE_H
#define IVYPY_LATE_H

#include "thread.h"

#define LATE_WATCH_NS NS_PER_MS

/* A sleep is about to begin. */
void late_sleeps(struct thread *t, uint64_t now_ns);

/* It ended, with so many completions, so long after the look before it. Here and below: how late that was, if known. */
uint64_t late_slept(struct thread *t, uint32_t found, uint64_t gap_ns);

/* A look came so long after the one before that the thread may have been put aside. */
uint64_t late_put_aside(struct thread *t, uint32_t found, uint64_t gap_ns, uint64_t in_submit_ns);

/* So many completions were looked for so late. */
static inline void late_count(struct thread *t, uint64_t late_ns, uint64_t completions)
{
    t->running->harvest_late[bucket_of(late_ns)] += completions;
    t->running->figures.harvest_late += late_ns * completions;
}

/* A look came that long after the one before, for other work. */
static inline uint64_t late_busy(struct thread *t, uint32_t found, uint64_t late_ns)
{
    late_count(t, late_ns, found);
    return late_ns;
}

#endif
