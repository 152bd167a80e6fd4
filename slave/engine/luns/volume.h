/* The end of a workload instance by volume: it submits no more once so many I/Os, or bytes of them, count (`until`); or
 * once so much time has passed since the step's start.
 *
 * Rule: an I/O counts from its place in a batch on, whatever becomes of it; one that is taken back from there, or that
 * the kernel gave back and a pause discarded, never was. The last I/O may exceed an amount in bytes. Spent, an instance
 * has no work, and no edit gives it any; it has ended once none of its I/Os is in flight any more, nor the fsync that
 * is its end. Instances without `until` pay nothing for this: what all of them ask is how long a turn may be, and
 * whether turns are counted.
 *
 * By time, no I/O counts: an alarm says that it is spent. What is in a batch at that instant goes. It comes one
 * nanosecond early, so that a boundary at that instant finds the instance at its end, if nothing of it is in flight.
 */
#ifndef IVYPY_VOLUME_H
#define IVYPY_VOLUME_H

#include <stdbool.h>
#include <stdint.h>

#include "instance.h"

/* What is not submitted of it, 0 without `until`; for other threads, too. By time: all, until it is spent. */
static inline uint64_t volume_left(const struct instance *i)
{
    uint64_t spent = atomic_load_explicit(&i->volume.spent, memory_order_relaxed);
    uint64_t amount = i->parameters.fixed.until.amount;

    return amount > spent ? amount - spent : 0;
}

static inline bool volume_is_spent(const struct instance *i)
{
    return i->parameters.fixed.until.what != ENDS_NEVER && volume_left(i) == 0;
}

static inline bool volume_is_timed(const struct instance *i)
{
    return i->parameters.fixed.until.what == ENDS_TIME;
}

/* At the start of a step. */
void volume_start(struct instance *i, uint64_t start_ns);

/* By time: it is spent, and has ended if none of its I/Os is in flight. */
void volume_expire(struct instance *i);

/* After a change of the block size, or of whether a flush is due: how long a turn may be. */
void volume_settle(struct instance *i);

/* This I/O and those after it, the newest in flight, are in the batch. */
void volume_spend(struct instance *i, const struct tag *first);

/* This one never was submitted, or is not submitted again. Without effect where there is no `until`. */
void volume_return(struct instance *i, const struct tag *tag);

/* Some of its I/Os have landed: the end, if these were the last. */
void volume_note_end(struct instance *i, uint64_t now_ns);

/* Of `fallen` I/Os that just fell due, which are in the backlog: how many what is left has use for. From the last of
 * these on none falls due. */
uint64_t volume_bound(struct instance *i, uint64_t fallen);

/* Whether what an edit changed asks for more I/Os than would fall due. */
bool volume_lacks(const struct instance *i);

#endif
