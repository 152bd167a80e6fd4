/* The paced I/Os of one instance: the head counts what falls due, the tail yields the due time of the next I/O to
 * submit.
 *
 * Rule: no I/O of the backlog is forgotten, and a backlog of any size takes constant memory: the tail is a copy of the
 * head's cursor from when the backlog was empty. So the whole backlog has one rate: a change of the rate discards it,
 * and the caller counts it. Those of it that have waited too long are discarded likewise: by moving the tail.
 */
#ifndef IVYPY_PACER_H
#define IVYPY_PACER_H

#include <stdbool.h>
#include <stdint.h>

#include "bursts.h"
#include "schedule.h"

struct pacer {
    struct schedule head, tail; /* the tail holds where there is a backlog; both in the time of bursts */
    struct bursts bursts;
    bool exponential;
    bool ticking;           /* false: nothing falls due (max, or paused) */
    uint64_t backlog;       /* due, not submitted */
    uint64_t drop_after_ns; /* how long they may wait; 0: for as long as it takes */
};

#define PACER_IDLE UINT64_MAX

void pacer_init(struct pacer *p, bool exponential, uint64_t drop_after_ns, uint64_t on_ns, uint64_t off_ns);

/* A fresh start at `at_ns`, without a backlog; the first burst begins then. `iops` <= 0: nothing falls due. */
void pacer_start(struct pacer *p, uint64_t random, double iops, uint64_t at_ns);

/* A new rate from `at_ns` on, up to which all that is due has been counted. Discards the backlog: returns how many. */
uint64_t pacer_retime(struct pacer *p, double iops, uint64_t at_ns);

/* Discards the backlog, and lets nothing more fall due. Returns how many I/Os were discarded. */
uint64_t pacer_stop(struct pacer *p);

/* Of what last fell due, the last `excess` I/Os did not, and nothing more does; the backlog stays. */
void pacer_end(struct pacer *p, uint64_t excess);

/* Counts what falls due before `until_ns`; `most` bounds the work with exponential gaps. */
uint64_t pacer_fall_due(struct pacer *p, uint64_t until_ns, uint64_t most);

/* Discards what waits for longer than drop_after_ns, which is set: returns how many. */
uint64_t pacer_expire(struct pacer *p, uint64_t now_ns);

/* Takes one I/O of the backlog, which must not be empty: its due time. */
uint64_t pacer_take(struct pacer *p);

/* Whether pacer_expire would discard any. */
static inline bool pacer_has_expired(const struct pacer *p, uint64_t now_ns)
{
    return p->drop_after_ns && p->backlog && bursts_time_of(&p->bursts, p->tail.due_ns) + p->drop_after_ns < now_ns;
}

/* When the next I/O falls due. */
static inline uint64_t pacer_next_due(const struct pacer *p)
{
    return p->ticking ? bursts_time_of(&p->bursts, p->head.due_ns) : PACER_IDLE;
}

/* When the oldest I/O of the backlog fell due; 0 if it is empty. */
static inline uint64_t pacer_backlog_since(const struct pacer *p)
{
    return p->backlog ? bursts_time_of(&p->bursts, p->tail.due_ns) : 0;
}

#endif
