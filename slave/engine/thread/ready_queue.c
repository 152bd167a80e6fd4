#include "ready_queue.h"

#include "luns/volume.h"
#include "thread.h"

/* How fast kernel_cap comes back: by an eighth in this time. */
#define RAISE_NS NS_PER_MS

static void set_cap(struct share *s)
{
    s->cap = s->holding.held < s->kernel_cap ? s->holding.held : s->kernel_cap;
}

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
    holding_wait(&i->share->holding, i->share->in_flight, i->weight);
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
    if (!s->waiting.first)
        holding_calm(&s->holding);
}

static uint64_t wanted_by(const struct instance *i)
{
    return i->parameters.setting.iops == 0.0 || volume_is_spent(i) ? 0 : (uint64_t)i->maxtags * i->weight;
}

void ready_queue_resettle(struct instance *i)
{
    uint64_t wanted = wanted_by(i);

    holding_demand(&i->share->holding, (int64_t)(wanted - i->wanted), i->weight, !i->nowait - i->blocks);
    i->wanted = wanted;
    i->blocks = !i->nowait;
    set_cap(i->share);
}

void ready_queue_join(struct instance *i)
{
    i->wanted = 0;
    i->blocks = false;
    holding_cover(&i->share->holding, i->share->in_flight);
    ready_queue_resettle(i);
}

bool ready_queue_find_room(struct share *s, uint32_t weight)
{
    if (s->again_first || s->in_flight + weight > s->kernel_cap || !holding_take(&s->holding, s->in_flight, weight))
        return false;
    set_cap(s);
    return true;
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
    if (s->in_flight == 0 && !s->only_full) {
        i->nowait = false; /* it was alone: not the queue was full, this device says EAGAIN for other reasons */
        ready_queue_resettle(i);
    }
    s->kernel_cap = s->in_flight > tag->weight ? s->in_flight : tag->weight;
    s->kernel_full = true;
    s->raised = false;
    s->raise_ns = s->retry_ns = now_ns + READY_QUEUE_RETRY_NS;
    set_cap(s);
}

/* What was used of it since it was last raised was taken: the device has room. */
static __attribute__((noinline, cold)) void raise_kernel_cap(struct share *s, uint32_t in_flight, uint64_t now_ns)
{
    if (s->kernel_full && s->raised && in_flight >= s->kernel_cap) {
        s->kernel_full = false;
        s->room_since_ns = s->room_found_ns = now_ns;
    }
    s->raised = true;
    s->raise_ns = now_ns + RAISE_NS;
    s->kernel_cap += 1 + s->kernel_cap / 8;
    if (s->kernel_cap > s->holding.wanted && s->kernel_cap > in_flight)
        s->kernel_cap = NO_CAP;
    set_cap(s);
}

/* Without room: whether it is the device that has none, rather than this thread's share of it. */
static bool device_is_full(const struct share *s, uint32_t weight)
{
    if (s->again_first || s->in_flight + weight > s->kernel_cap)
        return s->kernel_full;
    return holding_device_is_full(&s->holding, s->in_flight, weight);
}

void ready_queue_release_limited(struct thread *t, const struct tag *tag, uint64_t now_ns)
{
    struct share *s = tag->instance->share;

    if (!share_has_room(s, tag->weight) && device_is_full(s, tag->weight)) {
        s->room_since_ns = tag_free_since(tag, now_ns);
        s->room_found_ns = now_ns;
        s->requests = s->in_flight;
    }
    if (__builtin_expect(s->kernel_cap != NO_CAP, false) && now_ns >= s->raise_ns)
        raise_kernel_cap(s, s->in_flight, now_ns);
    s->in_flight -= tag->weight;
    if (s->holding.held > s->holding.reserve && s->holding.room) {
        holding_release(&s->holding, s->in_flight);
        set_cap(s);
    }
    if (__builtin_expect(!s->waiting.first, true))
        return;
    uint32_t weight = s->waiting.first->weight;
    if (share_has_room(s, weight) || ready_queue_find_room(s, weight))
        ready_queue_wake(t, s);
    else
        holding_wait(&s->holding, s->in_flight, weight);
}

void ready_queue_reset(struct thread *t)
{
    t->ready_queue = (struct ready_queue){0};
}

/* They go as soon as something of their queue completed. With nothing of it in flight waiting would not help: such an
 * I/O goes without RWF_NOWAIT. One of a paused instance goes nowhere, at once. */
static struct tag *take_again_of(struct share *s, uint64_t now_ns)
{
    struct tag *tag = s->again_first;
    bool retry = now_ns >= s->retry_ns;

    if (!tag)
        return NULL;
    if (instance_is_paused(tag->instance)) {
        s->again_first = tag->next_again;
        return tag;
    }
    if (s->in_flight > 0 && s->in_flight + tag->weight > s->kernel_cap && !retry)
        return NULL;
    if (s->in_flight > 0 && !holding_take(&s->holding, s->in_flight, tag->weight))
        return NULL;
    set_cap(s);
    if (retry)
        s->retry_ns = now_ns + READY_QUEUE_RETRY_NS;
    s->again_first = tag->next_again;
    tag->nowait = tag->instance->nowait && tag->weight == 1 && op_moves_data(tag->op) && s->in_flight > 0;
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
