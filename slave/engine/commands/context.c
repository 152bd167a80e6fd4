/* What a workload thread prepares before a step: its instances' memory; its context of the backend, when it is opened
 * and closed, and which instances are registered with it.
 *
 * Rule: all of it happens on the workload thread itself, between steps, since a context may belong to whoever opened
 * it, and memory lies on the NUMA node of whoever touches it first; on all threads at once, since gigabytes take
 * seconds.
 */
#include "commands.h"

#include <errno.h>

#include "time/clock.h"

static int populate(struct thread *t)
{
    int result = 0;

    for (uint32_t n = 0; n < t->slots && result == 0; n++)
        if (t->instances[n].lun && !t->instances[n].populated)
            result = instance_populate(&t->instances[n], &t->worker.progress);
    if (result != 0)
        worker_explain(t, "there is no memory for the I/O buffers of this many tags: lower maxtags or blocksize");
    return result;
}

/* For so many I/Os in flight, unless the one that it has is large enough. */
static int open_context(struct thread *t, uint32_t depth)
{
    if (t->context && depth <= t->depth)
        return 0;
    if (t->context)
        t->backend->close(t->context);
    t->context = NULL;
    t->depth = 0;
    int result = t->backend->open(&t->context, depth, t->options);
    if (result == 0)
        t->depth = depth;
    return result;
}

int context_prepare_here(struct thread *t)
{
    int result = populate(t);

    if (result == 0)
        result = open_context(t, t->worker.errand_argument);
    if (result == 0 && t->backend->attach)
        result = t->backend->attach(t->context, t->instances, t->slots);
    return result;
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
    const char *remedy = t->worker.errand_why;

    if (error == 0)
        return 0;
    if (!remedy && t->backend->remedy)
        remedy = t->backend->remedy(error);
    if (error == -ETIMEDOUT)
        return engine_refuse(e, ETIMEDOUT,
                             "the kernel holds workload thread %u, which was to prepare or give up what it "
                             "drives, for longer than %g s: its log says what hangs",
                             t->number, (double)t->worker.errand_limit_ns / (double)NS_PER_S);
    if (!remedy)
        return error;
    return engine_refuse(e, -error, "workload thread %u: %s", t->number, remedy);
}

/* How many I/Os its context must hold. */
static int depth_of(struct engine *e, const struct thread *t, uint32_t *needed)
{
    uint64_t depth = 1;
    bool orphans = false;

    for (uint32_t n = 0; n < t->slots; n++)
        if (t->instances[n].lun) {
            depth += t->instances[n].ceiling.tags;
            orphans |= t->instances[n].orphans > 0;
        }
    *needed = (uint32_t)depth;
    if (t->context && depth <= t->depth)
        return 0;
    if (depth > INT32_MAX)
        return engine_refuse(e, EINVAL, "%llu tags on one workload thread are too many", (unsigned long long)depth);
    if (t->context && orphans)
        return engine_refuse(e, EBUSY, "I/Os of an earlier step have not come back");
    return 0;
}

int context_prepare_all(struct engine *e, int (*errand)(struct thread *t))
{
    uint32_t depths[ENGINE_THREADS];
    int result = 0;

    for (uint32_t n = 0; n < e->thread_count && result == 0; n++)
        result = depth_of(e, &e->threads[n], &depths[n]);
    if (result != 0)
        return result;
    for (uint32_t n = 0; n < e->thread_count; n++)
        worker_post(&e->threads[n], errand, depths[n]);
    for (uint32_t n = 0; n < e->thread_count; n++) {
        int found = worker_await(&e->threads[n]);
        if (result == 0)
            result = explain(e, &e->threads[n], found);
    }
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
