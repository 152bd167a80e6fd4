#include "orphans.h"

#include "time/clock.h"

static void forget_orphans(struct thread *t, int count)
{
    for (int n = 0; n < count; n++) {
        struct tag *tag = t->completions[n].tag;
        tag->instance->orphans--;
        tag->orphaned = false;
    }
}

void orphans_reap(struct thread *t)
{
    int count = t->context ? THREAD_REAP : 0;

    while (count == THREAD_REAP) { /* else there is nothing more */
        count = t->backend->reap(t->context, t->completions, THREAD_REAP);
        forget_orphans(t, count);
    }
}

static bool has_orphans(const struct thread *t)
{
    for (uint32_t n = 0; n < t->slots; n++)
        if (t->instances[n].lun && t->instances[n].orphans > 0)
            return true;
    return false;
}

void orphans_await(struct thread *t, uint64_t until_ns)
{
    int count = 0;

    orphans_reap(t);
    while (t->context && count >= 0 && has_orphans(t) && clock_now() < until_ns) {
        count = t->backend->wait(t->context, THREAD_LONGEST_WAIT_NS, t->completions, THREAD_REAP);
        forget_orphans(t, count);
    }
}
