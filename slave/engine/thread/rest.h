/* Waiting exactly: sleeping no longer than until the next thing can happen, and being awake by then; or, with spin, not
 * sleeping at all while something will fall due. */
#ifndef IVYPY_REST_H
#define IVYPY_REST_H

#include "thread.h"

/* How the time before a look at the ring was spent. */
enum rest { REST_NONE, REST_AWAKE, REST_ASLEEP };

/* Nothing is to be done now. Sleeps until something may be, or stays awake, and looks at the ring: what harvest says. */
int rest_until_needed(struct thread *t, uint64_t now_ns, enum rest *how);

/* The sleep ended by its timer. */
void rest_rang(struct thread *t, uint64_t now_ns);

#endif
