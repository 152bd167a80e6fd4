/* Commands and questions while a step runs. They change or read what nobody holds for longer than a moment. */
#include <stdio.h>

#include "commands.h"
#include "time/clock.h"

/* How much later than it should a thread may come back, before it counts as held by the kernel; from when somebody
 * noticed on: a machine, or a process, that stood still meanwhile held them all, and the last result is yet to come. */
#define HELD_NS NS_PER_S

void engine_place_boundary(struct engine *e, uint32_t subinterval, uint64_t boundary_ns)
{
    engine_hold(e);
    if (e->in_step)
        step_place(&e->step, subinterval, boundary_ns, clock_now());
    engine_let_go(e);
}

void engine_cooldown(struct engine *e, uint32_t subinterval)
{
    engine_hold(e);
    atomic_store_explicit(&e->step.cooldown_from, subinterval, memory_order_release);
    step_call(&e->step);
    engine_let_go(e);
}

void engine_stop(struct engine *e, uint32_t last)
{
    engine_hold(e);
    atomic_store_explicit(&e->step.stop_after, last, memory_order_release);
    engine_let_go(e);
}

void engine_halt(struct engine *e)
{
    engine_hold(e);
    uint64_t now_ns = clock_now();
    e->halted = true;
    if (e->in_step)
        step_cut(&e->step, END_COMMANDED, now_ns, now_ns);
    engine_let_go(e);
}

void engine_set_lease(struct engine *e, uint64_t until_ns)
{
    atomic_store_explicit(&e->step.lease_ns, until_ns, memory_order_release);
    step_call(&e->step);
}

static void add_end(struct drain *sums, const struct drain *end)
{
    sums->caught += end->caught;
    sums->failed += end->failed;
    sums->uncaught += end->uncaught;
    sums->dropped += end->dropped;
    if (end->oldest_uncaught_ns > sums->oldest_uncaught_ns)
        sums->oldest_uncaught_ns = end->oldest_uncaught_ns;
    if (end->longest_caught_ns > sums->longest_caught_ns)
        sums->longest_caught_ns = end->longest_caught_ns;
}

static uint64_t thread_oldest(const struct thread *t, uint64_t now_ns)
{
    uint64_t oldest_ns = 0;

    for (uint32_t n = 0; n < t->slots; n++) {
        uint64_t submit_ns = atomic_load_explicit(&t->instances[n].oldest_submit_ns, memory_order_relaxed);
        if (submit_ns && submit_ns < now_ns && now_ns - submit_ns > oldest_ns)
            oldest_ns = now_ns - submit_ns;
    }
    return oldest_ns;
}

static bool thread_finished(const struct thread *t)
{
    return worker_state(&t->worker) == THREAD_WAITING || worker_gone(&t->worker);
}

static bool overdue(struct engine *e, uint64_t now_ns, uint64_t ended_ns)
{
    if (now_ns <= ended_ns + e->step.catch_ns)
        return false;
    if (e->overdue_ns == 0)
        e->overdue_ns = now_ns;
    return now_ns > e->overdue_ns + HELD_NS;
}

static int ended(struct engine *e, struct end *end)
{
    uint64_t now_ns = clock_now(), ended_ns = atomic_load(&e->step.ended_ns);
    bool all = true;

    if (!e->in_step || e->abandoned || ended_ns == 0)
        return 0;
    for (uint32_t n = 0; n < e->thread_count; n++)
        all &= thread_finished(&e->threads[n]);
    if (!(all && e->collector.last) && !overdue(e, now_ns, ended_ns))
        return 0;
    *end = (struct end){.reason = (enum end_reason)atomic_load(&e->step.reason)};
    for (uint32_t n = 0; n < e->thread_count; n++) {
        struct thread *t = &e->threads[n];
        /* One that is held has its own figures still in its hands. */
        struct drain held = {.uncaught = in_flight_count(&t->in_flight),
                             .oldest_uncaught_ns = thread_oldest(t, now_ns)};
        add_end(&end->sums, thread_finished(t) ? &t->drain : &held);
    }
    e->in_step = false;
    return 1;
}

int engine_ended(struct engine *e, struct end *end)
{
    engine_hold(e);
    int result = ended(e, end);
    engine_let_go(e);
    return result;
}

static struct thread *unreported(struct engine *e)
{
    for (uint32_t n = 0; n < e->thread_count; n++)
        if (worker_state(&e->threads[n].worker) == THREAD_DIED && !e->threads[n].words_reported)
            return &e->threads[n];
    return NULL;
}

bool engine_dying_words(struct engine *e, uint32_t *thread, char *words, size_t size)
{
    engine_hold(e);
    struct thread *t = unreported(e);
    if (t) {
        t->words_reported = true;
        *thread = t->number;
        snprintf(words, size, "%s", t->words);
    }
    engine_let_go(e);
    return t != NULL;
}
