/* A workload thread's context of the backend: when it is opened and closed, and what it is told of instances.
 *
 * Rule: all of it happens on the workload thread itself, between steps, since a context may belong to whoever opened it.
 */
#ifndef IVYPY_CONTEXT_H
#define IVYPY_CONTEXT_H

#include "engine.h"

/* Before a step: a context that holds all that the thread's instances may have in flight, and knows them. 0 or -errno. */
int context_prepare(struct engine *e, struct thread *t);

/* Before an instance is destroyed: the thread takes the edit that it may still have to, and the backend forgets the
 * instance. 0 or -errno. */
int context_forget(struct engine *e, struct thread *t, uint32_t slot);

/* What came back since the step ended, while its thread waits for a command and does not poll. 0 or -errno. */
int context_reap(struct engine *e, struct thread *t);

#endif
