/* Edits: settings that the commanding thread posts, and the workload thread takes, between two I/Os or two steps. */
#ifndef IVYPY_MAILBOX_H
#define IVYPY_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "luns/instance.h"

struct thread;

struct post {
    uint32_t slot;
    struct setting setting;
};

/* One edit at a time: the commanding thread posts the next when all threads have taken the last. */
struct mailbox {
    _Atomic uint32_t posted, taken; /* generations */
    _Atomic uint64_t taken_ns;
    uint64_t discarded; /* I/Os of the backlog that the last edit discarded */
    uint32_t edit, count, room;
    struct post *posts;
};

/* By the commanding thread, where all that was posted is taken: empties it, with room for so many. 0 or -ENOMEM. */
int mailbox_clear(struct thread *t, uint32_t room);
void mailbox_put(struct thread *t, uint32_t slot, const struct setting *setting);

/* Posts what was put. The thread finds it when it is woken, or calls by itself. */
void mailbox_post(struct thread *t, uint32_t edit);
void mailbox_free(struct thread *t);

/* Takes what was posted, with effect from `now_ns` on. */
void mailbox_take(struct thread *t, uint64_t now_ns, bool in_step);

/* The same as the commanding thread sees it: whether what it posted is taken, with all effects. */
static inline bool mailbox_taken(const struct mailbox *m)
{
    return atomic_load_explicit(&m->taken, memory_order_acquire) ==
           atomic_load_explicit(&m->posted, memory_order_relaxed);
}

static inline bool mailbox_has(const struct mailbox *m)
{
    return atomic_load_explicit(&m->posted, memory_order_acquire) !=
           atomic_load_explicit(&m->taken, memory_order_relaxed);
}

#endif
