/* The loop of a workload thread.
 *
 * In order of priority: file what completed, submit what is due, record, wait until the next thing can happen. Every
 * pass has two readings of the clock: one immediately before the submit call, and one after it, which stamps the
 * completions found by then (the ring is looked at first, so a stamp is never early).
 * Rule: nothing here allocates, nothing takes a lock, and no wait is longer than 10 ms.
 */
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "thread.h"

/* How many exponential due times are counted in one pass, so that what has completed does not wait for it. */
enum { MOST_FALLEN = 16384 };

/* For which part of a subinterval those of a stall are counted where it matters: a core counts 100 million a second, so
 * that only rates that it cannot drive ever reach it; and a thread always catches up with its boundaries. */
enum { COUNTING_PART = 10 };

void loop_set_alarm(struct thread *t, struct instance *i)
{
    uint64_t at_ns = pacer_next_due(&i->pacer);

    if (i->resting)
        at_ns = earlier(at_ns, i->rest_until_ns);
    if (at_ns == PACER_IDLE)
        heap_remove(&t->heap, i->slot);
    else
        heap_set(&t->heap, i->slot, at_ns);
}

void loop_fall_due(struct thread *t, uint64_t until_ns)
{
    uint64_t most = MOST_FALLEN;

    while (heap_key(&t->heap) < until_ns && most > 0) {
        struct instance *i = &t->instances[t->heap.entries[0].item];
        if (i->resting && i->rest_until_ns < until_ns)
            i->resting = false;
        if (i->pacer.ticking) {
            struct row *row = row_of(t, i);
            uint64_t fallen = pacer_fall_due(&i->pacer, until_ns, most);
            row->due += fallen;
            row->dropped += i->pacer.dropped;
            i->pacer.dropped = 0;
            row->owed_since_ns = pacer_owed_since(&i->pacer);
            if (i->pacer.exponential)
                most -= fallen;
        }
        loop_set_alarm(t, i);
        submit_enqueue(t, i);
    }
}

/* Where what is counted is final: all that fell due before `until_ns`, however long the thread was kept from it. */
static void fall_due_wholly(struct thread *t, uint64_t until_ns)
{
    uint64_t give_up_ns;

    loop_fall_due(t, until_ns);
    if (heap_key(&t->heap) >= until_ns)
        return;
    give_up_ns = thread_now(t) + t->step->length_ns / COUNTING_PART;
    do
        loop_fall_due(t, until_ns);
    while (heap_key(&t->heap) < until_ns && thread_now(t) < give_up_ns);
}

/* From the subinterval that a cooldown names: gives up what is owed, and nothing falls due any more. */
static void cool_if_told(struct thread *t)
{
    if (t->cooling || t->subinterval < atomic_load_explicit(&t->step->cooldown_from, memory_order_acquire))
        return;
    submit_take_back(t, true);
    t->cooling = true;
    heap_clear(&t->heap);
    for (uint32_t n = 0; n < t->step_count; n++) {
        struct instance *i = t->step_instances[n];
        row_of(t, i)->dropped += pacer_stop(&i->pacer);
        row_of(t, i)->owed_since_ns = 0;
        i->flat_out = false;
    }
}

static void run_in(struct thread *t, struct buffer *b)
{
    t->running = b;
    t->rows = b->rows;
    t->moments = b->moments;
    t->buckets = b->buckets;
}

/* Corrects the thread's clock, from now to the next boundary; it goes on from where it is. How far, ns. */
static int64_t follow_anchor(struct thread *t)
{
    uint64_t ticks;

    if (t->anchor.slope == 0)
        return 0;
    if (t->clock.slope == 0) { /* the kernel's so far */
        uint64_t now_ns = clock_now();
        t->clock = (struct line){.ticks = counter_read(), .ns = now_ns, .slope = t->anchor.slope};
    }
    ticks = counter_read();
    return line_follow(&t->clock, &t->anchor, ticks, t->step->length_ns);
}

