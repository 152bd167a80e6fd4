/* Edits: settings that the commanding thread posts, and the workload thread takes, between two I/Os or two steps. */
#ifndef IVYPY_MAILBOX_H
#define IVYPY_MAILBOX_H

#include "thread.h"

/* Takes what was posted, with effect from `now_ns` on. */
void mailbox_take(struct thread *t, uint64_t now_ns, bool in_step);

/* The same as the commanding thread sees it: whether what it posted is taken, with all effects. */
static inline bool mailbox_taken(const struct thread *t)
{
    return atomic_load_explicit(&t->mailbox.taken, memory_order_acquire) ==
           atomic_load_explicit(&t->mailbox.posted, memory_order_relaxed);
}

static inline bool mailbox_has(const struct thread *t)
{
    return atomic_load_explicit(&t->mailbox.posted, memory_order_acquire) !=
           atomic_load_explicit(&t->mailbox.taken, memory_order_relaxed);
}

#endif
