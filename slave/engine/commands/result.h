/* One finished subinterval of all threads, as packed arrays (columns.h), and how it is put together.
 *
 * Rule: the collector copies and clears; threads go on meanwhile. Exact: what is added is integers, and the state at
 * the boundary (backlog, in flight, ages) follows from what was counted up to it.
 */
#ifndef IVYPY_RESULT_H
#define IVYPY_RESULT_H

#include "engine.h"

struct result {
    uint32_t subinterval;
    uint64_t start_ns, length_ns;
    bool last;
    uint32_t rows, classes, threads;
    int64_t *counts;       /* rows x COUNTS */
    uint64_t *moments;     /* classes x SERIES x MOMENTS */
    uint32_t *spans;       /* classes x SERIES x 2: first bucket, how many */
    void *buckets;         /* the spans, one after the other */
    uint32_t bucket_size;  /* 1, 2, 4 or 8 bytes: the least that every count fits in */
    size_t buckets_length; /* how many */
    uint64_t *sections;    /* rows x sections_count x SECTION_COUNTS */
    uint32_t sections_count;
    int64_t *thread_figures; /* threads x THREAD_COUNTS */
    struct fault *faults;
    uint32_t fault_count;
    uint32_t *missing;
    uint32_t missing_count;
};

/* Made at go: of so many numbers, in so many rows. 0 or -ENOMEM. */
int collector_init(struct collector *c, const struct roster *roster, uint32_t rows, uint32_t classes,
                   uint64_t start_ns);
void collector_free(struct collector *c);

/* An empty result of this step, to which threads' parts are added; then what follows from their sums is filled in, and
 * the distributions are moved out of the collector. 0 or -ENOMEM. */
int result_init(struct result *r, const struct engine *e);
int result_pack(struct collector *c, struct result *r);

/* 1 and the oldest finished result if every thread has passed it, or if `force` and one has; 0 if there is none;
 * -ENOMEM, and then that result is lost, or a part of it: what threads handed over is not whole any more. */
int engine_collect(struct engine *e, bool force, struct result *r);
void result_free(struct result *r);

#endif
