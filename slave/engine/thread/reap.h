/* Completions: filing them by their stamp, and recording their times when there is nothing more urgent; a flush's at
 * once.
 *
 * Rule: an error or a short transfer is counted and enters no latency. One stamp holds for all completions of one poll
 * of the ring; the time between two polls bounds its error, and is recorded. Of about one completion in 64, at random,
 * the data is checked if it is a read: blocks that were never written read as zeros, and no medium is touched for them.
 */
#ifndef IVYPY_REAP_H
#define IVYPY_REAP_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"

struct tag;
struct thread;

enum { THREAD_REAP = 128 }; /* completions of one poll of the ring */

/* A completed I/O whose times are still to be recorded. */
struct done {
    uint64_t service_ns, response_ns; /* response: UNCHANGED if it had no due time */
    uint64_t delay_ns;                /* reap delay */
    uint64_t late_ns;                 /* lateness, if it had a due time or followed a think time */
    struct tag *tag;
    uint32_t bytes;
    uint8_t kind;
    uint8_t op; /* enum op: no flush */
};

struct reap {
    uint32_t done_count;
    uint32_t retired;        /* I/Os that in_flight still counts, of the instance that is at it */
    uint32_t until_sample;   /* completions until the data of one is checked */
    uint64_t samples;        /* stream of random numbers: which ones */
    uint64_t service_sum_ns; /* of the last 256 I/Os, about: what each adds fades by a 256th with each one after it */
    struct completion completions[THREAD_REAP]; /* of the last poll */
    struct done done[THREAD_REAP];              /* of the last poll that found any, even once recorded */
};

/* At the start of a step. */
void reap_start(struct thread *t);

/* The running mean of service times, over all instances. */
static inline uint64_t reap_mean_service_ns(const struct reap *r)
{
    return r->service_sum_ns / 256;
}

/* Polls the ring; or sleeps until something completes, at most so long. How many completions, or -errno. */
int reap_poll(struct thread *t);
int reap_wait(struct thread *t, uint64_t timeout_ns);

/* What a poll of the ring found: tags are free again, errors are counted, times are kept for reap_record. */
void reap_file(struct thread *t, uint32_t count, uint64_t now_ns);

/* Records the times of what was filed. */
void reap_record(struct thread *t);

/* One I/O that failed with -`result`, or moved only `result` bytes. */
void reap_fail(struct thread *t, struct tag *tag, int64_t result, uint64_t now_ns);

#endif
