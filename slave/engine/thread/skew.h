/* Instances of one LUN that are held in proportion: of those on this thread that are in the step, at iops: max and have
 * a skew.
 *
 * Rule: the progress of one is how many I/Os it has issued, by its skew. One that is ahead of the one furthest behind
 * is held: it is in no list, and takes no time. So none is ever ahead by more than one of its own I/Os. It is let go by
 * the issue that catches up with it, or when the one behind counts no longer: because it ended, was paused, got a rate
 * or lost its skew, or rests after failures. Who counts again goes on from where it was, or from the one furthest
 * behind, if that is further: nobody makes up for what it missed. The one furthest behind is never held, so something
 * always goes; if its I/Os hang, so do the others. Flushes count for nothing, and are never held.
 */
#ifndef IVYPY_SKEW_H
#define IVYPY_SKEW_H

#include <stdint.h>

#include "luns/instance.h"

struct thread;

struct skew {
    struct instance *groups; /* an instance of each LUN that has any */
};

/* At the start of a step: nobody counts yet. */
void skew_start(struct thread *t);

/* Whether it counts, or its skew, may have changed. */
void skew_settle(struct thread *t, struct instance *i);

/* It has issued so many in its turn: holds it if it is ahead, and lets go of those who are so no longer. */
void skew_count(struct thread *t, struct instance *i, uint32_t ios);

/* A flush of it is due. */
static inline void skew_let_flush(struct instance *i)
{
    if (i->waiting == WAITING_FOR_OTHERS && i->flushing.due)
        i->waiting = NOT_WAITING;
}

#endif
