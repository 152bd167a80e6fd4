/* Waiting exactly: sleeping no longer than until the next thing can happen, and being awake by then; or, with spin, not
 * sleeping at all while something will fall due. */
#ifndef IVYPY_IDLE_H
#define IVYPY_IDLE_H

#include "thread.h"

/* How the time before a poll of the ring was spent. */
enum idle_kind { IDLE_NONE, IDLE_BUSY_WAIT, IDLE_ASLEEP };

/* Nothing is to be done now. Sleeps until something may be, or stays awake, and polls the ring: what the backend says. */
int idle_until_needed(struct thread *t, uint64_t now_ns, enum idle_kind *how);

/* The sleep ended by its timer. */
void idle_rang(struct thread *t, uint64_t now_ns);

#endif
