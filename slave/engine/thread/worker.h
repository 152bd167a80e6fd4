/* A workload thread's life: it waits for a command, does an errand or runs a step, and waits again, until it is to end. */
#ifndef IVYPY_WORKER_H
#define IVYPY_WORKER_H

#include "thread.h"

/* Starts it. 0 or -errno; what was taken is given back. */
int worker_start(struct thread *t);

#endif
