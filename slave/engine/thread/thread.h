/* A workload thread: one pthread, pinned, that drives all instances dealt to it through one backend context. Its state
 * is here; what it does is in the files that include this.
 *
 * Rule: while a step runs, everything here but the atomics is the thread's own; while it waits for a command, the
 * commanding thread's. The two sides meet in atomics (mailbox, buffers, progress) and, between steps, in the mutex.
 */
#ifndef IVYPY_THREAD_H
#define IVYPY_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"
#include "heap.h"
#include "luns/instance.h"
#include "stats/buffer.h"
#include "step.h"
#include "time/clock.h"
#include "time/tsc.h"

enum {
    THREAD_BATCH = 32,      /* I/Os in one submit call: one stamp is true for all of them */
    THREAD_REAP = 128,   /* completions of one poll of the ring */
    THREAD_INSTANCES = 16384,
};

/* No wait is longer: edit, halt and lease act within this. */
#define THREAD_LONGEST_WAIT_NS (10 * NS_PER_MS)

enum thread_state { THREAD_WAITING, THREAD_ERRAND, THREAD_STARTING, THREAD_RUNNING, THREAD_STOPPING, THREAD_DIED, THREAD_EXITED };

struct instance_list {
    struct instance *first, *last;
};

/* A completed I/O whose times are still to be recorded. */
struct done {
    uint64_t service_ns, response_ns; /* response: UNCHANGED if it had no due time */
    struct tag *tag;
    uint32_t bytes;
    uint8_t kind;
    bool wrote;
};

struct post {
    uint32_t slot;
    struct setting setting;
};

/* Settings for the thread, taken between two I/Os. One slot: the commanding thread posts the next edit when all
 * threads have taken the last. */
struct mailbox {
    _Atomic uint32_t posted, taken; /* generations */
    _Atomic uint64_t taken_ns;
    uint32_t edit, count, room;
    struct post *posts;
};

/* How a step ended for this thread. */
struct thread_end {
    uint64_t caught, failed, uncaught, oldest_uncaught_ns, longest_caught_ns, dropped;
};

/* The end of a result, as a thread passed it. */
struct passed {
    uint32_t subinterval; /* the last one that it covers */
    bool last;
    uint64_t end_ns;
};

struct thread {
    /* The hot loop's. */
    const struct backend *backend;
    uint32_t options; /* BACKEND_* */
    void *context;
    struct step *step;
    struct clock_map clock;   /* its own; slope 0: the kernel's */
    uint64_t horizon_ns; /* the next boundary, or the lease */
    uint32_t attention;  /* the step's, as last seen */
    uint32_t batch_size, done_count;
    struct buffer *running;
    struct row *rows;        /* the running buffer's, as are the next two */
    struct moments *moments;
    uint64_t *buckets;
    struct instance_list due, flat_out; /* that have something to submit, and may */
    struct share *again;                /* shares that hold I/Os to submit again */
    struct heap heap;                   /* when each instance falls due next, or ends its rest */
    _Atomic uint32_t in_flight;         /* this step's */
    uint64_t last_poll_ns;
    uint64_t reap_delay_ns; /* by how much that poll came late, as far as it is known */
    int schedstat;          /* the account of its time without a core; -1: none */
    uint64_t runqueue_ns;   /* as last read */
    uint64_t watch_ns;     /* when it may be read again before a sleep */
    bool watched;          /* it was, before this one */
    uint64_t unwatched;    /* completions found by short sleeps that were not watched, */
    uint64_t unwatched_gaps_ns; /* and how long these lasted, for each completion */
    uint64_t alarm_ns, alarm_for_ns; /* when the last sleep was to end, and for what */
    uint64_t awake_until_ns;         /* no sleep before this */
    uint64_t paid_until_ns;          /* the time spent awake, so many times over as it is dear, reaches so far */
    uint64_t timer_late_ns;  /* by how much sleeps end late */
    bool spin;    /* does not sleep while something will fall due */
    bool cooling; /* nothing falls due any more */
    bool dead;

    uint32_t subinterval;
    uint64_t began_ns; /* of the subinterval */
    uint64_t cpu_seen_ns;
    struct clock_map anchor; /* what its clock follows */
    struct buffer buffers[2];
    struct tag *batch[THREAD_BATCH];
    uint64_t late_from[THREAD_BATCH]; /* from when on a wait is the generator's own fault; 0: not paced */
    int refused[THREAD_BATCH];        /* 0, or -errno of the submit call */
    bool any_refused;
    struct completion completions[THREAD_REAP];
    struct done done[THREAD_REAP];

    /* Settled between steps. */
    struct instance *instances; /* THREAD_INSTANCES reserved; `slots` were ever used */
    uint32_t slots, holes; /* holes: slots without an instance */
    struct instance **step_instances;
    uint32_t step_count;
    struct share *shares;
    uint32_t *classes; /* merge classes that this thread has a part of, in the order of its series */
    uint32_t classes_count;
    uint32_t depth;    /* of the context */
    uint64_t step_number;
    int (*errand)(struct thread *t); /* what the commanding thread has it do between steps, */
    uint32_t errand_argument;        /* with this, */
    int errand_result;               /* and what came of it */
    uint64_t errand_limit_ns;        /* how long it may take */

    /* Between the threads. */
    uint32_t number;
    int cpu, eventfd;
    pthread_t pthread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    _Atomic uint32_t state;    /* enum thread_state */
    _Atomic uint32_t progress; /* results that this thread has passed */
    struct passed passed[2];   /* the last two of them, by label: no more wait to be collected */
    _Atomic uint64_t exit_by_ns; /* 0: go on; else exit, in-flight I/Os being caught until then */
    struct mailbox mailbox;
    struct thread_end end;
    char words[160]; /* dying words */
    bool words_reported, joined;
};

/* Wakes whoever collects results and answers. */
void thread_signal(struct thread *t);

/* It cannot go on: ends the step, and the thread after it. */
__attribute__((format(printf, 2, 3))) void thread_die(struct thread *t, const char *format, ...);

/* The thread's time, on CLOCK_MONOTONIC's scale. */
static inline uint64_t thread_now(const struct thread *t)
{
    return t->clock.slope ? clock_map_at(&t->clock, tsc_read()) : clock_now();
}

static inline struct row *row_of(struct thread *t, const struct instance *i)
{
    return &t->rows[i->slot];
}

static inline uint64_t earlier(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

static inline void record(struct thread *t, const struct instance *i, uint32_t series, uint64_t ns, uint32_t bytes)
{
    uint32_t n = i->series + series;

    series_record(&t->moments[n], t->buckets + (size_t)n * HISTOGRAM_BUCKETS, ns, bytes);
}

#endif
