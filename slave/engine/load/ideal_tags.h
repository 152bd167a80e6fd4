/* When an instance would have had a tag free for its next I/O, had the generator never been late, while I/Os that wait
 * too long are discarded (drop_after).
 *
 * A tag is credited with the lateness of its I/Os: those after it waited for as much. Without discards that is exact:
 * the same I/Os would have gone, each as much earlier. A discarded I/O goes nowhere: had the generator been in time, it
 * would have had a tag, for as long as the storage takes for one, or would have been discarded all the same; either
 * uses up credit.
 *
 * Rule: the tags work through whatever left the backlog, submitted or discarded, at the storage's pace and never ahead
 * of the clock. So the credit lasts where the storage could do what is due, and ends where it could not.
 */
#ifndef IVYPY_IDEAL_TAGS_H
#define IVYPY_IDEAL_TAGS_H

#include <stdint.h>

enum { IDEAL_TAGS_MEAN = 16 };

struct ideal_tags {
    uint64_t free_ns;    /* when one would be free */
    uint64_t service_ns; /* mean of about the last IDEAL_TAGS_MEAN I/Os */
    uint32_t at_once;    /* I/Os in flight where it cannot submit more: its tags, or less in a full queue */
};

static inline void ideal_tags_start(struct ideal_tags *t, uint32_t tags)
{
    *t = (struct ideal_tags){.at_once = tags};
}

/* These left the backlog; the first of them was due at `due_ns`. */
static inline void ideal_tags_take(struct ideal_tags *t, uint64_t ios, uint64_t due_ns, uint64_t now_ns)
{
    uint64_t each_ns = t->service_ns / t->at_once;

    if (t->free_ns < due_ns)
        t->free_ns = due_ns;
    if (t->free_ns >= now_ns || (each_ns && ios > (now_ns - t->free_ns) / each_ns))
        t->free_ns = now_ns;
    else
        t->free_ns += ios * each_ns;
}

/* The storage took so long for one. */
static inline void ideal_tags_serve(struct ideal_tags *t, uint64_t service_ns)
{
    if (t->service_ns == 0)
        t->service_ns = service_ns;
    else
        t->service_ns += (service_ns / IDEAL_TAGS_MEAN) - (t->service_ns / IDEAL_TAGS_MEAN);
}

#endif
