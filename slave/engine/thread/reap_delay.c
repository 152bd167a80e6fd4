#include "reap_delay.h"

#include "runqueue_delay.h"
#include "time/clock.h"

/* Since the last reading. */
static uint64_t without_core(struct thread *t)
{
    uint64_t before_ns = t->runqueue_ns;

    t->runqueue_ns = runqueue_delay_ns(t->schedstat);
    return t->runqueue_ns > before_ns ? t->runqueue_ns - before_ns : 0;
}

void reap_delay_sleeps(struct thread *t, uint64_t now_ns)
{
    t->watched = now_ns >= t->watch_ns && atomic_load_explicit(&t->in_flight, memory_order_relaxed) > 0;
    if (!t->watched)
        return;
    t->watch_ns = now_ns + REAP_DELAY_WATCH_NS;
    t->runqueue_ns = runqueue_delay_ns(t->schedstat);
}

uint64_t reap_delay_slept(struct thread *t, uint32_t found, uint64_t gap_ns)
{
    uint64_t late_ns;

    if (found == 0)
        return 0;
    if (!t->watched && gap_ns < REAP_DELAY_WATCH_NS) {
        t->unwatched += found;
        t->unwatched_gaps_ns += found * gap_ns;
        return 0;
    }
    late_ns = earlier(without_core(t), gap_ns);
    reap_delay_count(t, late_ns, found);
    if (t->watched && t->unwatched) {
        reap_delay_count(t, earlier(late_ns, t->unwatched_gaps_ns / t->unwatched), t->unwatched);
        t->unwatched = t->unwatched_gaps_ns = 0;
    }
    return late_ns;
}

/* Perhaps in the submit call, which then is not the kernel's work alone. */
uint64_t reap_delay_preempted(struct thread *t, uint32_t found, uint64_t gap_ns, uint64_t in_submit_ns)
{
    uint64_t without_ns = earlier(without_core(t), gap_ns), late_ns = gap_ns - in_submit_ns;

    if (without_ns > late_ns)
        late_ns = without_ns;
    reap_delay_count(t, late_ns, found);
    return late_ns;
}
