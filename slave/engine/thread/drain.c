#include "drain.h"

#include <errno.h>
#include <string.h>

#include "in_flight.h"
#include "mailbox.h"
#include "ready_queue.h"

/* One that was in flight at the end of the step came back: well, with an error, or given back by the kernel untouched. */
static void catch_one(struct thread *t, const struct completion *completion, uint64_t now_ns)
{
    struct tag *tag = completion->tag;
    struct instance *i = tag->instance;

    if (tag->orphaned) {
        tag->orphaned = false;
        i->orphans--;
        return;
    }
    if (now_ns - tag->submit_ns > t->end.longest_caught_ns)
        t->end.longest_caught_ns = now_ns - tag->submit_ns;
    if (completion->result == tag_bytes(tag))
        t->end.caught++;
    else if (completion->result == -EAGAIN && tag->nowait)
        t->end.dropped++;
    else
        t->end.failed++;
    tag->fresh = false;
    add_in_flight(t, (uint32_t)-1);
    land(i, tag);
    atomic_store_explicit(&i->oldest_submit_ns, i->flying.first ? i->flying.first->submit_ns : 0,
                          memory_order_relaxed);
}

/* What the kernel gave back and was not submitted again is not in flight. */
static void give_up_again(struct thread *t)
{
    for (struct share *s = t->again; s; s = s->next_listed)
        for (struct tag *tag = s->again_first; tag; tag = tag->next_again) {
            land(tag->instance, tag);
            add_in_flight(t, (uint32_t)-1);
            t->end.dropped++;
        }
    t->again = NULL;
}

static uint64_t catch_until(const struct thread *t, uint64_t end_ns)
{
    uint64_t exit_by_ns = atomic_load_explicit(&t->exit_by_ns, memory_order_acquire);
    uint64_t until_ns = end_ns + t->step->catch_ns;

    return exit_by_ns && exit_by_ns < until_ns ? exit_by_ns : until_ns;
}

/* Waits for what is in flight, for a bounded time. The completions of the loop's last poll come first. */
static void catch_all(struct thread *t, uint32_t found, uint64_t now_ns)
{
    uint64_t end_ns = now_ns;

    for (;;) {
        for (uint32_t n = 0; n < found; n++)
            catch_one(t, &t->completions[n], now_ns);
        if (mailbox_has(t))
            mailbox_take(t, now_ns, false);
        if (atomic_load_explicit(&t->in_flight, memory_order_relaxed) == 0 || t->dead ||
            now_ns >= catch_until(t, end_ns))
            break;
        int result = t->backend->wait(t->context, THREAD_LONGEST_WAIT_NS, t->completions, THREAD_REAP);
        now_ns = thread_now(t);
        if (result < 0)
            thread_die(t, "the kernel refused to tell what has completed: %s", strerror(-result));
        found = result > 0 ? (uint32_t)result : 0;
    }
}

/* What did not come back keeps its tag and its memory until it does, in whatever step. */
static void count_uncaught(struct thread *t, uint64_t now_ns)
{
    for (uint32_t n = 0; n < t->step_count; n++) {
        struct instance *i = t->step_instances[n];
        if (i->flying.first && now_ns - i->flying.first->submit_ns > t->end.oldest_uncaught_ns)
            t->end.oldest_uncaught_ns = now_ns - i->flying.first->submit_ns;
        for (struct tag *tag = i->flying.first; tag; tag = tag->next) {
            tag->orphaned = true;
            i->orphans++;
            t->end.uncaught++;
        }
        t->end.dropped += i->pacer.backlog;
        i->flying = (struct tag_list){0};
        i->in_step = false;
    }
    atomic_store_explicit(&t->in_flight, 0, memory_order_relaxed);
}

void drain_in_flight(struct thread *t, uint32_t found, uint64_t now_ns)
{
    give_up_again(t);
    catch_all(t, found, now_ns);
    count_uncaught(t, thread_now(t));
}
