#include "mailbox.h"

#include <errno.h>
#include <stdlib.h>

#include "luns/flush.h"
#include "luns/think.h"
#include "luns/volume.h"
#include "thread.h"

/* A new rate for an instance in mid-step. Its backlog is of the old one, and nobody asks for that any more. */
static void retime(struct thread *t, struct instance *i, double iops, uint64_t from_ns)
{
    uint64_t discarded = pacer_retime(&i->pacer, iops, from_ns);
    bool was_closed_loop = i->closed_loop;

    if (discarded) {
        row_of(t, i)->dropped += discarded;
        row_of(t, i)->backlog_since_ns = 0;
        t->mailbox.discarded += discarded;
    }
    i->closed_loop = iops < 0.0;
    if (i->closed_loop && !was_closed_loop)
        think_begin(i, from_ns);
    else if (!i->closed_loop)
        think_end(i);
}

static void apply(struct thread *t, struct instance *i, const struct setting *setting, uint64_t now_ns)
{
    double old_iops = i->parameters.setting.iops;
    uint64_t from_ns;

    instance_set(i, setting);
    i->edit = t->mailbox.edit;
    if (!i->in_step)
        return;
    from_ns = now_ns > i->begins_ns ? now_ns : i->begins_ns;
    row_of(t, i)->edit = i->edit;
    if (i->in_flight >= i->maxtags)
        i->tag_since_ns = now_ns;
    i->maxtags = i->ideal.at_once = setting->maxtags;
    ready_queue_resettle(i);
    if ((setting->iops != old_iops || volume_lacks(i)) && !t->boundary.cooling && !volume_is_spent(i))
        retime(t, i, setting->iops, from_ns);
    flush_settle(i);
    if (i->thinking.time_ns)
        think_recruit(i, from_ns);
    if (!t->boundary.cooling)
        due_times_set_alarm(t, i);
    skew_settle(t, i);
    ready_queue_enqueue(t, i);
}

void mailbox_take(struct thread *t, uint64_t now_ns, bool in_step)
{
    struct mailbox *m = &t->mailbox;
    uint32_t posted = atomic_load_explicit(&m->posted, memory_order_acquire);

    m->discarded = 0;
    for (uint32_t n = 0; n < m->count; n++) {
        struct instance *i = &t->instances[m->posts[n].slot];
        if (in_step) {
            apply(t, i, &m->posts[n].setting, now_ns);
        } else {
            instance_set(i, &m->posts[n].setting);
            i->edit = m->edit;
        }
    }
    /* Not now_ns, the pass's stamp: a preempted thread would appear to have applied the edit before it was posted. */
    atomic_store_explicit(&m->taken_ns, thread_now(t), memory_order_relaxed);
    atomic_store_explicit(&m->taken, posted, memory_order_release);
    thread_signal(t);
}

int mailbox_clear(struct thread *t, uint32_t room)
{
    struct mailbox *m = &t->mailbox;

    m->count = 0;
    if (room <= m->room)
        return 0;
    struct post *posts = realloc(m->posts, room * sizeof *posts);
    if (!posts)
        return -ENOMEM;
    m->posts = posts;
    m->room = room;
    return 0;
}

void mailbox_put(struct thread *t, uint32_t slot, const struct setting *setting)
{
    struct mailbox *m = &t->mailbox;

    m->posts[m->count++] = (struct post){.slot = slot, .setting = *setting};
}

void mailbox_post(struct thread *t, uint32_t edit)
{
    t->mailbox.edit = edit;
    atomic_fetch_add_explicit(&t->mailbox.posted, 1, memory_order_release);
}

void mailbox_free(struct thread *t)
{
    free(t->mailbox.posts);
    t->mailbox = (struct mailbox){0};
}
