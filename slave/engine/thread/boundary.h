/* Boundaries, as one thread passes them: what has fallen due is counted, the running buffer goes to the collector, and
 * the thread goes on in the other one; a cooldown begins; the step ends.
 *
 * Rule: what happens at a boundary the step decides, for all threads alike; nothing here waits for another thread.
 */
#ifndef IVYPY_BOUNDARY_H
#define IVYPY_BOUNDARY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "stats/buffer.h"
#include "time/clock_map.h"

struct thread;

/* The end of a result, as a thread passed it. */
struct passed {
    uint32_t subinterval; /* the last one that it covers */
    bool last;
    uint64_t end_ns;
};

struct boundary {
    struct clock_map clock; /* the thread's own; slope 0: the kernel's */
    uint64_t horizon_ns;    /* the next boundary, or the lease */
    uint64_t notice_ns;     /* that, or the next look at the clocks */
    struct buffer *running;
    struct row *rows; /* the running buffer's, as are the next two */
    struct moments *moments;
    uint64_t *buckets;
    bool cooling; /* nothing falls due any more */
    uint32_t subinterval;
    uint64_t began_ns; /* of the subinterval */
    uint64_t cpu_seen_ns;
    struct clock_map anchor;   /* what its clock follows */
    _Atomic uint32_t progress; /* results that this thread has passed */
    struct passed passed[2];   /* the last two of them, by label: no more wait to be collected */
};

/* By the commanding thread, before a step: nothing was passed yet. */
void boundary_reset(struct thread *t);

/* By the commanding thread, as the step starts: what the thread's clock follows. */
void boundary_set_clock(struct thread *t, struct clock_map anchor);

/* At the start of the step: its first subinterval, in the first buffer. */
void boundary_start(struct thread *t);

/* Its loop begins: CPU time counts from here. */
void boundary_enter_loop(struct thread *t);

/* After the step: between steps nobody corrects the clock, so the kernel's is read. */
void boundary_leave_clock(struct thread *t);

/* The thread's clock says less than `before_ns`, what it said before: looks what is wrong with it. The time by then. */
uint64_t boundary_clock_turned_back(struct thread *t, uint64_t before_ns);

/* Passes all boundaries, and the end of the lease, up to `now_ns`. False: the step is over. */
bool boundary_go_on(struct thread *t, uint64_t now_ns);

#endif