/* Gives the running buffer to the collector, and goes on in `next` (NULL: the step is over). */
static void hand_over(struct thread *t, uint32_t label, uint64_t end_ns, uint64_t now_ns, struct buffer *next)
{
    struct buffer *b = t->running;
    uint64_t cpu_ns;

    if (next) {
        atomic_store_explicit(&next->state, BUFFER_RUNNING, memory_order_relaxed);
        run_in(t, next);
        if (next->anchor.slope)
            t->anchor = next->anchor;
        b->figures.switchover = thread_now(t) - now_ns;
    }
    cpu_ns = clock_thread_cpu();
    b->figures.cpu_time = cpu_ns - t->cpu_seen_ns;
    t->cpu_seen_ns = cpu_ns;
    b->figures.dispatch = now_ns > end_ns ? now_ns - end_ns : 0;
    b->label = label;
    atomic_store_explicit(&b->state, BUFFER_READY_TO_SEND, memory_order_release);
}

static void pass_result(struct thread *t, uint32_t label, struct passed passed)
{
    t->passed[label % 2] = passed;
    atomic_store_explicit(&t->progress, label + 1, memory_order_release);
    thread_signal(t);
}

static void pass_boundary(struct thread *t, struct decision d, uint64_t boundary_ns, uint64_t now_ns)
{
    struct buffer *other = t->running == &t->buffers[0] ? &t->buffers[1] : &t->buffers[0];
    bool is_free = atomic_load_explicit(&other->state, memory_order_acquire) == BUFFER_READY_TO_RUN;

    /* A thread that was held up, so that the collector went on without it, may lack a free buffer where the others
     * have one. */
    if (d.outcome == OUTCOME_SWAP && is_free)
        hand_over(t, d.label, boundary_ns, now_ns, other);
    else
        t->running->figures.overruns++;
    t->running->figures.anchor_correction += follow_anchor(t);
    if (d.outcome == OUTCOME_SWAP)
        pass_result(t, d.label, (struct passed){.subinterval = t->subinterval, .end_ns = boundary_ns});
    t->subinterval++;
    t->began_ns = boundary_ns;
}

/* Passes all boundaries, and the end of the lease, up to `now_ns`. False: the step is over. */
static bool cross(struct thread *t, uint64_t now_ns)
{
    struct step *s = t->step;

    for (;;) {
        uint64_t boundary_ns = step_boundary(s, t->subinterval, t->began_ns);
        uint64_t lease_ns = atomic_load_explicit(&s->lease_ns, memory_order_acquire);
        if (now_ns >= lease_ns && lease_ns < boundary_ns)
            step_cut(s, END_LEASE, lease_ns, now_ns);

        struct decision d = step_look(s, t->subinterval);
        if (d.outcome == OUTCOME_OPEN && now_ns >= boundary_ns)
            d = step_decide(s, t->subinterval, now_ns);
        bool cut = d.outcome == OUTCOME_CUT;
        uint64_t at_ns = cut ? atomic_load_explicit(&s->cut_ns, memory_order_acquire) : boundary_ns;
        if (d.outcome == OUTCOME_OPEN || now_ns < at_ns) {
            t->horizon_ns = earlier(at_ns, lease_ns > now_ns ? lease_ns : UINT64_MAX);
            return true;
        }

        if (at_ns < t->began_ns)
            at_ns = t->began_ns; /* cut before the step began, or before this thread knew of it */
        fall_due_wholly(t, at_ns);
        if (cut || d.outcome == OUTCOME_LAST) {
            submit_take_back(t, false); /* what was about to go: the buffer must say that it did not */
            hand_over(t, d.label, at_ns, now_ns, NULL);
            pass_result(t, d.label, (struct passed){.subinterval = t->subinterval, .end_ns = at_ns, .last = true});
            return false;
        }
        pass_boundary(t, d, at_ns, now_ns);
        cool_if_told(t);
    }
}

/* Boundaries, cooldown, the end. False: the step is over. */
static bool go_on(struct thread *t, uint64_t now_ns)
{
    if (!cross(t, now_ns))
        return false;
    cool_if_told(t);
    return true;
}

