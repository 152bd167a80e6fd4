/* Notices a time that went by unseen, or wrong: the machine was suspended, a virtual machine was restored, the cycle
 * counter was reset. The lease counts time on the thread's clock, which such an event makes worthless: all I/O stops at
 * once.
 *
 * Rule: looks every 10 ms, not per I/O. CLOCK_BOOTTIME goes on while the machine is suspended, CLOCK_MONOTONIC does
 * not. A clock that goes backwards would never reach the next look, so the loop compares each reading with the one
 * before.
 */
#ifndef IVYPY_CLOCK_GUARD_H
#define IVYPY_CLOCK_GUARD_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

struct clock_guard {
    uint64_t check_ns;  /* the next look */
    uint64_t asleep_ns; /* by how much CLOCK_BOOTTIME was ahead of CLOCK_MONOTONIC at the start, at most */
};

/* What is wrong with a thread's clock. */
struct clock_fault {
    uint64_t asleep_ns; /* the machine was suspended for so long, */
    uint64_t apart_ns;  /* or the clock is off the kernel's by so much */
};

/* At the start of a step. */
void clock_guard_start(struct thread *t);

/* Whether it is time to look. */
bool clock_guard_is_due(struct thread *t, uint64_t now_ns);

/* Looks: whether the thread's clock is worthless. */
bool clock_guard_finds(const struct thread *t, struct clock_fault *fault);

/* The thread, which goes by the kernel's clock by then, dies of it. */
void clock_guard_die(struct thread *t, struct clock_fault fault);

#endif
