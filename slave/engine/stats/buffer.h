/* What a thread records in one subinterval: the two of them take turns.
 *
 * Rule: a buffer belongs to one side at a time, and its state says to which. ready_to_run and running: the
 * workload thread's; ready_to_send and sending: the collector's. Whoever gives it away stores the state last
 * (release), whoever takes it loads the state first (acquire). The thread never clears: the collector does, touching
 * only what was used.
 */
#ifndef IVYPY_BUFFER_H
#define IVYPY_BUFFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "columns.h"
#include "histogram.h"
#include "time/clock_map.h"

enum buffer_state { BUFFER_READY_TO_RUN, BUFFER_RUNNING, BUFFER_READY_TO_SEND, BUFFER_SENDING };

#define UNCHANGED UINT64_MAX

/* What is counted per instance; two cache lines, the first of them hot. The three instants are the state after the
 * last change in this subinterval, so that the collector knows the state at the boundary without any work there:
 * UNCHANGED means as at the end of the subinterval before. Without any in flight, the first two say
 * nothing; without a backlog, the third is 0. */
struct row {
    uint64_t due, submitted, completed;
    uint64_t oldest_submit_ns; /* of the oldest in flight */
    uint64_t oldest_due_ns;    /* of the oldest in flight; its submission where it had no due time */
    uint64_t backlog_since_ns; /* due time of the oldest in the backlog */
    uint64_t bytes;            /* of those that completed */
    uint64_t queue_limited;    /* waits for room, not I/Os */
    uint64_t written;          /* of `bytes` */
    uint32_t again, errors, short_transfers;
    uint32_t flushes; /* of `completed` */
    uint64_t dropped;
    uint64_t edit;
    uint64_t expired;
    uint32_t reads_sampled, zero_reads; /* the second is of the first, and that about one of 64 reads */
    uint64_t withdrawn;                 /* of `submitted`: the kernel gave them back, and they were dropped */
};

_Static_assert(sizeof(struct row) == 128, "a row is two cache lines");

struct fault {
    uint32_t number;
    int error; /* 0: short transfer */
    uint64_t count;
};

/* A power of two; each pair of instance and errno takes an entry. Where they are used up (thousands of instances that
 * fail in different ways), errors still are counted per instance, only not by errno. */
enum { BUFFER_FAULTS = 1024 };

/* What is counted per thread; nanoseconds. */
struct thread_figures {
    uint64_t overruns, dispatch, switchover, poll_gap_max, in_submit, submit_calls, reaps, waits, submitted, completed,
        cpu_time, busy_wait, reap_delay; /* the last: of all completions */
    int64_t clock_adjustment;
};

struct buffer {
    _Atomic uint32_t state; /* enum buffer_state */
    uint32_t label;         /* the result that it belongs to, 0, 1, 2 ... */
    struct thread_figures figures;
    struct clock_map anchor; /* the thread's clock follows it from the swap to this buffer on; slope 0: as before */
    uint32_t rows_count, series_count; /* rows: one per slot; series: SERIES per merge class of this thread */
    uint32_t sections_count;           /* of each row; 0: nothing is counted by address */
    struct row *rows;
    struct moments *moments;
    uint64_t *buckets;    /* series_count x HISTOGRAM_BUCKETS; pages are there once touched */
    uint64_t *sections;   /* rows_count x sections_count x SECTION_COUNTS; pages as above */
    uint64_t *poll_gap;   /* HISTOGRAM_BUCKETS; by poll */
    uint64_t *reap_delay; /* HISTOGRAM_BUCKETS; of completions whose delay is recorded */
    struct fault *faults; /* BUFFER_FAULTS, by hash */
    uint32_t faults_used;
};

/* Empty, of this size; memory of the same size is kept. 0 or -ENOMEM. */
int buffer_init(struct buffer *b, uint32_t rows, uint32_t series, uint32_t sections);
void buffer_free(struct buffer *b);

/* Empties it for the next turn. */
void buffer_clear(struct buffer *b);

/* The sections of a row, one after the other. */
static inline uint64_t *buffer_sections(const struct buffer *b, uint32_t row)
{
    return b->sections + (size_t)row * b->sections_count * SECTION_COUNTS;
}

void buffer_count_fault(struct buffer *b, uint32_t number, int error);

static inline void row_clear(struct row *row)
{
    *row = (struct row){
        .oldest_submit_ns = UNCHANGED, .oldest_due_ns = UNCHANGED, .backlog_since_ns = UNCHANGED, .edit = UNCHANGED};
}

#endif
