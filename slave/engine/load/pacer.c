#include "pacer.h"

void pacer_init(struct pacer *p, struct segment *ring, bool exponential)
{
    *p = (struct pacer){.ring = ring, .exponential = exponential};
}

static void forget(struct pacer *p)
{
    p->backlog = 0;
    p->first = p->used = 0;
    p->open = false;
}

void pacer_start(struct pacer *p, uint64_t random, double iops, uint64_t at_ns)
{
    forget(p);
    p->dropped = 0;
    p->head = (struct schedule){.random = random};
    p->ticking = iops > 0.0;
    if (p->ticking)
        schedule_start(&p->head, p->exponential, iops, at_ns);
}

void pacer_retime(struct pacer *p, double iops, uint64_t at_ns)
{
    bool ticked = p->ticking;

    p->open = false;
    p->ticking = iops > 0.0;
    if (!p->ticking)
        return;
    if (ticked)
        schedule_retime(&p->head, iops, at_ns);
    else
        schedule_start(&p->head, p->exponential, iops, at_ns);
}

uint64_t pacer_stop(struct pacer *p)
{
    uint64_t dropped = p->backlog;

    p->ticking = false;
    forget(p);
    return dropped;
}

/* The segment that goes on with the head's schedule, begun at `from` if there is none. */
static struct segment *open_segment(struct pacer *p, const struct schedule *from)
{
    if (!p->open) {
        if (p->used == PACER_SEGMENTS) {
            p->dropped += p->ring[p->first].count;
            p->backlog -= p->ring[p->first].count;
            p->first = (p->first + 1) % PACER_SEGMENTS;
            p->used--;
        }
        p->ring[(p->first + p->used) % PACER_SEGMENTS] = (struct segment){.cursor = *from};
        p->used++;
        p->open = true;
    }
    return &p->ring[(p->first + p->used - 1) % PACER_SEGMENTS];
}

uint64_t pacer_fall_due(struct pacer *p, uint64_t until_ns, uint64_t most)
{
    if (!p->ticking || p->head.due_ns >= until_ns)
        return 0;
    struct segment *segment = open_segment(p, &p->head);
    uint64_t fallen = schedule_pass(&p->head, p->exponential, until_ns, most);

    segment->count += fallen;
    p->backlog += fallen;
    return fallen;
}

uint64_t pacer_take(struct pacer *p)
{
    struct segment *segment = &p->ring[p->first];
    uint64_t due_ns = segment->cursor.due_ns;

    p->backlog--;
    if (--segment->count > 0) {
        schedule_advance(&segment->cursor, p->exponential);
    } else {
        p->first = (p->first + 1) % PACER_SEGMENTS;
        if (--p->used == 0)
            p->open = false;
    }
    return due_ns;
}
