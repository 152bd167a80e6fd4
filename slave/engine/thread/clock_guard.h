/* Notices a time that went by unseen, or wrong: the machine was suspended, a virtual machine was restored, the cycle counter
 * was reset. The lease counts time on the thread's clock, which such an event makes worthless: all I/O stops at once.
 *
 * Rule: looks every 10 ms, not per I/O. CLOCK_BOOTTIME goes on while the machine is suspended, CLOCK_MONOTONIC does not. A
 * clock that goes backwards would never reach the next look, so the loop compares each reading with the one before.
 */
#ifndef IVYPY_CLOCK_GUARD_H
#define IVYPY_CLOCK_GUARD_H

#include <stdint.h>

struct thread;

struct clock_guard {
    uint64_t check_ns;  /* the next look */
    uint64_t asleep_ns; /* by how much CLOCK_BOOTTIME was ahead of CLOCK_MONOTONIC at the start, at most */
};

/* At the start of a step. */
void clock_guard_start(struct thread *t);

/* Looks, if it is time to: the thread dies of what is wrong, and goes on by the kernel's clock. The time, by then. */
uint64_t clock_guard_check(struct thread *t, uint64_t now_ns);

/* The thread's clock says less than `before_ns`, what it said before: likewise. */
uint64_t clock_guard_turned_back(struct thread *t, uint64_t before_ns);

#endif
