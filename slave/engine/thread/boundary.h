/* Boundaries, as one thread passes them: what has fallen due is counted, the running buffer goes to the collector, and
 * the thread goes on in the other one; a cooldown begins; the step ends.
 *
 * Rule: what happens at a boundary the step decides, for all threads alike; nothing here waits for another thread.
 */
#ifndef IVYPY_BOUNDARY_H
#define IVYPY_BOUNDARY_H

#include "thread.h"

/* Passes all boundaries, and the end of the lease, up to `now_ns`. False: the step is over. */
bool boundary_go_on(struct thread *t, uint64_t now_ns);

#endif
