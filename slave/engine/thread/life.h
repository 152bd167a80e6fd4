/* A workload thread's life: it waits for a command, does an errand or runs a step, and waits again, until it is to end. */
#ifndef IVYPY_LIFE_H
#define IVYPY_LIFE_H

#include "thread.h"

/* Starts it. 0 or -errno; what was taken is given back. */
int life_start(struct thread *t);

#endif
