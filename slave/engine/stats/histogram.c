#include "histogram.h"

#include <string.h>

void moments_clear(struct moments *m)
{
    *m = (struct moments){.min = UINT64_MAX};
}

void series_merge(struct moments *into, uint64_t *into_buckets, const struct moments *from, const uint64_t *buckets)
{
    if (from->count == 0)
        return;
    for (uint32_t b = bucket_of(from->min); b <= bucket_of(from->max); b++)
        into_buckets[b] += buckets[b];
    into->count += from->count;
    into->bytes += from->bytes;
    into->sum += from->sum;
    moments_add_squares(into, ((u128)from->squares_high << 64) | from->squares_low);
    if (from->min < into->min)
        into->min = from->min;
    if (from->max > into->max)
        into->max = from->max;
}

void series_clear(struct moments *m, uint64_t *buckets)
{
    if (m->count == 0)
        return;
    uint32_t first = bucket_of(m->min), last = bucket_of(m->max);

    memset(buckets + first, 0, (last - first + 1) * sizeof *buckets);
    moments_clear(m);
}

static uint64_t lower_edge(uint32_t bucket)
{
    if (bucket < 2 * HISTOGRAM_PER_GROUP)
        return bucket;
    uint32_t group = bucket / HISTOGRAM_PER_GROUP, offset = bucket % HISTOGRAM_PER_GROUP;
    return (uint64_t)(HISTOGRAM_PER_GROUP + offset) << (group - 1);
}

uint64_t histogram_percentile(const uint64_t *buckets, const struct moments *m, uint32_t ten_thousandths)
{
    uint64_t rank = (m->count * ten_thousandths + 9999) / 10000, seen = 0;

    if (m->count == 0)
        return 0;
    for (uint32_t b = 0; b < HISTOGRAM_BUCKETS; b++) {
        seen += buckets[b];
        if (seen >= rank && seen > 0) {
            uint64_t middle = (lower_edge(b) + lower_edge(b + 1) - 1) / 2;
            return middle < m->min ? m->min : middle < m->max ? middle : m->max;
        }
    }
    return m->max;
}
