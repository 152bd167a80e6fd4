#define _GNU_SOURCE
#include "result.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "time/clock.h"

static size_t buckets_size(uint32_t classes)
{
    return ((size_t)classes * SERIES + 3) * HISTOGRAM_BUCKETS * sizeof(uint64_t);
}

int collector_init(struct collector *c, const struct roster *roster, uint32_t rows, uint32_t classes, uint64_t start_ns)
{
    collector_free(c);
    c->parts = roster->count;
    c->rows = rows;
    c->classes = classes;
    c->sections = roster->sections;
    c->end_ns = start_ns;
    c->tallies = calloc(roster->count + 1u, sizeof *c->tallies);
    c->moments = calloc((size_t)classes * SERIES + 1, sizeof *c->moments);
    c->buckets = mmap(NULL, buckets_size(classes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                      -1, 0);
    if (c->buckets == MAP_FAILED)
        c->buckets = NULL;
    if (!c->tallies || !c->moments || !c->buckets) {
        collector_free(c);
        return -ENOMEM;
    }
    for (uint32_t n = 0; n < c->parts; n++)
        c->tallies[n].row = roster->rows[n];
    for (uint32_t n = 0; n < classes * SERIES; n++)
        moments_clear(&c->moments[n]);
    c->scratch = c->buckets + (size_t)classes * SERIES * HISTOGRAM_BUCKETS;
    return 0;
}

void collector_free(struct collector *c)
{
    free(c->tallies);
    free(c->moments);
    if (c->buckets)
        munmap(c->buckets, buckets_size(c->classes));
    *c = (struct collector){0};
}

void result_free(struct result *r)
{
    free(r->counts);
    free(r->moments);
    free(r->spans);
    free(r->buckets);
    free(r->sections);
    free(r->thread_figures);
    free(r->faults);
    free(r->missing);
    *r = (struct result){0};
}

int result_init(struct result *r, const struct engine *e)
{
    const struct collector *c = &e->collector;
    size_t series = (size_t)c->classes * SERIES;

    *r = (struct result){
        .rows = c->rows, .classes = c->classes, .threads = e->thread_count, .sections_count = c->sections};
    r->counts = calloc((size_t)c->rows * COUNTS + 1, sizeof *r->counts);
    r->moments = calloc(series * MOMENTS + 1, sizeof *r->moments);
    r->spans = calloc(series * 2 + 1, sizeof *r->spans);
    r->sections = calloc((size_t)c->rows * c->sections * SECTION_COUNTS + 1, sizeof *r->sections);
    r->thread_figures = calloc((size_t)e->thread_count * THREAD_COUNTS + 1, sizeof *r->thread_figures);
    r->missing = calloc(e->thread_count + 1u, sizeof *r->missing);
    if (r->counts && r->moments && r->spans && r->sections && r->thread_figures && r->missing)
        return 0;
    result_free(r);
    return -ENOMEM;
}

static int64_t age(uint64_t since_ns, uint64_t end_ns)
{
    return since_ns && since_ns < end_ns ? (int64_t)(end_ns - since_ns) : 0;
}

static void raise_to(int64_t *highest, int64_t value)
{
    if (value > *highest)
        *highest = value;
}

/* Of parts that share a row the last one to end, if all have: the first loop has the first one. */
static void pack_ends(const struct collector *c, struct result *r)
{
    for (uint32_t n = 0; n < c->parts; n++)
        raise_to(&r->counts[(size_t)c->tallies[n].row * COUNTS + COUNT_ENDED_NS],
                 age(c->tallies[n].ended_ns, c->end_ns));
    for (uint32_t n = 0; n < c->parts; n++) {
        int64_t *ended = &r->counts[(size_t)c->tallies[n].row * COUNTS + COUNT_ENDED_NS];
        int64_t of_part = age(c->tallies[n].ended_ns, c->end_ns);
        *ended = of_part < *ended ? of_part : *ended;
    }
}

/* The state at the end, which follows from all that was counted since the step began. Of parts that share a row the
 * oldest I/O counts, and the newest edit. */
static void pack_tallies(const struct collector *c, struct result *r)
{
    for (uint32_t n = 0; n < c->parts; n++) {
        const struct tally *sums = &c->tallies[n];
        int64_t *counts = r->counts + (size_t)sums->row * COUNTS;
        uint64_t outstanding_ns = sums->in_flight ? sums->oldest_due_ns : 0;
        if (sums->backlog_since_ns && (outstanding_ns == 0 || sums->backlog_since_ns < outstanding_ns))
            outstanding_ns = sums->backlog_since_ns;
        counts[COUNT_BACKLOG] += sums->backlog;
        if (sums->timed)
            raise_to(&counts[COUNT_LEFT], (int64_t)sums->left);
        else
            counts[COUNT_LEFT] += (int64_t)sums->left;
        counts[COUNT_IN_FLIGHT] += sums->in_flight;
        raise_to(&counts[COUNT_EDIT], (int64_t)sums->edit);
        raise_to(&counts[COUNT_OLDEST_IN_FLIGHT_NS], sums->in_flight == 0 ? 0 : age(sums->oldest_submit_ns, c->end_ns));
        raise_to(&counts[COUNT_OLDEST_OUTSTANDING_NS], age(outstanding_ns, c->end_ns));
    }
}

static void pack_moments(const struct moments *m, uint64_t *columns)
{
    columns[MOMENT_COUNT] = m->count;
    columns[MOMENT_BYTES] = m->bytes;
    columns[MOMENT_SUM] = m->sum;
    columns[MOMENT_SQUARES_LOW] = m->squares_low;
    columns[MOMENT_SQUARES_HIGH] = m->squares_high;
    columns[MOMENT_MIN] = m->min;
    columns[MOMENT_MAX] = m->max;
}

static void copy_span(struct result *r, size_t at, const uint64_t *buckets, uint32_t count)
{
    switch (r->bucket_size) {
    case 1:
        for (uint32_t n = 0; n < count; n++)
            ((uint8_t *)r->buckets)[at + n] = (uint8_t)buckets[n];
        break;
    case 2:
        for (uint32_t n = 0; n < count; n++)
            ((uint16_t *)r->buckets)[at + n] = (uint16_t)buckets[n];
        break;
    case 4:
        for (uint32_t n = 0; n < count; n++)
            ((uint32_t *)r->buckets)[at + n] = (uint32_t)buckets[n];
        break;
    default:
        memcpy((uint64_t *)r->buckets + at, buckets, count * sizeof *buckets);
    }
}

/* The least size, in bytes, of a number that holds `count`, and is no smaller than `size`. */
static uint32_t size_for(uint64_t count, uint32_t size)
{
    while (size < 8 && count >> (8 * size))
        size *= 2;
    return size;
}

/* Copies the used ranges out, and empties the accumulators for the next result. */
static int pack_series(struct collector *c, struct result *r)
{
    size_t length = 0, at = 0;

    r->bucket_size = 1; /* a thousand classes have wide histograms of few values each */
    for (uint32_t n = 0; n < c->classes * SERIES; n++) {
        const struct moments *m = &c->moments[n];
        pack_moments(m, r->moments + (size_t)n * MOMENTS);
        if (m->count == 0)
            continue;
        r->spans[2 * n] = bucket_of(m->min);
        r->spans[2 * n + 1] = bucket_of(m->max) - r->spans[2 * n] + 1;
        length += r->spans[2 * n + 1];
        r->bucket_size = size_for(m->count, r->bucket_size);
    }
    r->buckets_length = length;
    r->buckets = malloc(length * r->bucket_size + 1);
    for (uint32_t n = 0; n < c->classes * SERIES; n++) {
        uint64_t *buckets = c->buckets + (size_t)n * HISTOGRAM_BUCKETS;
        if (r->buckets)
            copy_span(r, at, buckets + r->spans[2 * n], r->spans[2 * n + 1]);
        at += r->spans[2 * n + 1];
        series_clear(&c->moments[n], buckets);
    }
    return r->buckets ? 0 : -ENOMEM;
}

int result_pack(struct collector *c, struct result *r)
{
    pack_tallies(c, r);
    pack_ends(c, r);
    return pack_series(c, r);
}
