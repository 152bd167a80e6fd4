#include "strays.h"

#include "time/clock.h"

static void forget_strays(struct thread *t, int count)
{
    for (int n = 0; n < count; n++) {
        struct tag *tag = t->completions[n].tag;
        tag->instance->strays--;
        tag->stray = false;
    }
}

void strays_reap(struct thread *t)
{
    int count = t->context ? THREAD_HARVEST : 0;

    while (count == THREAD_HARVEST) { /* else there is nothing more */
        count = t->backend->harvest(t->context, t->completions, THREAD_HARVEST);
        forget_strays(t, count);
    }
}

static bool has_strays(const struct thread *t)
{
    for (uint32_t n = 0; n < t->slots; n++)
        if (t->instances[n].lun && t->instances[n].strays > 0)
            return true;
    return false;
}

void strays_await(struct thread *t, uint64_t until_ns)
{
    int count = 0;

    strays_reap(t);
    while (t->context && count >= 0 && has_strays(t) && clock_now() < until_ns) {
        count = t->backend->wait(t->context, THREAD_LONGEST_WAIT_NS, t->completions, THREAD_HARVEST);
        forget_strays(t, count);
    }
}
