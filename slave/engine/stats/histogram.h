/* Latency distributions: buckets and moments that merge by addition, exactly, in any order.
 *
 * Rule: the bucket layout is protocol/histogram.py's (64 buckets per power of two, nanoseconds; a test compares
 * every edge). The used range of a histogram is that of its extremes, so it is not tracked: clearing and merging
 * touch only bucket_of(min) .. bucket_of(max). Moments lie apart from buckets, so that the many series that stay
 * empty cost one cache line each and no page of buckets.
 */
#ifndef IVYPY_HISTOGRAM_H
#define IVYPY_HISTOGRAM_H

#include <stdint.h>

#include "load/random.h"

enum {
    HISTOGRAM_BITS = 6,
    HISTOGRAM_PER_GROUP = 1 << HISTOGRAM_BITS,
    HISTOGRAM_GROUPS = 40,
    HISTOGRAM_BUCKETS = HISTOGRAM_GROUPS * HISTOGRAM_PER_GROUP,
};

/* Empty: min UINT64_MAX, all else 0. */
struct moments {
    uint64_t count, bytes, sum, squares_low, squares_high, min, max, unused;
};

static inline uint32_t bucket_of(uint64_t ns)
{
    uint32_t top = 63 ^ (uint32_t)__builtin_clzll(ns | HISTOGRAM_PER_GROUP); /* its highest bit: one instruction */
    uint32_t shift = top - HISTOGRAM_BITS;                                   /* 0 below the first group */

    if (shift >= HISTOGRAM_GROUPS - 1)
        return HISTOGRAM_BUCKETS - 1;
    return (shift << HISTOGRAM_BITS) + (uint32_t)(ns >> shift);
}

static inline void moments_add_squares(struct moments *m, u128 squares)
{
    u128 sum = (((u128)m->squares_high << 64) | m->squares_low) + squares;

    m->squares_low = (uint64_t)sum;
    m->squares_high = (uint64_t)(sum >> 64);
}

static inline void series_record(struct moments *m, uint64_t *buckets, uint64_t ns, uint32_t bytes)
{
    buckets[bucket_of(ns)]++;
    m->count++;
    m->bytes += bytes;
    m->sum += ns;
    moments_add_squares(m, (u128)ns * ns);
    if (ns < m->min)
        m->min = ns;
    if (ns > m->max)
        m->max = ns;
}

void moments_clear(struct moments *m);

/* Adds a series to another. */
void series_merge(struct moments *into, uint64_t *into_buckets, const struct moments *from, const uint64_t *buckets);

/* Empties a series, touching only the buckets that it used. */
void series_clear(struct moments *m, uint64_t *buckets);

/* The percentile of `m->count` values, by the rule of master/stats/percentiles.py (a test compares them): the middle of
 * the bucket that holds the value of rank ceil(share x count), in whole nanoseconds, within [min, max]. 0 if empty;
 * however few the values are, since a thread's own figures are of few. */
uint64_t histogram_percentile(const uint64_t *buckets, const struct moments *m, uint32_t ten_thousandths);

#endif
