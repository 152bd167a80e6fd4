/* Waiting: nothing is to be done now. Sleeps until something may be, or busy-waits (busy_wait.h).
 */
#ifndef IVYPY_IDLE_H
#define IVYPY_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "busy_wait.h"
#include "core_use.h"
#include "time/clock.h"

struct thread;

/* No wait is longer: edit, halt and lease act within this. */
#define THREAD_LONGEST_WAIT_NS (10 * NS_PER_MS)

struct idle {
    struct busy_wait busy_wait;
    struct core_use core_use;
    uint64_t alarm_ns, alarm_for_ns; /* when the last sleep was to end, and for what */
    uint64_t service_ns;             /* the recent service time, a running mean; 0: not known */
    uint64_t active_ns;              /* since when the thread has nothing to do, as last seen */
    uint64_t weigh_ns;               /* when the CPU time of a sleep is to be read again */
    uint64_t cpu_ns;                 /* as read before this one; 0: it was not */
};

/* By the commanding thread, between steps. */
void idle_set_spin(struct thread *t, enum spin spin);

/* By the thread itself, as it begins. */
void idle_open(struct thread *t);

/* At the start of a step. */
void idle_start(struct thread *t);

/* How the time before a poll of the ring was spent. */
enum idle_kind { IDLE_NONE, IDLE_BUSY_WAIT, IDLE_ASLEEP };

/* Nothing is to be done now, nor was since `active_ns`. Sleeps until something may be, or stays awake, and polls the
 * ring: what the backend says. */
int idle_until_needed(struct thread *t, uint64_t now_ns, uint64_t active_ns, enum idle_kind *how);

/* The sleep ended by its timer; or so much time went into busy-waiting. */
void idle_rang(struct thread *t, uint64_t now_ns);
void idle_spent(struct thread *t, uint64_t ns);

#endif
