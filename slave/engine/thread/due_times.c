#include "due_times.h"

#include "luns/flush.h"
#include "luns/think.h"
#include "luns/volume.h"
#include "thread.h"

/* How many exponential due times are counted in one pass, so that what has completed does not wait for it. */
enum { MOST_FALLEN = 16384 };

/* For which part of a subinterval those of a stall are counted where it matters: a core counts 100 million a second, so
 * that only rates that it cannot drive ever reach it; and a thread always catches up with its boundaries. */
enum { COUNTING_PART = 10 };

void due_times_set_alarm(struct thread *t, struct instance *i)
{
    uint64_t at_ns = pacer_next_due(&i->pacer);

    if (i->thinking.first)
        at_ns = earlier(at_ns, i->thinking.first->due_ns);
    if (i->resting)
        at_ns = earlier(at_ns, i->rest_until_ns);
    if (i->closed_loop)
        at_ns = earlier(at_ns, i->burst_ends_ns);
    at_ns = earlier(at_ns, i->expires_ns);
    if (at_ns == PACER_IDLE)
        heap_remove(&t->due_times.heap, i->slot);
    else
        heap_set(&t->due_times.heap, i->slot, at_ns);
}

void due_times_end(struct thread *t, struct instance *i)
{
    row_of(t, i)->dropped += pacer_stop(&i->pacer);
    row_of(t, i)->backlog_since_ns = 0;
    i->closed_loop = false;
    flush_settle(i);
    think_end(i);
    skew_settle(t, i);
}

void due_times_expire(struct thread *t, struct instance *i, uint64_t now_ns)
{
    struct row *row = row_of(t, i);

    uint64_t oldest_ns = pacer_backlog_since(&i->pacer), expired = pacer_expire(&i->pacer, now_ns);

    row->expired += expired;
    ideal_tags_take(&i->ideal, expired, oldest_ns, now_ns);
    row->backlog_since_ns = pacer_backlog_since(&i->pacer);
}

/* Its time is over, once all is counted that fell due before. */
static __attribute__((noinline, cold)) void expire(struct thread *t, struct instance *i)
{
    if (pacer_next_due(&i->pacer) <= i->expires_ns)
        return;
    due_times_end(t, i);
    flush_cancel(i);
    volume_expire(i);
    ready_queue_resettle(i);
}

/* In a closed loop, where nothing falls due, it rests from a burst's end to the next burst. */
static __attribute__((noinline, cold)) void rest_between_bursts(struct thread *t, struct instance *i, uint64_t until_ns)
{
    const struct bursts *b = &i->pacer.bursts;
    uint64_t end_ns = bursts_end_at(b, until_ns - 1);

    if (end_ns < until_ns) {
        instance_rest(i, end_ns + b->off_ns);
        skew_settle(t, i);
        end_ns += b->off_ns + b->on_ns;
    }
    i->burst_ends_ns = end_ns;
}

void due_times_count(struct thread *t, uint64_t until_ns)
{
    uint64_t most = MOST_FALLEN;

    while (due_times_next(&t->due_times) < until_ns && most > 0) {
        struct instance *i = &t->instances[t->due_times.heap.entries[0].item];
        if (i->closed_loop && i->burst_ends_ns < until_ns)
            rest_between_bursts(t, i, until_ns);
        if (i->resting && i->rest_until_ns < until_ns) {
            i->resting = false;
            skew_settle(t, i);
        }
        bool expires = i->expires_ns < until_ns;
        think_until(i, until_ns);
        if (i->pacer.ticking) {
            struct row *row = row_of(t, i);
            uint64_t before_ns = expires ? i->expires_ns + 1 : until_ns;
            uint64_t fallen = pacer_fall_due(&i->pacer, before_ns, most);
            row->due += i->counts_turns ? volume_bound(i, fallen) : fallen;
            row->backlog_since_ns = pacer_backlog_since(&i->pacer);
            if (pacer_has_expired(&i->pacer, until_ns))
                due_times_expire(t, i, until_ns);
            if (i->pacer.exponential)
                most -= fallen;
        }
        if (expires)
            expire(t, i);
        due_times_set_alarm(t, i);
        ready_queue_enqueue(t, i);
    }
}

void due_times_count_all(struct thread *t, uint64_t until_ns)
{
    uint64_t give_up_ns;

    due_times_count(t, until_ns);
    if (due_times_next(&t->due_times) >= until_ns)
        return;
    give_up_ns = thread_now(t) + t->step->length_ns / COUNTING_PART;
    do
        due_times_count(t, until_ns);
    while (due_times_next(&t->due_times) < until_ns && thread_now(t) < give_up_ns);
}

int due_times_init(struct thread *t, uint32_t slots)
{
    return heap_init(&t->due_times.heap, slots);
}

void due_times_free(struct thread *t)
{
    heap_free(&t->due_times.heap);
}

void due_times_clear(struct thread *t)
{
    heap_clear(&t->due_times.heap);
}
