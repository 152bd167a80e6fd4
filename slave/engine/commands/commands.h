/* What the engine's commands share among themselves.
 *
 * Rule: what opens, makes or pins something is between engine_enter and engine_leave, which wait for a turn and give it
 * back; what steers or asks is between engine_hold and engine_let_go, and so is what of the step the others touch.
 * Nothing that may block is ever done while holding.
 */
#ifndef IVYPY_COMMANDS_H
#define IVYPY_COMMANDS_H

#include "engine.h"

void engine_enter(struct engine *e);
bool engine_enter_by(struct engine *e, uint64_t deadline_ns); /* false at the deadline */
int engine_leave(struct engine *e, int result);               /* the result */

void engine_hold(struct engine *e);
void engine_let_go(struct engine *e);

/* 0 between steps, when the commanding thread owns all but the mailboxes; else -errno. */
int engine_must_be_idle(struct engine *e);

/* NULL if there is none. */
struct lun *engine_lun(struct engine *e, uint32_t lun);
struct instance *engine_instance(struct engine *e, uint32_t number);

/* objects.c */

/* Whether the backend takes the trims and zeroes of a setting that an instance is to have. 0 or -errno. */
int engine_check_operations(struct engine *e, const struct instance *i, const struct setting *setting);

/* context.c */

/* The errand of a thread before a step: the memory of its instances, and a context that holds all that these may have
 * in flight, and knows them. What is there already costs nothing. 0 or -errno. */
int context_prepare_here(struct thread *t);

/* Has all threads do it at once; or another errand that does it first. 0 or -errno. */
int context_prepare_all(struct engine *e, int (*errand)(struct thread *t));

/* Before an instance is destroyed: the thread takes the edit that it may still have to, and the backend forgets the
 * instance. 0 or -errno. */
int context_forget(struct engine *e, struct thread *t, uint32_t slot);

/* What came back since the step ended, while its thread waits for a command and does not poll. 0 or -errno. */
int context_reap(struct engine *e, struct thread *t);

/* collect.c */

/* Until the collection that may be under way is over, when no step is running and so no other begins. */
void collect_wait(struct engine *e);

/* queue_shares.c */

/* By the instances that each thread was assigned. 0 or -errno. */
int queue_shares_settle(struct engine *e);

#endif
