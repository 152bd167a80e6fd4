#include "ready_queue.h"

#include "thread.h"

/* How fast the cap comes back after an EAGAIN. */
#define RAISE_NS NS_PER_MS

static void list_put(struct instance_list *list, struct instance *i)
{
    i->next_waiting = NULL;
    if (list->first)
        list->last->next_waiting = i;
    else
        list->first = i;
    list->last = i;
}

void ready_queue_enqueue(struct thread *t, struct instance *i)
{
    if (i->waiting != NOT_WAITING || !instance_has_work(i))
        return;
    i->waiting = WAITING_TO_SUBMIT;
    list_put(i->pacer.backlog ? &t->ready_queue.due : &t->ready_queue.closed_loop, i);
}

void ready_queue_wait_for_room(struct thread *t, struct instance *i)
{
    i->waiting = WAITING_FOR_QUEUE;
    list_put(&i->share->waiting, i);
    row_of(t, i)->queue_limited++;
}

void ready_queue_wake(struct thread *t, struct share *s)
{
    struct instance *next;

    while ((next = list_take(&s->waiting))) {
        next->waiting = NOT_WAITING;
        ready_queue_enqueue(t, next);
        if (next->waiting != NOT_WAITING)
            break;
    }
}

void ready_queue_put_again(struct thread *t, struct tag *tag)
{
    struct share *s = tag->instance->share;

    s->in_flight -= tag->weight;
    tag->next_again = NULL;
    if (s->again_first)
        s->again_last->next_again = tag;
    else
        s->again_first = tag;
    s->again_last = tag;
    if (!s->listed) {
        s->listed = true;
        s->next_listed = t->ready_queue.again;
        t->ready_queue.again = s;
    }
}

void ready_queue_again(struct thread *t, struct tag *tag, uint64_t now_ns)
{
    struct instance *i = tag->instance;
    struct share *s = i->share;

    row_of(t, i)->again++;
    ready_queue_put_again(t, tag);
    if (s->in_flight == 0 && !s->only_full)
        i->nowait = false; /* it was alone: not the queue was full, this device says EAGAIN for other reasons */
    s->cap = s->in_flight > tag->weight ? s->in_flight : tag->weight;
    s->raise_ns = s->retry_ns = now_ns + READY_QUEUE_RETRY_NS;
}

void ready_queue_release(struct thread *t, const struct tag *tag, uint64_t now_ns)
{
    struct share *s = tag->instance->share;

    if (!share_has_room(s, tag->weight))
        s->room_since_ns = tag_free_since(tag, now_ns);
    s->in_flight -= tag->weight;
    if (s->cap < s->full_cap && now_ns >= s->raise_ns) {
        s->cap++;
        s->raise_ns = now_ns + RAISE_NS;
    }
    ready_queue_wake(t, s);
}

void ready_queue_reset(struct thread *t)
{
    t->ready_queue = (struct ready_queue){0};
}

/* They go as soon as something of their queue completed. With nothing of it in flight waiting would not help: such an I/O
 * goes without RWF_NOWAIT. */
static struct tag *take_again_of(struct share *s, uint64_t now_ns)
{
    struct tag *tag = s->again_first;
    bool retry = now_ns >= s->retry_ns;

    if (!tag || (s->in_flight > 0 && s->in_flight + tag->weight > s->cap && !retry))
        return NULL;
    if (retry)
        s->retry_ns = now_ns + READY_QUEUE_RETRY_NS;
    s->again_first = tag->next_again;
    tag->nowait = tag->instance->nowait && tag->weight == 1 && s->in_flight > 0;
    tag->again = true;
    return tag;
}

struct tag *ready_queue_take_again(struct thread *t, struct share ***share, uint64_t now_ns)
{
    struct share *s;

    if (!*share)
        *share = &t->ready_queue.again;
    while ((s = **share)) {
        struct tag *tag = take_again_of(s, now_ns);
        if (tag)
            return tag;
        if (s->again_first) {
            *share = &s->next_listed;
        } else {
            **share = s->next_listed;
            s->listed = false;
        }
    }
    return NULL;
}
