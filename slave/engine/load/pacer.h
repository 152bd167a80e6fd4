/* The paced I/Os of one instance: the head counts what falls due, the tail yields the due time of the next I/O to submit.
 *
 * Rule: no I/O of the backlog is forgotten, and a backlog of any size takes constant memory. What was overdue when the
 * rate changed keeps its old due times: a small ring of segments, a cursor and a count each. Where the ring is
 * full, the oldest segment is given up and counted.
 */
#ifndef IVYPY_PACER_H
#define IVYPY_PACER_H

#include <stdbool.h>
#include <stdint.h>

#include "schedule.h"

enum { PACER_SEGMENTS = 32 };

struct segment {
    struct schedule cursor; /* the next to submit of this segment */
    uint64_t count;         /* how many are in the backlog */
};

struct pacer {
    struct schedule head;
    bool exponential;
    bool ticking; /* false: nothing falls due (max, or paused) */
    bool open;    /* the last segment goes on with the head's schedule */
    uint32_t first, used;
    uint64_t backlog; /* due, not submitted */
    uint64_t dropped; /* given up since the caller last took the number */
    struct segment *ring;
};

#define PACER_IDLE UINT64_MAX

/* `ring`: PACER_SEGMENTS segments of the caller's. */
void pacer_init(struct pacer *p, struct segment *ring, bool exponential);

/* A fresh start at `at_ns`, without a backlog. `iops` <= 0: nothing falls due. */
void pacer_start(struct pacer *p, uint64_t random, double iops, uint64_t at_ns);

/* A new rate from `at_ns` on, up to which all that is due has been counted. */
void pacer_retime(struct pacer *p, double iops, uint64_t at_ns);

/* Drops the backlog, and lets nothing more fall due. Returns how many I/Os were dropped. */
uint64_t pacer_stop(struct pacer *p);

/* Counts what falls due before `until_ns`; `most` bounds the work with exponential gaps. */
uint64_t pacer_fall_due(struct pacer *p, uint64_t until_ns, uint64_t most);

/* Takes one I/O of the backlog, which must not be empty: its due time. */
uint64_t pacer_take(struct pacer *p);

/* When the next I/O falls due. */
static inline uint64_t pacer_next_due(const struct pacer *p)
{
    return p->ticking ? p->head.due_ns : PACER_IDLE;
}

/* When the oldest I/O of the backlog fell due; 0 if it is empty. */
static inline uint64_t pacer_backlog_since(const struct pacer *p)
{
    return p->backlog ? p->ring[p->first].cursor.due_ns : 0;
}

#endif
