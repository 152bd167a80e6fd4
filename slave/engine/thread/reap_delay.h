/* Reap delay: for how long a thread was kept from polling the ring while completions waited in it.
 *
 * A completion is stamped when it is found, so whatever keeps the thread from polling lengthens service times. Two things
 * do: other work between two polls, and having no core (preemption). Time in the submit call is neither: it is the kernel
 * at work on I/Os. In a sleep the kernel waits for completions, and wakes the thread; then the thread may wait for a core,
 * and only the kernel knows for how long (/proc/thread-self/schedstat). Reading that is a system call of half a
 * microsecond, so it is read after every sleep that was longer than REAP_DELAY_WATCH_NS, and after one of the shorter ones
 * in that time, which stands for those since the one before, but for no more than they lasted.
 * Rule: counted by completion, and never more than it was in flight, so that it compares with service times. Where the
 * kernel keeps no such account, nothing is known and nothing is said.
 */
#ifndef IVYPY_REAP_DELAY_H
#define IVYPY_REAP_DELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "time/clock.h"

struct thread;

#define REAP_DELAY_WATCH_NS NS_PER_MS

struct reap_delay {
    uint64_t last_poll_ns;
    uint64_t delay_ns;          /* by how much that poll came late, as far as it is known */
    int schedstat;              /* the kernel's account of this thread's run-queue delay; -1: none */
    uint64_t runqueue_ns;       /* as last read */
    uint64_t watch_ns;          /* when it may be read again before a sleep */
    bool watched;               /* it was, before this one */
    uint64_t unwatched;         /* completions found by short sleeps that were not watched, */
    uint64_t unwatched_gaps_ns; /* and how long these lasted, for each completion */
};

/* By the thread itself, as it begins and ends. */
void reap_delay_open(struct thread *t);
void reap_delay_close(struct thread *t);

/* At the start of a step; and as its loop begins. */
void reap_delay_start(struct thread *t);
void reap_delay_enter_loop(struct thread *t, uint64_t now_ns);

/* A sleep is about to begin. */
void reap_delay_sleeps(struct thread *t, uint64_t now_ns);

/* A poll found so many completions. Since the one before, the thread was `asleep`, or spent `in_submit_ns` in the submit
 * call. Returns the time since the poll before. */
uint64_t reap_delay_polled(struct thread *t, uint32_t found, uint64_t now_ns, uint64_t in_submit_ns, bool asleep);

#endif
