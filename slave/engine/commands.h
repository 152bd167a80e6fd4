/* What the engine's commands share among themselves.
 *
 * Rule: every command but set_lease is between engine_enter and engine_leave, which take and give back the lock.
 */
#ifndef IVYPY_COMMANDS_H
#define IVYPY_COMMANDS_H

#include "engine.h"

void engine_enter(struct engine *e);
/* The same for what never refuses: the last command's words stay for whoever gave it and has not read them yet. */
void engine_enter_quietly(struct engine *e);
int engine_leave(struct engine *e, int result); /* the result */

/* 0 between steps, when the commanding thread owns all but the mailboxes; else -errno. */
int engine_must_be_idle(struct engine *e);

/* NULL if there is none. */
struct lun *engine_lun(struct engine *e, uint32_t lun);
struct instance *engine_instance(struct engine *e, uint32_t number);

#endif
