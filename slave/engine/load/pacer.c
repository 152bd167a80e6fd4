#include "pacer.h"

void pacer_init(struct pacer *p, bool exponential, uint64_t drop_after_ns, uint64_t on_ns, uint64_t off_ns)
{
    *p = (struct pacer){
        .exponential = exponential, .drop_after_ns = drop_after_ns, .bursts = {.on_ns = on_ns, .off_ns = off_ns}};
}

/* Of a rate, that of the bursts. */
static double in_bursts(const struct pacer *p, double iops)
{
    return iops * bursts_height(&p->bursts);
}

static uint64_t discard(struct pacer *p)
{
    uint64_t discarded = p->backlog;

    p->backlog = 0;
    return discarded;
}

void pacer_start(struct pacer *p, uint64_t random, double iops, uint64_t at_ns)
{
    p->backlog = 0;
    p->head = (struct schedule){.random = random};
    p->bursts.begin_ns = at_ns;
    p->ticking = iops > 0.0;
    if (p->ticking)
        schedule_start(&p->head, p->exponential, in_bursts(p, iops), at_ns);
}

uint64_t pacer_retime(struct pacer *p, double iops, uint64_t at_ns)
{
    bool ticked = p->ticking;
    uint64_t on_ns = bursts_on_at(&p->bursts, at_ns);

    p->ticking = iops > 0.0;
    if (p->ticking && ticked)
        schedule_retime(&p->head, in_bursts(p, iops), on_ns);
    else if (p->ticking)
        schedule_start(&p->head, p->exponential, in_bursts(p, iops), on_ns);
    return discard(p);
}

uint64_t pacer_stop(struct pacer *p)
{
    p->ticking = false;
    return discard(p);
}

void pacer_end(struct pacer *p, uint64_t excess)
{
    p->ticking = false;
    p->backlog -= excess;
}

uint64_t pacer_fall_due(struct pacer *p, uint64_t until_ns, uint64_t most)
{
    if (!p->ticking || pacer_next_due(p) >= until_ns)
        return 0;
    if (!p->backlog)
        p->tail = p->head;
    uint64_t fallen = schedule_pass(&p->head, p->exponential, bursts_on_at(&p->bursts, until_ns), most);

    p->backlog += fallen;
    return fallen;
}

uint64_t pacer_expire(struct pacer *p, uint64_t now_ns)
{
    uint64_t before_ns, expired;

    if (!pacer_has_expired(p, now_ns))
        return 0;
    before_ns = bursts_on_at(&p->bursts, now_ns - p->drop_after_ns);
    if (before_ns > p->head.due_ns) /* from there on nothing has been counted as due */
        before_ns = p->head.due_ns;
    expired = schedule_pass(&p->tail, p->exponential, before_ns, p->backlog);
    p->backlog -= expired;
    return expired;
}

uint64_t pacer_take(struct pacer *p)
{
    uint64_t due_ns = bursts_time_of(&p->bursts, p->tail.due_ns);

    if (--p->backlog)
        schedule_advance(&p->tail, p->exponential);
    return due_ns;
}
