#include "context.h"

#include <errno.h>

#include "thread/mailbox.h"
#include "thread/orphans.h"
#include "time/clock.h"

/* Has a workload thread that waits for a command do something: what it returns, or -ETIMEDOUT; then the thread is still
 * at it, and takes no further command before it has done. */
static int send(struct thread *t, int (*errand)(struct thread *t), uint32_t argument)
{
    struct timespec deadline = clock_timespec(clock_now() + t->errand_limit_ns);
    int error = 0;

    pthread_mutex_lock(&t->mutex);
    t->errand = errand;
    t->errand_argument = argument;
    atomic_store(&t->state, THREAD_ERRAND);
    pthread_cond_broadcast(&t->changed);
    while (atomic_load(&t->state) == THREAD_ERRAND && error == 0)
        error = pthread_cond_timedwait(&t->changed, &t->mutex, &deadline);
    int result = atomic_load(&t->state) == THREAD_ERRAND ? -error : t->errand_result;
    pthread_mutex_unlock(&t->mutex);
    return result;
}

static int open_here(struct thread *t)
{
    if (t->context)
        t->backend->close(t->context);
    t->context = NULL;
    t->depth = 0;
    int result = t->backend->open(&t->context, t->errand_argument, t->options);
    if (result == 0)
        t->depth = t->errand_argument;
    return result;
}

static int attach_here(struct thread *t)
{
    return t->backend->attach(t->context, t->instances, t->slots);
}

static int detach_here(struct thread *t)
{
    if (t->context && t->backend->detach)
        t->backend->detach(t->context, t->errand_argument);
    return 0;
}

static int reap_here(struct thread *t)
{
    orphans_reap(t);
    return 0;
}

static int explain(struct engine *e, const struct thread *t, int error)
{
    const char *remedy = t->backend->remedy ? t->backend->remedy(error) : NULL;

    if (error == -ETIMEDOUT)
        return engine_refuse(e, ETIMEDOUT, "the kernel holds workload thread %u, which was to prepare or give up what it "
                             "drives, for longer than %g s: its log says what hangs", t->number,
                             (double)t->errand_limit_ns / (double)NS_PER_S);
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
    return explain(e, t, send(t, open_here, (uint32_t)depth));
}

int context_prepare(struct engine *e, struct thread *t)
{
    int result = open_context(e, t);

    if (result == 0 && t->backend->attach)
        result = explain(e, t, send(t, attach_here, 0));
    return result;
}

int context_reap(struct engine *e, struct thread *t)
{
    return explain(e, t, send(t, reap_here, 0));
}

/* A thread takes its mail before an errand. */
int context_forget(struct engine *e, struct thread *t, uint32_t slot)
{
    bool known = t->context && t->backend->detach;

    return known || !mailbox_taken(t) ? explain(e, t, send(t, detach_here, slot)) : 0;
}
