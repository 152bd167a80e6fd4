/* A step from go to its end, as a commanding thread sees it; and the laws that every result must obey. */
#ifndef LIFE_H
#define LIFE_H

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "commands/result.h"
#include "time/clock.h"

enum { MOST_INSTANCES = 64 };

/* What may be written where nothing is said of it. */
static struct extent whole = {.start = 0, .end = UINT64_MAX};
static const struct extents everywhere = {.list = &whole, .count = 1};

struct sums {
    int64_t due, submitted, completed, flushes, errors, dropped, withdrawn, expired, bytes;
    int64_t backlog, in_flight; /* at the end of the last result */
    /* By number, where `go` below began the step: */
    int64_t completed_of[MOST_INSTANCES], errors_of[MOST_INSTANCES];
    int64_t spent_of[MOST_INSTANCES], left_of[MOST_INSTANCES]; /* submitted, and not withdrawn; left of `until` */
    uint64_t ended_ns_of[MOST_INSTANCES];                      /* 0: it has not */
    uint32_t results, overruns;
    uint64_t end_ns;
    bool last;
};

static inline uint64_t in_class(const struct result *r, uint32_t class, enum moment of, uint32_t from, uint32_t behind)
{
    uint64_t sum = 0;

    for (uint32_t n = from; n < behind; n++)
        sum += r->moments[((size_t)class * SERIES + n) * MOMENTS + of];
    return sum;
}

static inline uint64_t in_series(const struct result *r, enum moment of, uint32_t from, uint32_t behind)
{
    uint64_t sum = 0;

    for (uint32_t class = 0; class < r->classes; class++)
        sum += in_class(r, class, of, from, behind);
    return sum;
}

static inline uint64_t bucket_at(const struct result *r, size_t n)
{
    switch (r->bucket_size) {
    case 1:
        return ((uint8_t *)r->buckets)[n];
    case 2:
        return ((uint16_t *)r->buckets)[n];
    case 4:
        return ((uint32_t *)r->buckets)[n];
    default:
        return ((uint64_t *)r->buckets)[n];
    }
}

static inline uint64_t in_buckets(const struct result *r)
{
    uint64_t count = 0;

    for (size_t n = 0; n < r->buckets_length; n++)
        count += bucket_at(r, n);
    return count;
}

