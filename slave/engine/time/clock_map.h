/* A clock as a straight line from counter ticks to nanoseconds, and how it is found and kept true.
 *
 * Rule: pure; readings are handed in. A line is one 128-bit multiply and one shift, without chunks: it does not
 * overflow in centuries, and its slope is exact to 2^-59. A thread's own line is only ever continued from the instant
 * at which it is changed, with a positive slope: its time is continuous and never goes back.
 */
#ifndef IVYPY_CLOCK_MAP_H
#define IVYPY_CLOCK_MAP_H

#include <stdbool.h>
#include <stdint.h>

enum { CLOCK_MAP_SHIFT = 58 }; /* slopes of counters from 31 MHz up fit 63 bits */

/* `slope`: ns per tick, times 2^CLOCK_MAP_SHIFT; 0: no line is known. */
struct clock_map {
    uint64_t ticks, ns;
    int64_t slope;
};

/* Counter and clock at one instant, within `width` ticks. */
struct reading {
    uint64_t ticks, ns, width;
};

__extension__ typedef __int128 i128;

static inline uint64_t clock_map_at(const struct clock_map *l, uint64_t ticks)
{
    return l->ns + (uint64_t)(((i128)(int64_t)(ticks - l->ticks) * l->slope) >> CLOCK_MAP_SHIFT);
}

/* Through a reading, with so many ns in so many ticks, to the nearest slope. */
struct clock_map clock_map_through(const struct reading *at, uint64_t ns, uint64_t ticks);

/* Moves `own`, from `ticks` on, so that it meets `anchor` `over_ns` later: at most an eighth faster or slower. How far
 * it is moved, ns. */
int64_t clock_map_follow(struct clock_map *own, const struct clock_map *anchor, uint64_t ticks, uint64_t over_ns);

/* Readings a good while apart, as they come. The slope is of the oldest kept and the newest, which are one to two
 * CALIBRATION_NS apart once that much time has gone by: long enough for a slope exact to 0.01 ppm with readings exact
 * to 50 ns, short enough to follow a clock whose own rate NTP changes. */
#define CALIBRATION_NS UINT64_C(10000000000)
#define CALIBRATION_LEAST_NS UINT64_C(1000000000)

struct calibration {
    struct reading oldest, middle;
    bool begun;
};

/* The line through the newest reading; slope 0 until the first is CALIBRATION_LEAST_NS old. */
struct clock_map calibration_add(struct calibration *c, const struct reading *newest);

#endif
