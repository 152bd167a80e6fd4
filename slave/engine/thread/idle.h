/* Waiting exactly: sleeping no longer than until the next thing can happen, and being awake by then; or, with spin, not
 * sleeping at all while something will fall due. */
#ifndef IVYPY_IDLE_H
#define IVYPY_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "time/clock.h"

struct thread;

/* No wait is longer: edit, halt and lease act within this. */
#define THREAD_LONGEST_WAIT_NS (10 * NS_PER_MS)

struct idle {
    uint64_t alarm_ns, alarm_for_ns; /* when the last sleep was to end, and for what */
    uint64_t awake_until_ns;         /* no sleep before this */
    uint64_t paid_until_ns; /* the time spent in busy-waiting, so many times over as it is dear, reaches so far */
    uint64_t timer_late_ns; /* by how much sleeps end late */
    bool spin;              /* does not sleep while something will fall due */
};

/* By the commanding thread, between steps. */
void idle_set_spin(struct thread *t, bool spin);

/* At the start of a step. */
void idle_start(struct thread *t);

/* How the time before a poll of the ring was spent. */
enum idle_kind { IDLE_NONE, IDLE_BUSY_WAIT, IDLE_ASLEEP };

/* Nothing is to be done now. Sleeps until something may be, or stays awake, and polls the ring: what the backend says. */
int idle_until_needed(struct thread *t, uint64_t now_ns, enum idle_kind *how);

/* The sleep ended by its timer. */
void idle_rang(struct thread *t, uint64_t now_ns);

#endif
