/* I/Os that outlived their step: between steps nobody polls the ring, so whoever needs their tags back asks here. */
#ifndef IVYPY_ORPHANS_H
#define IVYPY_ORPHANS_H

#include "thread.h"

/* What has come back. By the thread itself, or once it has ended. */
void orphans_reap(struct thread *t);

/* By the thread itself, about to end: also what comes back until then. */
void orphans_await(struct thread *t, uint64_t until_ns);

#endif
