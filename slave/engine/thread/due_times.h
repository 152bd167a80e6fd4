/* What falls due, which tags end to think, and when the loop attends to an instance next. */
#ifndef IVYPY_DUE_TIMES_H
#define IVYPY_DUE_TIMES_H

#include <stdint.h>

#include "heap.h"

struct instance;
struct thread;

struct due_times {
    struct heap heap; /* when each instance falls due next, a tag of it ends to think, or it ends its rest */
};

/* Room for instances in so many slots, by the commanding thread. 0 or -ENOMEM. */
int due_times_init(struct thread *t, uint32_t slots);
void due_times_free(struct thread *t);

/* Nothing falls due. */
void due_times_clear(struct thread *t);

/* When the loop attends to an instance next; HEAP_EMPTY: never. */
static inline uint64_t due_times_next(const struct due_times *d)
{
    return heap_key(&d->heap);
}

/* After a change of its due times or its rest: when the loop attends to an instance next. */
void due_times_set_alarm(struct thread *t, struct instance *i);

/* Nothing falls due and nobody thinks any more: the instance has no work but for its flushes. Its backlog is dropped.
 */
void due_times_end(struct thread *t, struct instance *i);

/* Discards what has waited for longer than its instance lets it. */
void due_times_expire(struct thread *t, struct instance *i, uint64_t now_ns);

/* Counts what fell due before `until_ns`, as much as one pass of the loop may. */
void due_times_count(struct thread *t, uint64_t until_ns);

/* Where what is counted is final: all that fell due before `until_ns`, however long the thread was kept from it. */
void due_times_count_all(struct thread *t, uint64_t until_ns);

#endif
