/* What is in flight: linked by age, counted, and how old the oldest is for all who ask. */
#ifndef IVYPY_IN_FLIGHT_H
#define IVYPY_IN_FLIGHT_H

#include <stdatomic.h>
#include <stdint.h>

#include "luns/instance.h"
#include "stats/buffer.h"

struct in_flight {
    _Atomic uint32_t count; /* this step's */
};

static inline uint32_t in_flight_count(const struct in_flight *f)
{
    return atomic_load_explicit(&f->count, memory_order_relaxed);
}

static inline void in_flight_reset(struct in_flight *f)
{
    atomic_store_explicit(&f->count, 0, memory_order_relaxed);
}

/* The thread is the only writer of its counter; others only read it. */
static inline void in_flight_add(struct in_flight *f, uint32_t n)
{
    atomic_store_explicit(&f->count, in_flight_count(f) + n, memory_order_relaxed);
}

/* Of the oldest in flight, for other threads, which see it even while the thread hangs in a call. */
static inline void publish_age(struct instance *i)
{
    const struct tag *oldest = i->flying.first;

    atomic_store_explicit(&i->oldest_submit_ns, oldest ? oldest->submit_ns : 0, memory_order_relaxed);
}

/* And for the collector, to whom the counts say where none is in flight. */
static inline void publish_oldest(struct row *row, struct instance *i)
{
    const struct tag *oldest = i->flying.first;

    publish_age(i);
    if (!oldest)
        return;
    row->oldest_submit_ns = oldest->submit_ns;
    row->oldest_due_ns = oldest->due_ns ? oldest->due_ns : oldest->submit_ns;
}

static inline void fly(struct instance *i, struct tag *tag)
{
    tag->next = NULL;
    tag->previous = i->flying.last;
    if (i->flying.last)
        i->flying.last->next = tag;
    else
        i->flying.first = tag;
    i->flying.last = tag;
}

static inline void land(struct instance *i, struct tag *tag)
{
    if (tag->previous)
        tag->previous->next = tag->next;
    else
        i->flying.first = tag->next;
    if (tag->next)
        tag->next->previous = tag->previous;
    else
        i->flying.last = tag->previous;
}

#endif
