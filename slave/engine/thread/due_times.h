/* What falls due, and when the loop attends to an instance next. */
#ifndef IVYPY_DUE_TIMES_H
#define IVYPY_DUE_TIMES_H

#include "thread.h"

/* After a change of its due times or its rest: when the loop attends to an instance next. */
void due_times_set_alarm(struct thread *t, struct instance *i);

/* Counts what fell due before `until_ns`, as much as one pass of the loop may. */
void due_times_count(struct thread *t, uint64_t until_ns);

/* Where what is counted is final: all that fell due before `until_ns`, however long the thread was kept from it. */
void due_times_count_all(struct thread *t, uint64_t until_ns);

#endif
