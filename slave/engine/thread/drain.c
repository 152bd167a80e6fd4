#include "drain.h"

#include <errno.h>
#include <string.h>

#include "thread.h"

/* One that was in flight at the end of the step came back: well, with an error, or untouched by the kernel. */
static void catch_one(struct thread *t, const struct completion *completion, uint64_t now_ns)
{
    struct tag *tag = completion->tag;
    struct instance *i = tag->instance;

    if (tag->filed_as == FILED_AS_ORPHAN) {
        tag->filed_as = FILED_AS_IO;
        i->orphans--;
        return;
    }
    if (now_ns - tag->submit_ns > t->drain.longest_caught_ns)
        t->drain.longest_caught_ns = now_ns - tag->submit_ns;
    if (tag_is_done(tag, completion->result))
        t->drain.caught++;
    else if (completion->result == -EAGAIN && tag->nowait)
        t->drain.dropped++;
    else
        t->drain.failed++;
    tag->fresh = false;
    in_flight_add(&t->in_flight, (uint32_t)-1);
    land(i, tag);
    atomic_store_explicit(&i->oldest_submit_ns, i->flying.first ? i->flying.first->submit_ns : 0, memory_order_relaxed);
}

/* What the kernel gave back and was not submitted again is not in flight. */
static void give_up_again(struct thread *t)
{
    for (struct share *s = t->ready_queue.again; s; s = s->next_listed)
        for (struct tag *tag = s->again_first; tag; tag = tag->next_again) {
            land(tag->instance, tag);
            in_flight_add(&t->in_flight, (uint32_t)-1);
            t->drain.dropped++;
        }
    ready_queue_reset(t);
}

static uint64_t catch_until(const struct thread *t, uint64_t end_ns)
{
    uint64_t exit_by_ns = atomic_load_explicit(&t->worker.exit_by_ns, memory_order_acquire);
    uint64_t until_ns = end_ns + t->step->catch_ns;

    return exit_by_ns && exit_by_ns < until_ns ? exit_by_ns : until_ns;
}

/* Waits for what is in flight, for a bounded time. The completions of the loop's last poll come first. */
static void catch_all(struct thread *t, uint32_t found, uint64_t now_ns)
{
    uint64_t end_ns = now_ns;

    for (;;) {
        for (uint32_t n = 0; n < found; n++)
            catch_one(t, &t->reap.completions[n], now_ns);
        if (mailbox_has(&t->mailbox))
            mailbox_take(t, now_ns, false);
        if (in_flight_count(&t->in_flight) == 0 || t->dead || now_ns >= catch_until(t, end_ns))
            break;
        int result = reap_wait(t, THREAD_LONGEST_WAIT_NS);
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
        if (i->flying.first && now_ns - i->flying.first->submit_ns > t->drain.oldest_uncaught_ns)
            t->drain.oldest_uncaught_ns = now_ns - i->flying.first->submit_ns;
        for (struct tag *tag = i->flying.first; tag; tag = tag->next) {
            tag->filed_as = FILED_AS_ORPHAN;
            tag->fresh = false;
            i->orphans++;
            t->drain.uncaught++;
        }
        t->drain.dropped += i->pacer.backlog;
        i->flying = (struct tag_list){0};
        i->in_step = OUT_OF_STEP;
    }
    in_flight_reset(&t->in_flight);
}

void drain_in_flight(struct thread *t, uint32_t found, uint64_t now_ns)
{
    t->drain.dropped += t->submit.dropped;
    give_up_again(t);
    catch_all(t, found, now_ns);
    count_uncaught(t, thread_now(t));
}

void drain_start(struct thread *t)
{
    t->drain = (struct drain){0};
}

static void forget_orphans(struct thread *t, int count)
{
    for (int n = 0; n < count; n++) {
        struct tag *tag = t->reap.completions[n].tag;
        tag->instance->orphans--;
        tag->filed_as = FILED_AS_IO;
    }
}

void drain_orphans(struct thread *t)
{
    int count = t->context ? THREAD_REAP : 0;

    while (count == THREAD_REAP) { /* else there is nothing more */
        count = reap_poll(t);
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

void drain_await_orphans(struct thread *t, uint64_t until_ns)
{
    int count = 0;

    drain_orphans(t);
    while (t->context && count >= 0 && has_orphans(t) && clock_now() < until_ns) {
        count = reap_wait(t, THREAD_LONGEST_WAIT_NS);
        forget_orphans(t, count);
    }
}
