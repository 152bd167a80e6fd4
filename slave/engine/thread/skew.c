#include "skew.h"

#include <math.h>

#include "luns/volume.h"
#include "thread.h"

static double progress(const struct instance *i)
{
    return i->skewed.from + (double)i->skewed.issued / i->skewed.weight;
}

/* Of the one furthest behind; INFINITY: nobody counts. */
static double least_progress(const struct instance *group)
{
    const struct instance *i = group;
    double least = INFINITY;

    do {
        if (i->skewed.counts)
            least = fmin(least, progress(i));
        i = i->skewed.next;
    } while (i != group);
    return least;
}

/* Those who are not ahead. A user's time in here is nobody's lateness. */
static void let_go(struct thread *t, struct instance *group, double least)
{
    struct instance *i = group;

    do {
        if (i->waiting == WAITING_FOR_OTHERS && !(i->skewed.counts && progress(i) > least)) {
            i->waiting = NOT_WAITING;
            i->tag_since_ns = thread_now(t);
            ready_queue_enqueue(t, i);
        }
        i = i->skewed.next;
    } while (i != group);
}

/* One by one, so that none gets ahead in a turn. Not in volume_settle, which is inlined into everybody's loop. */
static void shorten_turn(struct instance *i)
{
    if (i->skewed.counts && i->turn > 1)
        i->turn = 1;
}

/* For the rest of the step, whether it counts or not. */
static void join(struct thread *t, struct instance *i)
{
    struct instance *group = t->skew.groups;

    while (group && !lun_is_same(group->lun, i->lun))
        group = group->skewed.next_group;
    if (group) {
        i->skewed.next = group->skewed.next;
        group->skewed.next = i;
    } else {
        i->skewed.next = i;
        i->skewed.next_group = t->skew.groups;
        t->skew.groups = i;
    }
}

/* From now on by this skew. */
static void begin(struct instance *i, double weight)
{
    struct skewed *s = &i->skewed;
    double at = s->weight > 0.0 ? progress(i) : 0.0, least = least_progress(i);

    if (!s->counts && least < INFINITY && at < least)
        at = least;
    s->from = at;
    s->issued = 0;
    s->weight = weight;
    s->counts = true;
}

/* The loop of instances without a skew is the faster if none of this is in it. */
__attribute__((noinline, cold)) void skew_settle(struct thread *t, struct instance *i)
{
    double weight = i->parameters.setting.skew, least;
    bool counts = weight > 0.0 && i->in_step && i->closed_loop && !i->resting;

    if (!counts && !i->skewed.next)
        return;
    if (!i->skewed.next)
        join(t, i);
    if (!counts)
        i->skewed.counts = false;
    else if (!i->skewed.counts || i->skewed.weight != weight)
        begin(i, weight);
    volume_settle(i);
    shorten_turn(i);
    least = least_progress(i);
    if (counts && progress(i) > least && !i->flushing.due) {
        i->turn = 0; /* where it is in a list */
        if (i->waiting == NOT_WAITING)
            i->waiting = WAITING_FOR_OTHERS;
    }
    let_go(t, i, least);
}

__attribute__((noinline, cold)) void skew_count(struct thread *t, struct instance *i, uint32_t ios)
{
    i->skewed.issued += ios;
    shorten_turn(i);
    double least = least_progress(i);

    if (i->waiting == NOT_WAITING && progress(i) > least && !i->flushing.due)
        i->waiting = WAITING_FOR_OTHERS;
    let_go(t, i, least);
}

void skew_start(struct thread *t)
{
    t->skew.groups = NULL;
}
