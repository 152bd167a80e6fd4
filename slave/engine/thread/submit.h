/* Submission: which instances may, what their next I/O is, and handing it to the kernel.
 *
 * Rule: all that is due goes in one call and nothing is held back to fill it. Instances take turns of a few I/Os, and
 * those with a backlog go before those with iops: max, which still get a quarter of each batch: no instance
 * holds up another, whatever its depth, its rate or the state of its LUN.
 */
#ifndef IVYPY_SUBMIT_H
#define IVYPY_SUBMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "luns/instance.h"

struct thread;

enum { THREAD_BATCH = 32 }; /* I/Os in one submit call: one stamp is true for all of them */

struct submit {
    uint32_t batch_size;
    struct tag *batch[THREAD_BATCH];
    uint64_t late_from[THREAD_BATCH]; /* from when on a wait is the generator's own fault; 0: not paced */
    int refused[THREAD_BATCH];        /* 0, or -errno of the submit call */
    bool any_refused;
    uint64_t dropped; /* I/Os that were due, taken back at the end, and are in no result */
};

/* At the start of a step. */
void submit_start(struct thread *t);

/* Fills the batch with what may go now. */
void submit_gather(struct thread *t, uint64_t now_ns);

/* What the backend can do before the instant of submission. */
void submit_prepare(struct thread *t);

/* Hands the batch to the kernel. False: the end of all submission came, before it or, where it takes several calls,
 * between them; what the kernel did not take is left in the batch. */
bool submit_batch(struct thread *t, uint64_t stamp_ns);

/* Afterwards: what was taken counts as submitted at `stamp_ns`. */
void submit_account(struct thread *t, uint64_t stamp_ns);

/* Instead: as if the batch had never been gathered. What of it was due stays outstanding and will not be submitted;
 * `dropped`: it counts as dropped. */
void submit_take_back(struct thread *t, bool dropped);

#endif
