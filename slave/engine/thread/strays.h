/* I/Os that outlived their step: between steps nobody looks at the ring, so whoever needs their tags back asks here. */
#ifndef IVYPY_STRAYS_H
#define IVYPY_STRAYS_H

#include "thread.h"

/* What has come back. By the thread itself, or once it has ended. */
void strays_reap(struct thread *t);

/* By the thread itself, about to end: also what comes back until then. */
void strays_await(struct thread *t, uint64_t until_ns);

#endif
