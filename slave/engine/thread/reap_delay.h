/* Reap delay: for how long a thread was kept from polling the ring while completions may have waited in it.
 *
 * A completion is stamped when it is found, so whatever keeps the thread from polling lengthens service times: work of
 * its own, a submit call, and having no core (preemption). For the I/Os of that submit call, the call is the kernel at
 * work on them, so their own; for all others in flight it is a delay, as if the LUNs of the call were on another
 * machine. In a sleep the kernel waits for completions, and wakes the thread; then the thread may wait for a core, and
 * only the kernel knows for how long (/proc/thread-self/schedstat). Reading that is a system call of half a
 * microsecond, so it is read after every sleep that was longer than REAP_DELAY_WATCH_NS, and after one of the shorter
 * ones in that time, which stands for those until the next.
 *
 * Rule: per completion, and never more than it was in flight, so that it compares with service times. It is the most
 * that it may have waited: when in the meantime it completed, nobody knows. Where the kernel keeps no account of
 * preemption, nothing is known of it and nothing is said.
 */
#ifndef IVYPY_REAP_DELAY_H
#define IVYPY_REAP_DELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "time/clock.h"

struct thread;

#define REAP_DELAY_WATCH_NS NS_PER_MS

/* Less, of this or of lateness, is not recorded, as it would not be noted (master/rollup/generator_checks.py): this
 * time, or this part of the service time. */
#define REAP_DELAY_LEAST_NS UINT64_C(1000)
enum { REAP_DELAY_LEAST_PART = 32 };

struct reap_delay {
    uint64_t last_poll_ns;
    uint64_t delay_ns;         /* by how much that poll came late for what was in flight before, as far as known */
    uint64_t batch_ns;         /* when a batch was submitted since the poll before; 0: none was */
    uint64_t batch_delay_ns;   /* by how much that poll came late for this batch */
    int schedstat;             /* the kernel's account of this thread's run-queue delay; -1: none */
    uint64_t runqueue_ns;      /* as last read */
    uint64_t watch_ns;         /* when it may be read again before a sleep */
    bool watched;              /* it was, before this one */
    uint64_t watched_delay_ns; /* the delay after the last sleep that was watched */
};

/* By the thread itself, as it begins and ends. */
void reap_delay_open(struct thread *t);
void reap_delay_close(struct thread *t);

/* At the start of a step; and as its loop begins. */
void reap_delay_start(struct thread *t);
void reap_delay_enter_loop(struct thread *t, uint64_t now_ns);

/* A sleep is about to begin. */
void reap_delay_sleeps(struct thread *t, uint64_t now_ns);

/* A poll found so many completions. Since the one before, the thread was `asleep`, or submitted a batch at `batch_ns`
 * (0: none). Returns the time since the poll before. */
uint64_t reap_delay_polled(struct thread *t, uint32_t found, uint64_t now_ns, uint64_t batch_ns, bool asleep);

/* Of a completion that this poll found: of an I/O submitted at `submit_ns` which has taken `service_ns`. */
static inline uint64_t reap_delay_of(const struct reap_delay *d, uint64_t submit_ns, uint64_t service_ns)
{
    uint64_t delay_ns = submit_ns == d->batch_ns ? d->batch_delay_ns : d->delay_ns;

    return delay_ns < service_ns ? delay_ns : service_ns;
}

#endif
