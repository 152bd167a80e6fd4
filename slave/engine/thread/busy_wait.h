/* Sleep or busy-wait? And if to sleep, until when. A pure function of what is known: no clock is read here.
 *
 * A sleep ends late (wakeups.h), and what falls due meanwhile leaves late: the generator's own fault. So a thread
 * sleeps until the p99 of that lateness before an I/O is due, and busy-waits the rest; for I/Os closer together than
 * that it does not sleep at all. The same while a fast device completes an I/O: a sleep would double its service time.
 *
 *     now                    alarm      wakes   due
 *      |------- asleep --------|~~~late~~~|wait|        sleep ends late, but in time
 *                              |---- p99 ------|
 *
 * Busy-waiting has a budget, so that it takes from nobody: a sixteenth of the time, and up to half of it where sleeps
 * are so late that it shows (more than 2 % of the mean service time) and nobody else wants the core. What a sleep would
 * have taken of the core is not charged. Up to a millisecond of budget is saved for bursts.
 * Rule: no sleep is set to end after what is due, and the budget is never exceeded.
 */
#ifndef IVYPY_BUSY_WAIT_H
#define IVYPY_BUSY_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "wakeups.h"

enum spin {
    SPIN_AUTO, /* busy-waits within the budget */
    SPIN_OFF,  /* sleeps whenever a wait is worth the call */
    SPIN_ON,   /* never sleeps while something will fall due or is in flight */
};

struct busy_wait {
    enum spin spin;
    struct wakeups wakeups;
    uint64_t awake_until_ns; /* no sleep before this */
    uint64_t free_ns;        /* what is left of the time that a sleep would have taken of the core as well */
    uint64_t credit_ns;      /* what is left of the budget, */
    uint64_t credited_ns;    /* as of then */
    bool wanted;             /* by others: the core */
};

/* What a thread that has nothing to do is waiting for. */
struct outlook {
    uint64_t now_ns;
    uint64_t active_ns;  /* since when it has nothing to do */
    uint64_t exact_ns;   /* when something has to happen, on time: an I/O is due, a subinterval ends */
    uint64_t until_ns;   /* at the latest then it has to be awake; not after exact_ns */
    uint64_t service_ns; /* the recent service time; 0: not known */
    bool due;            /* something will fall due, */
    bool in_flight;      /* or complete */
};

/* At the start of a step. */
void busy_wait_start(struct busy_wait *b);

/* When a sleep is to end that begins now; not later than `now_ns`: it busy-waits, and is asked again. */
uint64_t busy_wait_alarm(struct busy_wait *b, const struct outlook *o);

/* A sleep that was to end at `alarm_ns`, for the sake of `until_ns`, was ended by its timer. */
void busy_wait_rang(struct busy_wait *b, uint64_t alarm_ns, uint64_t until_ns, uint64_t now_ns);

/* It busy-waited for so long. */
void busy_wait_spend(struct busy_wait *b, uint64_t ns);

#endif
