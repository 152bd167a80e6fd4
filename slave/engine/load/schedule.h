/* A sequence of due times, as a cursor: the next due time and how to get to the one after it.
 *
 * Rule: deterministic. A copy of a cursor yields the same due times, which is how the backlog of an overloaded
 * instance is kept in constant memory: one cursor counts what falls due, a copy of it yields what is submitted.
 * Times are fixed point, nanoseconds with 64 fractional bits, so that even gaps do not drift: a gap's error is
 * that of a double (2**-53 relative), 0.4 ps in an hour.
 */
#ifndef IVYPY_SCHEDULE_H
#define IVYPY_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

struct schedule {
    uint64_t due_ns, due_fraction; /* the next due time; the fraction in 2**-64 ns */
    uint64_t gap_ns, gap_fraction; /* the mean gap */
    double mean_ns;                /* the mean gap */
    uint64_t random;               /* stream of exponential gaps */
};

/* Starts at `at_ns`: the first due time is up to a gap later (u x gap, so that instances are staggered). */
void schedule_start(struct schedule *s, bool exponential, double iops, uint64_t at_ns);

/* A new rate from `at_ns` on; the next due time must not lie before it. What remains to wait shrinks or grows with
 * the gap. So the count that falls due is the integral of the rate, however often it changes; and exponential gaps
 * stay exponential, having no memory. */
void schedule_retime(struct schedule *s, double iops, uint64_t at_ns);

/* To the due time after the next. */
void schedule_advance(struct schedule *s, bool exponential);

/* Passes the due times before `until_ns` and returns how many these were; of exponential ones at most `most`. */
uint64_t schedule_pass(struct schedule *s, bool exponential, uint64_t until_ns, uint64_t most);

#endif
