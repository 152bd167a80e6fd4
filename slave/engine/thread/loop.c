#include "loop.h"

#include <string.h>

#include "boundary.h"
#include "due.h"
#include "harvest.h"
#include "late.h"
#include "mail.h"
#include "rest.h"
#include "submit.h"
#include "time/clock.h"

/* Everything that is not I/O: edits, too. False: the step is over. */
static bool take_notice(struct thread *t, uint64_t now_ns)
{
    t->attention = atomic_load_explicit(&t->step->attention, memory_order_acquire);
    if (!boundary_go_on(t, now_ns))
        return false;
    if (mail_has(t)) {
        due_fall_wholly(t, now_ns + 1);
        mail_take(t, now_ns, true);
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
    t->look_late_ns = how == REST_ASLEEP        ? late_slept(t, (uint32_t)found, gap_ns)
                      : gap_ns >= LATE_WATCH_NS ? late_put_aside(t, (uint32_t)found, gap_ns, in_submit_ns)
                                                : late_busy(t, (uint32_t)found, gap_ns - in_submit_ns);
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
        due_fall(t, now_ns + 1);
        if (t->batch_size == 0)
            submit_gather(t, now_ns);

        if (t->batch_size) {
            t->backend->prepare(t->context, t->batch, t->batch_size);
            uint64_t stamp_ns = thread_now(t);
            if (needs_notice(t, stamp_ns)) {
                /* Rarely: the boundary or the end came just now. What completed belongs before it, what is
                 * submitted behind it. An edit waits until this batch, which knows nothing of it, has gone. */
                harvest_record(t);
                if (!boundary_go_on(t, stamp_ns)) {
                    now_ns = stamp_ns;
                    found = 0;
                    break;
                }
            }
            bool all = submit_batch(t, stamp_ns);
            result = t->backend->harvest(t->context, t->completions, THREAD_HARVEST);
            now_ns = thread_now(t);
            /* Else the end is decided or about to be, or a lease was renewed in the last moment: take_notice knows. What
             * is left of the batch is given up with the step, or goes now. */
            if (all) {
                in_submit_ns = now_ns - stamp_ns;
                t->running->figures.in_submit += in_submit_ns;
                submit_account(t, stamp_ns);
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
