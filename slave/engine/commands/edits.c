/* Edits: checked whole, then posted to the threads, which take them when they can. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

static bool all_taken(const struct engine *e)
{
    for (uint32_t n = 0; n < e->thread_count; n++)
        if (!mailbox_taken(&e->threads[n].mailbox))
            return false;
    return true;
}

/* Only what is live may differ from what was created. The instance's setting is its thread's, and not looked at. */
static int check_edit(const struct instance *i, const struct parameters *p, const char **why)
{
    if (memcmp(&p->fixed, &i->parameters.fixed, sizeof p->fixed) != 0) {
        *why = "a parameter that is not live cannot be edited";
        return -EINVAL;
    }
    return instance_check(i->lun, i->ceiling, &i->agreed, p, why);
}

static int check_edits(struct engine *e, const struct edit *edits, uint32_t count)
{
    int result = 0;

    for (uint32_t n = 0; n < count && result == 0; n++) {
        struct instance *i = engine_instance(e, edits[n].number);
        if (!i)
            return engine_refuse(e, ENOENT, "there is no workload instance %u", edits[n].number);
        const char *why;
        if (check_edit(i, &edits[n].parameters, &why) != 0)
            return engine_refuse(e, EINVAL, "workload instance %u: %s", edits[n].number, why);
        result = engine_check_operations(e, i, &edits[n].parameters.setting);
        if (result == 0)
            result = instance_make_mix(i, &edits[n].parameters);
    }
    return result;
}

static int edit(struct engine *e, uint32_t number, const struct edit *edits, uint32_t count)
{
    int result = e->closed ? engine_refuse(e, EBADF, "the engine is closed") : check_edits(e, edits, count);

    if (result != 0)
        return result;
    if (!all_taken(e))
        return engine_refuse(e, EAGAIN, "an earlier edit was not taken by every workload thread yet");
    for (uint32_t n = 0; n < e->thread_count; n++) {
        result = mailbox_clear(&e->threads[n], count);
        if (result != 0)
            return result;
    }
    for (uint32_t n = 0; n < count; n++) {
        const struct instance *i = engine_instance(e, edits[n].number);
        mailbox_put(&e->threads[i->thread], i->slot, &edits[n].parameters.setting);
    }
    for (uint32_t n = 0; n < e->thread_count; n++) {
        mailbox_post(&e->threads[n], number);
        worker_wake(&e->threads[n]);
    }
    step_call(&e->step);
    engine_hold(e);
    e->posted = (struct posted){.edit = number, .pending = true};
    engine_let_go(e);
    return 0;
}

int engine_edit(struct engine *e, uint32_t number, const struct edit *edits, uint32_t count)
{
    engine_enter(e);
    return engine_leave(e, edit(e, number, edits, count));
}

static int edited(struct engine *e, uint32_t *edit, uint64_t *taken_ns, uint64_t *discarded)
{
    if (!e->posted.pending || !all_taken(e))
        return 0;
    e->posted.pending = false;
    *edit = e->posted.edit;
    *taken_ns = *discarded = 0;
    for (uint32_t n = 0; n < e->thread_count; n++) {
        uint64_t at_ns = atomic_load_explicit(&e->threads[n].mailbox.taken_ns, memory_order_relaxed);
        if (at_ns > *taken_ns)
            *taken_ns = at_ns;
        *discarded += e->threads[n].mailbox.discarded;
    }
    return 1;
}

int engine_edited(struct engine *e, uint32_t *edit, uint64_t *taken_ns, uint64_t *discarded)
{
    engine_hold(e);
    int result = edited(e, edit, taken_ns, discarded);
    engine_let_go(e);
    return result;
}
