#include "late.h"

#include "queued.h"
#include "time/clock.h"

/* Since the last reading. */
static uint64_t without_core(struct thread *t)
{
    uint64_t before_ns = t->queued_ns;

    t->queued_ns = queued_ns(t->queued);
    return t->queued_ns > before_ns ? t->queued_ns - before_ns : 0;
}

void late_sleeps(struct thread *t, uint64_t now_ns)
{
    t->watched = now_ns >= t->watch_ns && atomic_load_explicit(&t->in_flight, memory_order_relaxed) > 0;
    if (!t->watched)
        return;
    t->watch_ns = now_ns + LATE_WATCH_NS;
    t->queued_ns = queued_ns(t->queued);
}

uint64_t late_slept(struct thread *t, uint32_t found, uint64_t gap_ns)
{
    uint64_t late_ns;

    if (found == 0)
        return 0;
    if (!t->watched && gap_ns < LATE_WATCH_NS) {
        t->unwatched += found;
        t->unwatched_gaps_ns += found * gap_ns;
        return 0;
    }
    late_ns = earlier(without_core(t), gap_ns);
    late_count(t, late_ns, found);
    if (t->watched && t->unwatched) {
        late_count(t, earlier(late_ns, t->unwatched_gaps_ns / t->unwatched), t->unwatched);
        t->unwatched = t->unwatched_gaps_ns = 0;
    }
    return late_ns;
}

/* Perhaps in the submit call, which then is not the kernel's work alone. */
uint64_t late_put_aside(struct thread *t, uint32_t found, uint64_t gap_ns, uint64_t in_submit_ns)
{
    uint64_t without_ns = earlier(without_core(t), gap_ns), late_ns = gap_ns - in_submit_ns;

    if (without_ns > late_ns)
        late_ns = without_ns;
    late_count(t, late_ns, found);
    return late_ns;
}
