/* Load in bursts: on for a time, off for a time, in turns from a beginning.
 *
 * Rule: the time in which it is on is a time of its own, which stands while it is off. Due times are drawn in that, at
 * the rate of a burst, and translated: so the mean of whole periods is exact, and gaps of any kind stay what they are.
 */
#ifndef IVYPY_BURSTS_H
#define IVYPY_BURSTS_H

#include <stdbool.h>
#include <stdint.h>

struct bursts {
    uint64_t begin_ns;
    uint64_t on_ns, off_ns; /* both 0: it is always on */
};

static inline bool bursts_are(const struct bursts *b)
{
    return __builtin_expect(b->on_ns != 0, false);
}

/* How much higher the rate of a burst is than the mean. */
static inline double bursts_height(const struct bursts *b)
{
    return bursts_are(b) ? (double)(b->on_ns + b->off_ns) / (double)b->on_ns : 1.0;
}

/* When it has been on for so long; where that is the end of a burst, the beginning of the next. */
static inline uint64_t bursts_time_of(const struct bursts *b, uint64_t on_ns)
{
    return bursts_are(b) ? on_ns + (on_ns - b->begin_ns) / b->on_ns * b->off_ns : on_ns;
}

/* For how long it has been on at a time that is not before the beginning, counted from there. */
static inline uint64_t bursts_on_at(const struct bursts *b, uint64_t at_ns)
{
    uint64_t whole, within;

    if (!bursts_are(b))
        return at_ns;
    whole = (at_ns - b->begin_ns) / (b->on_ns + b->off_ns);
    within = (at_ns - b->begin_ns) % (b->on_ns + b->off_ns);
    return b->begin_ns + whole * b->on_ns + (within < b->on_ns ? within : b->on_ns);
}

/* The end of the burst of a time, or of the one before it. */
static inline uint64_t bursts_end_at(const struct bursts *b, uint64_t at_ns)
{
    return b->begin_ns + (at_ns - b->begin_ns) / (b->on_ns + b->off_ns) * (b->on_ns + b->off_ns) + b->on_ns;
}

#endif
