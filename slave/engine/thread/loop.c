/* A pass of the loop, in the order of what cannot wait:
 *
 *   notice   a boundary, the end or an edit that came: before anything is counted that lies behind it.
 *   file     what the last poll found, by the stamp of that poll: its tags are free, its times are kept for later.
 *   due      what has fallen due by that stamp is counted.
 *   gather   the next I/Os of all that may submit: they are made here, so that nothing takes time after the stamp.
 *   stamp    the instant of submission, for the whole batch. A boundary between it and the one before is passed now:
 *            what was filed lies before it, the batch behind it.
 *   submit   the batch, and then a poll, since what is fast has completed in the meantime.
 *   account  the batch, at its stamp: lateness is recorded.
 *   record   the times of what was filed, for which nobody waits.
 *
 * So a tag is used again before the times of its last I/O are in a histogram. Without a batch, these are recorded at
 * once and the ring is polled; without them, there is time: the thread polls, or sleeps, until something is due.
 */
#include "loop.h"

#include <string.h>

#include "thread.h"

/* Everything that is not I/O: edits, too. False: the step is over. */
static bool take_notice(struct thread *t, uint64_t now_ns)
{
    t->loop.attention = atomic_load_explicit(&t->step->attention, memory_order_acquire);
    if (!boundary_go_on(t, now_ns))
        return false;
    if (mailbox_has(&t->mailbox)) {
        if (t->submit.batch_size) { /* left by a lease that ended: it knows nothing of the edit, and goes first */
            t->loop.attention--;    /* so that notice is taken again in the next turn */
            return true;
        }
        due_times_count_all(t, now_ns + 1);
        mailbox_take(t, now_ns, true);
    }
    return true;
}

static bool needs_notice(const struct thread *t, uint64_t now_ns)
{
    return now_ns >= t->boundary.notice_ns ||
           t->loop.attention != atomic_load_explicit(&t->step->attention, memory_order_relaxed);
}

/* What a poll of the ring found, at `now_ns`; since the one before, a batch was submitted at `batch_ns` (0: none). */
static uint32_t polled(struct thread *t, int found, uint64_t now_ns, uint64_t batch_ns, enum idle_kind how)
{
    struct thread_figures *figures = &t->boundary.running->figures;
    uint64_t gap_ns;

    if (found < 0) {
        thread_die(t, "the kernel refused to tell what has completed: %s", strerror(-found));
        return 0;
    }
    gap_ns = reap_delay_polled(t, (uint32_t)found, now_ns, batch_ns, how == IDLE_ASLEEP);
    /* Asleep, the kernel waits for us. */
    if (how != IDLE_ASLEEP && in_flight_count(&t->in_flight)) {
        t->boundary.running->poll_gap[bucket_of(gap_ns)]++;
        if (gap_ns > figures->poll_gap_max)
            figures->poll_gap_max = gap_ns;
    }
    if (how == IDLE_ASLEEP && found == 0)
        idle_rang(t, now_ns);
    if (how == IDLE_BUSY_WAIT && found == 0) {
        figures->busy_wait += gap_ns;
        idle_spent(t, gap_ns);
    }
    figures->reaps += found > 0;
    return (uint32_t)found;
}

/* The time, which never goes backwards. */
static inline uint64_t now_after(struct thread *t, uint64_t before_ns)
{
    uint64_t now_ns = thread_now(t);

    return __builtin_expect(now_ns >= before_ns, true) ? now_ns : boundary_clock_turned_back(t, before_ns);
}

uint32_t loop_run(struct thread *t, uint64_t *now)
{
    uint64_t now_ns = thread_now(t), active_ns = now_ns;
    uint32_t found = 0;

    t->loop.attention = atomic_load_explicit(&t->step->attention, memory_order_acquire) - 1;
    boundary_enter_loop(t);
    reap_delay_enter_loop(t, now_ns);
    for (;;) {
        enum idle_kind how = IDLE_NONE;
        uint64_t batch_ns = 0;
        int result;

        if (needs_notice(t, now_ns) && !take_notice(t, now_ns))
            break;
        reap_file(t, found, now_ns);
        due_times_count(t, now_ns + 1);
        if (t->submit.batch_size == 0)
            submit_gather(t, now_ns);

        if (t->submit.batch_size) {
            submit_prepare(t);
            uint64_t stamp_ns = batch_ns = now_after(t, now_ns);
            if (needs_notice(t, stamp_ns)) {
                /* Rarely: the boundary or the end came just now. What completed belongs before it, what is
                 * submitted behind it. An edit waits until this batch, which knows nothing of it, has gone. */
                reap_record(t);
                if (!boundary_go_on(t, stamp_ns)) {
                    now_ns = stamp_ns;
                    found = 0;
                    break;
                }
            }
            bool all = submit_batch(t, stamp_ns);
            result = reap_poll(t);
            now_ns = active_ns = now_after(t, stamp_ns);
            /* Else the end is decided or about to be, or a lease was renewed in the last moment: take_notice knows.
             * What is left of the batch is given up with the step, or goes now. */
            if (all) {
                t->boundary.running->figures.in_submit += now_ns - stamp_ns;
                if (submit_adapts(&t->submit, now_ns - stamp_ns))
                    submit_adapt(t, now_ns - stamp_ns);
                submit_account(t, stamp_ns);
            }
        } else if (t->reap.done_count == 0) {
            result = idle_until_needed(t, now_ns, active_ns, &how);
            now_ns = now_after(t, now_ns);
        } else {
            reap_record(t);
            result = reap_poll(t);
            now_ns = active_ns = now_after(t, now_ns);
        }
        found = polled(t, result, now_ns, batch_ns, how);
        reap_record(t);
    }
    *now = t->dead ? thread_now(t) : now_ns; /* its clock may have been wrong */
    return found;
}