/* Adds a result up, and checks what must hold of each. */
static inline void add_result(struct sums *s, const struct result *r, uint32_t maxtags)
{
    int64_t completed = 0, flushes = 0, bytes = 0;

    CHECK_EQUAL(r->start_ns, s->end_ns);
    s->end_ns += r->length_ns;
    s->results++;
    s->last = r->last;
    s->backlog = s->in_flight = 0;
    for (uint32_t n = 0; n < r->rows; n++) {
        const int64_t *c = r->counts + (size_t)n * COUNTS;
        for (uint32_t column = 0; column < COUNTS; column++)
            CHECK(c[column] >= 0); /* else the controller takes the host for broken (decode_result.py) */
        CHECK(c[COUNT_IN_FLIGHT] <= maxtags);
        /* At a halt's instant an I/O may have been submitted by a thread that did not know yet: its age is 0. */
        CHECK((c[COUNT_IN_FLIGHT] > 0) == (c[COUNT_OLDEST_IN_FLIGHT_NS] > 0) || r->last);
        CHECK(c[COUNT_OLDEST_OUTSTANDING_NS] >= c[COUNT_OLDEST_IN_FLIGHT_NS]);
        s->due += c[COUNT_DUE];
        s->submitted += c[COUNT_SUBMITTED];
        s->errors += c[COUNT_ERRORS];
        s->dropped += c[COUNT_DROPPED];
        s->withdrawn += c[COUNT_WITHDRAWN];
        s->expired += c[COUNT_EXPIRED];
        completed += c[COUNT_COMPLETED];
        flushes += c[COUNT_FLUSHES];
        CHECK(c[COUNT_WRITTEN] <= c[COUNT_BYTES]);
        s->completed_of[r->rows - 1 - n] += c[COUNT_COMPLETED];
        s->errors_of[r->rows - 1 - n] += c[COUNT_ERRORS];
        s->spent_of[r->rows - 1 - n] += c[COUNT_SUBMITTED] - c[COUNT_WITHDRAWN];
        s->left_of[r->rows - 1 - n] = c[COUNT_LEFT];
        s->ended_ns_of[r->rows - 1 - n] = c[COUNT_ENDED_NS] ? s->end_ns - (uint64_t)c[COUNT_ENDED_NS] : 0;
        CHECK(!c[COUNT_ENDED_NS] || !(c[COUNT_LEFT] || c[COUNT_BACKLOG] || c[COUNT_IN_FLIGHT]));
        bytes += c[COUNT_BYTES];
        s->backlog += c[COUNT_BACKLOG];
        s->in_flight += c[COUNT_IN_FLIGHT];
    }
    s->completed += completed;
    s->flushes += flushes;
    s->bytes += bytes;
    for (uint32_t n = 0; n < r->threads; n++)
        s->overruns += (uint32_t)r->thread_figures[(size_t)n * THREAD_COUNTS + THREAD_OVERRUNS];
    uint64_t releases = in_series(r, MOMENT_COUNT, KIND_TRIM, KIND_WRITE_ZEROES + 1);
    CHECK_EQUAL(in_series(r, MOMENT_COUNT, SERIES_SERVICE, SERIES_RESPONSE) + releases, completed - flushes);
    CHECK_EQUAL(in_series(r, MOMENT_COUNT, SERIES_FLUSH, SERIES_FLUSH + 1), flushes);
    CHECK_EQUAL(in_series(r, MOMENT_BYTES, SERIES_FLUSH, SERIES_FLUSH + 1), 0);
    CHECK_EQUAL(in_series(r, MOMENT_BYTES, SERIES_SERVICE, SERIES_RESPONSE), bytes);
    CHECK_EQUAL(in_buckets(r), in_series(r, MOMENT_COUNT, 0, SERIES));
    CHECK_EQUAL(s->due, s->completed + s->errors + s->dropped + s->expired + s->backlog + s->in_flight);
    CHECK_EQUAL(s->submitted, s->completed + s->errors + s->withdrawn + s->in_flight);
}

static inline void wait_for_news(struct engine *e, int timeout_ms)
{
    struct pollfd news = {.fd = e->eventfd, .events = POLLIN};
    uint64_t count;

    if (poll(&news, 1, timeout_ms) > 0)
        CHECK(read(e->eventfd, &count, sizeof count) == sizeof count);
}

static inline void collect_all(struct engine *e, struct sums *s, uint32_t maxtags, bool force)
{
    struct result r;

    while (engine_collect(e, force, &r) == 1) {
        add_result(s, &r, maxtags);
        result_free(&r);
    }
}

/* Until the step has ended. */
static inline struct end finish(struct engine *e, struct sums *s, uint32_t maxtags)
{
    struct end end;

    for (;;) {
        collect_all(e, s, maxtags, false);
        if (engine_ended(e, &end))
            return end;
        wait_for_news(e, 1000);
    }
}

static inline void go(struct engine *e, uint32_t instances, uint32_t classes, uint64_t length_ns, struct sums *s)
{
    uint32_t order[MOST_INSTANCES], class[MOST_INSTANCES], rows[MOST_INSTANCES];
    struct roster roster = {order, class, rows, instances, 0};

    for (uint32_t n = 0; n < instances; n++) {
        order[n] = instances - 1 - n;
        class[n] = n % classes;
        rows[n] = n;
    }
    *s = (struct sums){.end_ns = clock_now() + 5 * NS_PER_MS};
    int result = engine_go(e, s->end_ns, length_ns, &roster);
    if (result != 0)
        fprintf(stderr, "go: %s (%s)\n", strerror(-result), engine_why(e));
    CHECK(result == 0);
}

#endif
