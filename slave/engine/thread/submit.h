/* Submission: which instances may, what their next I/O is, and handing it to the kernel.
 *
 * Rule: all that is due goes in one call and nothing is held back to fill it. Instances take turns of a few I/Os, and
 * those that owe something go before those that run flat out, which still get a quarter of each batch: no instance
 * holds up another, whatever its depth, its rate or the state of its LUN.
 */
#ifndef IVYPY_SUBMIT_H
#define IVYPY_SUBMIT_H

#include "thread.h"

/* Fills the batch with what may go now. */
void submit_gather(struct thread *t, uint64_t now_ns);

/* Hands the batch to the kernel. False: the end of all submission came, before it or, where it takes several calls,
 * between them; what the kernel did not take is left in the batch. */
bool submit_batch(struct thread *t, uint64_t stamp_ns);

/* Afterwards: what was taken counts as submitted at `stamp_ns`. */
void submit_account(struct thread *t, uint64_t stamp_ns);

/* Instead: as if the batch had never been gathered. What of it was due stays outstanding and will not be submitted;
 * `dropped`: it counts as dropped. */
void submit_take_back(struct thread *t, bool dropped);

#endif