/* Everything that is not I/O: edits, too. False: the step is over. */
static bool take_notice(struct thread *t, uint64_t now_ns)
{
    t->attention = atomic_load_explicit(&t->step->attention, memory_order_acquire);
    if (!go_on(t, now_ns))
        return false;
    if (atomic_load_explicit(&t->mailbox.posted, memory_order_acquire) !=
        atomic_load_explicit(&t->mailbox.taken, memory_order_relaxed)) {
        fall_due_wholly(t, now_ns + 1);
        thread_take_mail(t, now_ns, true);
    }
    return true;
}

static bool needs_notice(const struct thread *t, uint64_t now_ns)
{
    return now_ns >= t->horizon_ns ||
           t->attention != atomic_load_explicit(&t->step->attention, memory_order_relaxed);
}

/* What a look at the ring found, at `now_ns`; of the time since the one before, so much was spent in the submit call. */
static uint32_t looked(struct thread *t, int found, uint64_t now_ns, uint64_t in_submit_ns, enum rest how)
{
    struct thread_figures *figures = &t->running->figures;
    uint64_t gap_ns = now_ns - t->last_look_ns;

    if (found < 0) {
        thread_die(t, "the kernel refused to tell what has completed: %s", strerror(-found));
        return 0;
    }
    if (how == REST_ASLEEP)
        late_slept(t, (uint32_t)found);
    else if (gap_ns < LATE_WATCH_NS)
        late_count(t, gap_ns - in_submit_ns, (uint32_t)found);
    else
        late_put_aside(t, (uint32_t)found, gap_ns, in_submit_ns);
    t->last_look_ns = now_ns;
    /* Asleep, the kernel looks for us. */
    if (how != REST_ASLEEP && atomic_load_explicit(&t->in_flight, memory_order_relaxed)) {
        t->running->harvest_gap[bucket_of(gap_ns)]++;
        if (gap_ns > figures->harvest_gap_max)
            figures->harvest_gap_max = gap_ns;
    }
    if (how == REST_ASLEEP && found == 0)
        rest_rang(t, now_ns);
    if (how == REST_AWAKE && found == 0)
        figures->spun += gap_ns;
    figures->harvests += found > 0;
    return (uint32_t)found;
}

uint32_t loop_run(struct thread *t, uint64_t *now)
{
    uint64_t now_ns = thread_now(t);
    uint32_t found = 0;
    bool open = true; /* false: the end is decided or about to be */

    t->attention = atomic_load_explicit(&t->step->attention, memory_order_acquire) - 1;
    t->cpu_seen_ns = clock_thread_cpu();
    t->last_look_ns = now_ns;
    for (;;) {
        enum rest how = REST_NONE;
        uint64_t in_submit_ns = 0;
        int result;

        if (needs_notice(t, now_ns) && !take_notice(t, now_ns))
            break;
        harvest_file(t, found, now_ns);
        loop_fall_due(t, now_ns + 1);
        if (open)
            submit_gather(t, now_ns);

        if (t->batch_size) {
            t->backend->prepare(t->context, t->batch, t->batch_size);
            uint64_t stamp_ns = thread_now(t);
            if (needs_notice(t, stamp_ns)) {
                /* Rarely: the boundary or the end came just now. What completed belongs before it, what is
                 * submitted behind it. An edit waits until this batch, which knows nothing of it, has gone. */
                harvest_record(t);
                if (!go_on(t, stamp_ns)) {
                    now_ns = stamp_ns;
                    found = 0;
                    break;
                }
            }
            open = submit_batch(t, stamp_ns);
            result = t->backend->harvest(t->context, t->completions, THREAD_HARVEST);
            now_ns = thread_now(t);
            if (open) {
                in_submit_ns = now_ns - stamp_ns;
                t->running->figures.in_submit += in_submit_ns;
                submit_account(t, stamp_ns);
            } else {
                submit_take_back(t, false);
            }
        } else if (t->done_count == 0) {
            result = rest_until_needed(t, now_ns, &how);
            now_ns = thread_now(t);
        } else {
            harvest_record(t);
            result = t->backend->harvest(t->context, t->completions, THREAD_HARVEST);
            now_ns = thread_now(t);
        }
        found = looked(t, result, now_ns, in_submit_ns, how);
        harvest_record(t);
    }
    *now = now_ns;
    return found;
}
