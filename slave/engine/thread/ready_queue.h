/* Whose turn it is: the instances that may submit, those that wait for room in a queue of the kernel, and the I/Os that
 * the kernel gave back.
 *
 * Rule: a queue takes no more than it holds; one more would block submission, and with it every other LUN on the
 * thread. So the rest waits here, as due, and is woken by what completes. Where RWF_NOWAIT works, the kernel says how
 * much that is: after an EAGAIN, as much as was in flight, and then more and more until it says so again.
 */
#ifndef IVYPY_READY_QUEUE_H
#define IVYPY_READY_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "luns/instance.h"
#include "luns/queue_room.h"

struct thread;

/* After an EAGAIN: how long until it is tried again although nothing has completed. */
#define READY_QUEUE_RETRY_NS (10 * NS_PER_MS)

#define NO_CAP UINT32_MAX

struct instance_list {
    struct instance *first, *last;
};

struct ready_queue {
    struct instance_list due, closed_loop; /* that have something to submit, and may */
    struct share *again;                   /* shares that hold I/Os to submit again */
};

/* This thread's share of a device's queue in the kernel: of the hardware queue that it submits to. */
struct share {
    uint32_t in_flight, cap; /* requests; cap: the lesser of these two */
    struct holding holding;
    uint32_t kernel_cap;    /* what the kernel took when it last said EAGAIN, and more since; NO_CAP: it never did */
    bool kernel_full;       /* nothing says that it would take more by now */
    bool raised;            /* kernel_cap was, since the EAGAIN */
    bool only_full;         /* the device says EAGAIN only when its queue is full, whoever filled it */
    bool listed;            /* in the thread's list of shares with I/Os to submit again */
    uint64_t room_since_ns; /* since when the device has room, or would have if nothing had been late */
    uint64_t room_found_ns; /* when that was found */
    uint64_t free_ns;       /* when a user last found room without waiting for it; */
    uint64_t free_due_ns; /* the latest due time of those who did: who was due before them, and waited, was overtaken */
    double behind_ns;     /* how far its requests are behind in the mean, see think.h */
    uint32_t requests;    /* in flight when it was last full */
    uint32_t instances;   /* of the step, that have a part in it */
    uint64_t retry_ns, raise_ns;
    struct instance_list waiting;
    struct tag *again_first, *again_last;
    struct share *next_listed;
};

/* Nothing is ready, and nothing is to be submitted again. */
void ready_queue_reset(struct thread *t);

/* The next I/O that the kernel gave back and that may go now, or NULL. `*share`: where to go on; at first the first. */
struct tag *ready_queue_take_again(struct thread *t, struct share ***share, uint64_t now_ns);

/* An instance's settings in force: as the step begins; after an edit. */
void ready_queue_join(struct instance *i);
void ready_queue_resettle(struct instance *i);

/* Whether the queue has room for an I/O where share_has_room does not know of any. */
bool ready_queue_find_room(struct share *s, uint32_t weight);

/* It may submit, if it has something to submit and waits for nothing. */
void ready_queue_enqueue(struct thread *t, struct instance *i);

/* It has something to submit, and the queue below it has no room. */
void ready_queue_wait_for_room(struct thread *t, struct instance *i);

/* There is room in a queue for the next of those that wait for it. */
void ready_queue_wake(struct thread *t, struct share *s);

/* Waits to be submitted once more. */
void ready_queue_put_again(struct thread *t, struct tag *tag);

/* The kernel gave it back: it keeps its times, and its place among those in flight. */
void ready_queue_again(struct thread *t, struct tag *tag, uint64_t now_ns);

/* One I/O less in the queue below its instance, which is limited, or for which somebody waits. */
void ready_queue_release_limited(struct thread *t, const struct tag *tag, uint64_t now_ns);

static inline bool share_has_room(const struct share *s, uint32_t weight)
{
    return s->in_flight == 0 || (s->in_flight + weight <= s->cap && !s->again_first);
}

/* Requests that are so far behind are about to be in flight. Where they `waited` for that, the room that others wait
 * for is as far behind as before, though nothing is in flight in it; and so is theirs, where another instance may have
 * waited for longer. */
static inline void share_takes(struct share *s, uint32_t weight, uint64_t behind_ns, bool waited)
{
    if (s->cap == NO_CAP || (waited && s->instances > 1))
        return;
    s->behind_ns += ((double)behind_ns - s->behind_ns) * weight / (waited ? s->requests : s->in_flight + weight);
}

/* Of its requests, those of `tag` are by so much further behind. */
static inline void share_falls_behind(struct share *s, const struct tag *tag, uint64_t by_ns)
{
    if (s->cap != NO_CAP)
        s->behind_ns += (double)by_ns * tag->weight / s->requests;
}

/* One I/O less in the queue below its instance. */
static inline void ready_queue_release(struct thread *t, const struct tag *tag, uint64_t now_ns)
{
    struct share *s = tag->instance->share;

    if (s->cap == NO_CAP && !s->waiting.first && !s->again_first)
        s->in_flight -= tag->weight;
    else
        ready_queue_release_limited(t, tag, now_ns);
}

static inline struct instance *list_take(struct instance_list *list)
{
    struct instance *i = list->first;

    if (i)
        list->first = i->next_waiting;
    return i;
}

#endif
