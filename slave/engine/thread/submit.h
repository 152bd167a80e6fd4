/* Submission: which instances may, what their next I/O is, and handing it to the kernel.
 *
 * Rule: all that is due goes as soon as it may, and nothing is held back to fill a batch, which is bounded in number
 * and in time. Instances take turns of a few I/Os, and those with a backlog go before those with iops: max, which still
 * get their part: no instance holds up another, whatever its depth, its rate or the state of its LUN. One whose submit
 * calls are long has a call of its own, so that the others' times are without it.
 */
#ifndef IVYPY_SUBMIT_H
#define IVYPY_SUBMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "luns/instance.h"

struct thread;

enum { THREAD_BATCH = 32 }; /* I/Os in one submit call, at most */

/* One stamp stands for a batch, so a call adds to the service time of each I/O in it: half of it, on average. It is to
 * last no longer than this part of the mean service time, so that it adds a tenth, or than the first of these, half of
 * which is too little to be checked (master/rollup/generator_checks.py). Where I/Os complete in the call itself, so
 * that their service time is the call, it may last for the second: such a device has no time of its own, and shorter
 * calls only cost throughput. */
#define SUBMIT_CALL_NS UINT64_C(20000)
#define SUBMIT_WHOLE_NS UINT64_C(32000)
enum { SUBMIT_CALL_PART = 5 };

struct submit {
    uint32_t batch_size, limit;
    bool was_long;         /* the last call; a single one may have been preempted */
    bool closed_loop_next; /* the last batch had no room for those with iops: max */
    struct tag *batch[THREAD_BATCH];
    int refused[THREAD_BATCH]; /* 0, or -errno of the submit call */
    bool any_refused;
    uint64_t dropped; /* I/Os that were due, taken back at the end, and are in no result */
};

/* At the start of a step. */
void submit_start(struct thread *t);

/* Fills the batch with what may go now. */
void submit_gather(struct thread *t, uint64_t now_ns);

/* What is in the batch, and was taken from the backlog, is still in it where a boundary comes before the batch goes:
 * since when, for the collector (`waits`); and afterwards. */
void submit_note_backlog(struct thread *t, bool waits);

/* What the backend can do before the instant of submission. */
void submit_prepare(struct thread *t);

/* Hands the batch to the kernel. False: the end of all submission came, before it or, where it takes several calls,
 * between them; what the kernel did not take is left in the batch. */
bool submit_batch(struct thread *t, uint64_t stamp_ns);

/* Afterwards: what was taken counts as submitted at `stamp_ns`. */
void submit_account(struct thread *t, uint64_t stamp_ns);

/* Before that, where the whole batch was taken: what follows for the next from how long the call took. */
void submit_adapt(struct thread *t, uint64_t call_ns);

/* Whether anything can follow from it. */
static inline bool submit_adapts(const struct submit *s, uint64_t call_ns)
{
    return call_ns > SUBMIT_CALL_NS || (s->batch_size == s->limit && s->limit < THREAD_BATCH);
}

/* Instead: as if the batch had never been gathered. What of it was due stays outstanding and will not be submitted;
 * `dropped`: it counts as dropped. */
void submit_take_back(struct thread *t, bool dropped);

#endif
