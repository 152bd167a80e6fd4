/* A workload thread's context of the backend: when it is opened and closed, and which instances are registered with it.
 *
 * Rule: all of it happens on the workload thread itself, between steps, since a context may belong to whoever opened it.
 */
#include "commands.h"

#include <errno.h>

#include "time/clock.h"

static int open_here(struct thread *t)
{
    if (t->context)
        t->backend->close(t->context);
    t->context = NULL;
    t->depth = 0;
    int result = t->backend->open(&t->context, t->worker.errand_argument, t->options);
    if (result == 0)
        t->depth = t->worker.errand_argument;
    return result;
}

static int attach_here(struct thread *t)
{
    return t->backend->attach(t->context, t->instances, t->slots);
}

static int detach_here(struct thread *t)
{
    if (t->context && t->backend->detach)
        t->backend->detach(t->context, t->worker.errand_argument);
    return 0;
}

static int reap_here(struct thread *t)
{
    drain_orphans(t);
    return 0;
}

static int explain(struct engine *e, const struct thread *t, int error)
{
    const char *remedy = t->backend->remedy ? t->backend->remedy(error) : NULL;

    if (error == -ETIMEDOUT)
        return engine_refuse(e, ETIMEDOUT, "the kernel holds workload thread %u, which was to prepare or give up what it "
                             "drives, for longer than %g s: its log says what hangs", t->number,
                             (double)t->worker.errand_limit_ns / (double)NS_PER_S);
    if (!remedy)
        return error;
    return engine_refuse(e, -error, "workload thread %u: %s", t->number, remedy);
}

static int open_context(struct engine *e, struct thread *t)
{
    uint64_t depth = 1;
    bool orphans = false;

    for (uint32_t n = 0; n < t->slots; n++)
        if (t->instances[n].lun) {
            depth += t->instances[n].ceiling.tags;
            orphans |= t->instances[n].orphans > 0;
        }
    if (t->context && depth <= t->depth)
        return 0;
    if (depth > INT32_MAX)
        return engine_refuse(e, EINVAL, "%llu tags on one workload thread are too many", (unsigned long long)depth);
    if (t->context && orphans)
        return engine_refuse(e, EBUSY, "I/Os of an earlier step have not come back");
    return explain(e, t, worker_do(t, open_here, (uint32_t)depth));
}

int context_prepare(struct engine *e, struct thread *t)
{
    int result = open_context(e, t);

    if (result == 0 && t->backend->attach)
        result = explain(e, t, worker_do(t, attach_here, 0));
    return result;
}

int context_reap(struct engine *e, struct thread *t)
{
    return explain(e, t, worker_do(t, reap_here, 0));
}

int context_forget(struct engine *e, struct thread *t, uint32_t slot)
{
    bool known = t->context && t->backend->detach;

    return known || !mailbox_taken(&t->mailbox) ? explain(e, t, worker_do(t, detach_here, slot)) : 0;
}
