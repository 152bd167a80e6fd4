/* The end of a step, on one thread: what is in flight is waited for, for a bounded time; what does not come back keeps its
 * tag and its memory until it does, in whatever step. */
#ifndef IVYPY_DRAIN_H
#define IVYPY_DRAIN_H

#include "thread.h"

/* After the loop, which left so many of t->completions unfiled. How it went is in t->end. */
void drain_in_flight(struct thread *t, uint32_t found, uint64_t now_ns);

#endif
