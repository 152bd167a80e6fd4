/* Each thread's share of the kernel's queues, settled before a step.
 *
 * Rule: of a queue that cannot hold what all instances may want, each thread gets a part in proportion to what its own
 * want; so no thread needs to know of the others. Threads whose cores submit to different hardware queues of a device
 * share nothing. One that may submit to any of them (not pinned; sqpoll) counts in each, and gets what the busiest
 * leaves it.
 */
#include "commands.h"

#include <errno.h>
#include <stdlib.h>

#include "thread/ready_queue.h"

/* What all threads may want, in requests: of each device's queue, of each set of its hardware queues. */
struct demand {
    uint64_t *wanted; /* all of one queue's together: first that of threads that may submit to any */
    uint32_t *first;  /* by queue: where its own begin; one more at the end */
    uint32_t *places; /* by queue: scratch of share_out */
};

/* The most: also after edits. */
static uint64_t wanted_by(const struct instance *i)
{
    return (uint64_t)i->ceiling.tags * queue_requests_per_io(&i->lun->queue, i->ceiling.blocksize);
}

/* Which hardware queues a thread submits to; 0: any. With sqpoll, a thread of the kernel submits, on a core of its
 * own choice. */
static uint32_t set_of(const struct thread *t, const struct lun *lun)
{
    return t->options & BACKEND_SQPOLL ? 0 : hw_queues_set(&lun->queue.hw_queues, t->cpu);
}

/* What all that may submit to the same hardware queue want of it. */
static uint64_t wanted_there(const struct demand *d, uint32_t queue, uint32_t set)
{
    uint64_t most = 0;

    if (set)
        return d->wanted[d->first[queue]] + d->wanted[d->first[queue] + set];
    for (uint32_t n = d->first[queue] + 1; n < d->first[queue + 1]; n++)
        if (d->wanted[n] > most)
            most = d->wanted[n];
    return d->wanted[d->first[queue]] + most;
}

/* The shares of one thread. */
static int share_out(struct thread *t, const struct demand *d)
{
    struct share *shares = realloc(t->shares, (t->step_count + 1u) * sizeof *shares);
    uint32_t count = 0;

    if (!shares)
        return -ENOMEM;
    t->shares = shares;
    for (uint32_t n = 0; n < t->step_count; n++)
        d->places[t->step_instances[n]->lun->queue_id] = UINT32_MAX;
    for (uint32_t n = 0; n < t->step_count; n++) {
        struct instance *i = t->step_instances[n];
        uint32_t *place = &d->places[i->lun->queue_id];
        if (*place == UINT32_MAX) {
            *place = count++;
            shares[*place] = (struct share){0};
        }
        i->share = &shares[*place];
        i->share->wanted += wanted_by(i);
    }
    for (uint32_t n = 0; n < t->step_count; n++) {
        const struct lun *lun = t->step_instances[n]->lun;
        struct share *s = t->step_instances[n]->share;
        uint64_t cap = s->wanted, all = wanted_there(d, lun->queue_id, set_of(t, lun));
        if (lun->queue.nr_requests && all > lun->queue.nr_requests)
            cap = lun->queue.nr_requests * s->wanted / all;
        s->cap = s->full_cap = cap ? (uint32_t)cap : 1;
        s->only_full = lun->queue.hw_queues.sets > 0; /* one that makes requests of its own, which only lack tags */
    }
    return 0;
}

/* Room for all figures. Each LUN was asked by itself which hardware queues lie below it: of those above one queue, the
 * one that knows of most sets counts. */
static int make_room(struct demand *d, const struct engine *e)
{
    uint32_t figures = 0;

    d->first = calloc(e->lun_count + 1u, sizeof *d->first);
    d->places = calloc(e->lun_count + 1u, sizeof *d->places);
    if (!d->first || !d->places)
        return -ENOMEM;
    for (uint32_t n = 0; n < e->lun_count; n++) {
        const struct lun *lun = e->luns[n];
        if (lun && lun->queue.hw_queues.sets + 1 > d->first[lun->queue_id])
            d->first[lun->queue_id] = lun->queue.hw_queues.sets + 1;
    }
    for (uint32_t n = 0; n <= e->lun_count; n++) {
        uint32_t own = d->first[n];
        d->first[n] = figures;
        figures += own;
    }
    d->wanted = calloc(figures + 1u, sizeof *d->wanted);
    return d->wanted ? 0 : -ENOMEM;
}

static void add_up(struct demand *d, const struct thread *t)
{
    for (uint32_t n = 0; n < t->step_count; n++) {
        const struct instance *i = t->step_instances[n];
        d->wanted[d->first[i->lun->queue_id] + set_of(t, i->lun)] += wanted_by(i);
    }
}

int queue_shares_settle(struct engine *e)
{
    struct demand d = {0};
    int result = make_room(&d, e);

    for (uint32_t n = 0; n < e->thread_count && result == 0; n++)
        add_up(&d, &e->threads[n]);
    for (uint32_t n = 0; n < e->thread_count && result == 0; n++)
        result = share_out(&e->threads[n], &d);
    free(d.wanted);
    free(d.first);
    free(d.places);
    return result;
}
