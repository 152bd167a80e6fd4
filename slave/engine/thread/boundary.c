#include "boundary.h"

#include "luns/flush.h"
#include "thread.h"

/* From the subinterval that a cooldown names: drops the backlog, and nothing falls due any more. */
static void cool_down_if_commanded(struct thread *t)
{
    if (t->boundary.cooling ||
        t->boundary.subinterval < atomic_load_explicit(&t->step->cooldown_from, memory_order_acquire))
        return;
    submit_take_back(t, true);
    t->boundary.cooling = true;
    due_times_clear(t);
    for (uint32_t n = 0; n < t->step_count; n++) {
        flush_forbid(t->step_instances[n]);
        due_times_end(t, t->step_instances[n]);
    }
}

static void run_in(struct thread *t, struct buffer *b)
{
    atomic_store_explicit(&b->state, BUFFER_RUNNING, memory_order_relaxed);
    t->boundary.running = b;
    t->boundary.rows = b->rows;
    t->boundary.moments = b->moments;
    t->boundary.buckets = b->buckets;
}

/* Corrects the thread's clock, from now to the next boundary; it goes on from where it is. How far, ns. */
static int64_t follow_anchor(struct thread *t)
{
    uint64_t ticks;

    if (t->boundary.anchor.slope == 0)
        return 0;
    if (t->boundary.clock.slope == 0) { /* the kernel's so far */
        uint64_t now_ns = clock_now();
        t->boundary.clock = (struct clock_map){.ticks = tsc_read(), .ns = now_ns, .slope = t->boundary.anchor.slope};
    }
    ticks = tsc_read();
    return clock_map_follow(&t->boundary.clock, &t->boundary.anchor, ticks, t->step->length_ns);
}

/* Gives the running buffer to the collector, and goes on in `next` (NULL: the step is over). */
static void hand_over(struct thread *t, uint32_t label, uint64_t end_ns, uint64_t now_ns, struct buffer *next)
{
    struct buffer *b = t->boundary.running;
    uint64_t cpu_ns;

    if (next) {
        run_in(t, next);
        if (next->anchor.slope)
            t->boundary.anchor = next->anchor;
        b->figures.switchover = thread_now(t) - now_ns;
    }
    cpu_ns = clock_thread_cpu();
    b->figures.cpu_time = cpu_ns - t->boundary.cpu_seen_ns;
    t->boundary.cpu_seen_ns = cpu_ns;
    b->figures.dispatch = now_ns > end_ns ? now_ns - end_ns : 0;
    b->label = label;
    atomic_store_explicit(&b->state, BUFFER_READY_TO_SEND, memory_order_release);
}

static void pass_result(struct thread *t, uint32_t label, struct passed passed)
{
    t->boundary.passed[label % 2] = passed;
    atomic_store_explicit(&t->boundary.progress, label + 1, memory_order_release);
    thread_signal(t);
}

static void pass_boundary(struct thread *t, struct decision d, uint64_t boundary_ns, uint64_t now_ns)
{
    struct buffer *other = t->boundary.running == &t->buffers[0] ? &t->buffers[1] : &t->buffers[0];
    bool is_free = atomic_load_explicit(&other->state, memory_order_acquire) == BUFFER_READY_TO_RUN;

    /* A thread that was held up, so that the collector went on without it, may lack a free buffer where the others
     * have one. */
    if (d.outcome == OUTCOME_SWAP && is_free) {
        submit_note_backlog(t, true);
        hand_over(t, d.label, boundary_ns, now_ns, other);
        submit_note_backlog(t, false);
    } else {
        t->boundary.running->figures.overruns++;
    }
    t->boundary.running->figures.clock_adjustment += follow_anchor(t);
    if (d.outcome == OUTCOME_SWAP)
        pass_result(t, d.label, (struct passed){.subinterval = t->boundary.subinterval, .end_ns = boundary_ns});
    t->boundary.subinterval++;
    t->boundary.began_ns = boundary_ns;
}

/* Passes all boundaries, and the end of the lease, up to `now_ns`. False: the step is over. */
static bool cross(struct thread *t, uint64_t now_ns)
{
    struct step *s = t->step;

    for (;;) {
        uint64_t boundary_ns = step_boundary(s, t->boundary.subinterval, t->boundary.began_ns);
        uint64_t lease_ns = atomic_load_explicit(&s->lease_ns, memory_order_acquire);
        if (now_ns >= lease_ns && lease_ns < boundary_ns)
            step_cut(s, END_LEASE, lease_ns, now_ns);

        struct decision d = step_decision(s, t->boundary.subinterval);
        if (d.outcome == OUTCOME_OPEN && now_ns >= boundary_ns)
            d = step_decide(s, t->boundary.subinterval, now_ns);
        bool cut = d.outcome == OUTCOME_CUT;
        uint64_t at_ns = cut ? atomic_load_explicit(&s->cut_ns, memory_order_acquire) : boundary_ns;
        if (d.outcome == OUTCOME_OPEN || now_ns < at_ns) {
            t->boundary.horizon_ns = earlier(at_ns, lease_ns > now_ns ? lease_ns : UINT64_MAX);
            return true;
        }

        if (at_ns < t->boundary.began_ns)
            at_ns = t->boundary.began_ns; /* cut before the step began, or before this thread knew of it */
        due_times_count_all(t, at_ns);
        if (cut || d.outcome == OUTCOME_LAST) {
            submit_take_back(t, false); /* what was about to go: the buffer must say that it did not */
            hand_over(t, d.label, at_ns, now_ns, NULL);
            pass_result(t, d.label,
                        (struct passed){.subinterval = t->boundary.subinterval, .end_ns = at_ns, .last = true});
            return false;
        }
        pass_boundary(t, d, at_ns, now_ns);
        cool_down_if_commanded(t);
    }
}

/* Looks whether the thread's clock is worthless: then it goes by the kernel's, and dies. The time, by then. */
static uint64_t look_at_clock(struct thread *t, uint64_t now_ns)
{
    struct clock_fault fault;

    if (!clock_guard_finds(t, &fault))
        return now_ns;
    boundary_leave_clock(t);
    clock_guard_die(t, fault);
    return clock_now();
}

__attribute__((noinline, cold)) uint64_t boundary_clock_turned_back(struct thread *t, uint64_t before_ns)
{
    return look_at_clock(t, before_ns);
}

bool boundary_go_on(struct thread *t, uint64_t now_ns)
{
    if (clock_guard_is_due(t, now_ns))
        now_ns = look_at_clock(t, now_ns);
    if (!cross(t, now_ns))
        return false;
    t->boundary.notice_ns = earlier(t->boundary.horizon_ns, t->clock_guard.check_ns);
    cool_down_if_commanded(t);
    return true;
}

void boundary_reset(struct thread *t)
{
    atomic_store(&t->boundary.progress, 0);
}

void boundary_set_clock(struct thread *t, struct clock_map anchor)
{
    t->boundary.clock = t->boundary.anchor = anchor;
}

void boundary_start(struct thread *t)
{
    t->boundary.cooling = false;
    t->boundary.subinterval = 0;
    t->boundary.began_ns = t->step->start_ns;
    run_in(t, &t->buffers[0]);
}

void boundary_enter_loop(struct thread *t)
{
    t->boundary.cpu_seen_ns = clock_thread_cpu();
}

void boundary_leave_clock(struct thread *t)
{
    t->boundary.clock = (struct clock_map){0};
}
