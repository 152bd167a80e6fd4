/* A workload thread: one pthread, pinned, that drives all instances assigned to it through one backend context.
 *
 * Rule: its state is in parts. Each is a struct in the header of the file that does the work, and only that file writes
 * it (tests/test_layering.py): a line of code shows by its name what it may touch. While a step runs, everything here
 * but the atomics is the thread's own; while it waits for a command, the commanding thread's. The two sides meet in
 * atomics (mailbox, buffers, progress) and, between steps, in the mutex.
 */
#ifndef IVYPY_THREAD_H
#define IVYPY_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"
#include "boundary.h"
#include "clock_guard.h"
#include "drain.h"
#include "due_times.h"
#include "idle.h"
#include "in_flight.h"
#include "loop.h"
#include "luns/instance.h"
#include "mailbox.h"
#include "ready_queue.h"
#include "reap.h"
#include "reap_delay.h"
#include "skew.h"
#include "stats/buffer.h"
#include "step.h"
#include "submit.h"
#include "time/clock.h"
#include "time/tsc.h"
#include "worker.h"

enum { THREAD_INSTANCES = 16384 };

struct thread {
    /* Settled when the engine is opened. */
    uint32_t number;
    int cpu, eventfd;
    struct step *step;

    /* Settled between steps, by commands. */
    const struct backend *backend;
    uint32_t options; /* BACKEND_* */
    void *context;
    uint32_t depth;             /* of the context */
    struct instance *instances; /* THREAD_INSTANCES reserved; `slots` were ever used */
    uint32_t slots, holes;      /* holes: slots without an instance */
    struct instance **step_instances;
    uint32_t step_count;
    struct share *shares;
    uint32_t *classes; /* merge classes that this thread has a part of, in the order of its series */
    uint32_t classes_count;
    uint32_t sections; /* of each LUN, by which I/Os are counted; 0: they are not */
    uint64_t step_number;

    /* The parts, in the order in which the loop needs them. */
    struct loop loop;
    struct boundary boundary;
    struct clock_guard clock_guard;
    struct due_times due_times;
    struct ready_queue ready_queue;
    struct skew skew;
    struct submit submit;
    struct in_flight in_flight;
    struct reap reap;
    struct reap_delay reap_delay;
    struct idle idle;
    struct drain drain;
    struct mailbox mailbox;
    struct worker worker;

    /* Between the threads. */
    struct buffer buffers[2];
    bool dead;       /* it cannot go on; thread_die alone sets it, */
    char words[160]; /* with its dying words */
    bool words_reported;
};

/* Wakes whoever collects results and answers. */
void thread_signal(struct thread *t);

/* It cannot go on: ends the step, and the thread after it. */
__attribute__((format(printf, 2, 3))) void thread_die(struct thread *t, const char *format, ...);

/* The thread's time, on CLOCK_MONOTONIC's scale. */
static inline uint64_t thread_now(const struct thread *t)
{
    return t->boundary.clock.slope ? clock_map_at(&t->boundary.clock, tsc_read()) : clock_now();
}

static inline struct row *row_of(struct thread *t, const struct instance *i)
{
    return &t->boundary.rows[i->slot];
}

static inline uint64_t earlier(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

static inline void record(struct thread *t, const struct instance *i, uint32_t series, uint64_t ns, uint32_t bytes)
{
    uint32_t n = i->series + series;

    series_record(&t->boundary.moments[n], t->boundary.buckets + (size_t)n * HISTOGRAM_BUCKETS, ns, bytes);
}

#endif
