/* go: what each thread will do in the step, its share of the kernel's queues, its buffers; then all start. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "result.h"
#include "time/clock.h"

static int check_roster(struct engine *e, const struct roster *r)
{
    for (uint32_t n = 0; n < r->count; n++) {
        struct instance *i = engine_instance(e, r->order[n]);
        if (!i)
            return engine_refuse(e, ENOENT, "go names workload instance %u, which does not exist", r->order[n]);
        if (r->classes[n] >= r->count)
            return engine_refuse(e, EINVAL, "go names merge class %u; %u instances have at most as many classes",
                                 r->classes[n], r->count);
        if (r->rows[n] >= r->count)
            return engine_refuse(e, EINVAL, "go names row %u; %u instances have at most as many rows", r->rows[n],
                                 r->count);
        if (i->class != STEP_NEVER)
            return engine_refuse(e, EINVAL, "go names workload instance %u twice", r->order[n]);
        i->class = r->classes[n];
        i->order = n;
    }
    return 0;
}

/* One more than the highest. */
static uint32_t count_of(const uint32_t *places, uint32_t count)
{
    uint32_t found = 0;

    for (uint32_t n = 0; n < count; n++)
        if (places[n] >= found)
            found = places[n] + 1;
    return found;
}

static void forget_order(struct engine *e)
{
    for (uint32_t n = 0; n < e->number_count; n++)
        if (e->by_number[n])
            e->by_number[n]->class = STEP_NEVER;
}

/* The thread's instances of the step, its merge classes, and the series where each of its instances records. */
static int deal(struct thread *t, uint32_t classes, uint32_t sections)
{
    uint32_t *local = malloc((classes + 1u) * sizeof *local);
    struct instance **instances = realloc(t->step_instances, (t->slots + 1u) * sizeof(struct instance *));

    if (instances)
        t->step_instances = instances;
    uint32_t *seen = realloc(t->classes, (classes + 1u) * sizeof *seen);
    if (seen)
        t->classes = seen;
    if (!local || !instances || !seen) {
        free(local);
        return -ENOMEM;
    }
    memset(local, 0xff, (classes + 1u) * sizeof *local);
    t->step_count = t->classes_count = 0;
    t->sections = sections;
    for (uint32_t n = 0; n < t->slots; n++) {
        struct instance *i = &t->instances[n];
        if (!i->lun || i->class == STEP_NEVER)
            continue;
        if (local[i->class] == UINT32_MAX) {
            local[i->class] = t->classes_count;
            t->classes[t->classes_count++] = i->class;
        }
        i->series = local[i->class] * SERIES;
        instance_set_sections(i, sections);
        t->step_instances[t->step_count++] = i;
    }
    free(local);
    return 0;
}

/* The thread's errand; also its buffers lie on its own node then. */
static int prepare_step(struct thread *t)
{
    uint32_t series = t->classes_count * SERIES;
    int result = context_prepare_here(t);

    for (int n = 0; n < 2 && result == 0; n++) {
        result = buffer_init(&t->buffers[n], t->slots, series, t->sections);
        t->buffers[n].anchor = (struct clock_map){0};
        atomic_store(&t->buffers[n].state, BUFFER_READY_TO_RUN);
    }
    due_times_free(t);
    if (result == 0)
        result = due_times_init(t, t->slots);
    boundary_reset(t);
    return result;
}

/* Nobody will ask how this step ended. */
static void abandon(struct engine *e)
{
    engine_hold(e);
    e->abandoned = true;
    engine_let_go(e);
}

/* All threads at once; then waits until each of them runs. */
static int start_threads(struct engine *e)
{
    uint64_t deadline_ns = clock_now() + e->ready_ns;
    struct clock_map anchor = engine_anchor(e);

    for (uint32_t n = 0; n < e->thread_count; n++) {
        boundary_set_clock(&e->threads[n], anchor);
        worker_begin(&e->threads[n]);
    }
    for (uint32_t n = 0; n < e->thread_count; n++) {
        int error = worker_await_begin(&e->threads[n], deadline_ns);
        if (error) {
            engine_halt(e);
            abandon(e);
            return engine_refuse(e, error, "workload thread %u is not ready after %g s", n,
                                 (double)e->ready_ns / (double)NS_PER_S);
        }
    }
    return 0;
}

static void forget_halts(struct engine *e)
{
    engine_hold(e);
    e->halted = false;
    engine_let_go(e);
}

/* From here on it can be steered; what was halted before it began ends as it begins. */
static void begin(struct engine *e, uint64_t start_ns, uint64_t length_ns)
{
    uint64_t now_ns = clock_now();

    engine_hold(e);
    step_init(&e->step, start_ns, length_ns);
    e->in_step = true;
    e->overdue_ns = 0;
    if (e->halted)
        step_cut(&e->step, END_COMMANDED, now_ns, now_ns);
    engine_let_go(e);
}

static int prepare_engine(struct engine *e, uint64_t start_ns, const struct roster *roster)
{
    uint32_t classes = count_of(roster->classes, roster->count);
    int result = 0;

    for (uint32_t n = 0; n < e->thread_count && result == 0; n++)
        result = deal(&e->threads[n], classes, roster->sections);
    if (result == 0)
        result = queue_shares_settle(e);
    e->steps++;
    for (uint32_t n = 0; n < e->thread_count; n++)
        e->threads[n].step_number = e->steps;
    if (result == 0)
        result = context_prepare_all(e, prepare_step);
    if (result == 0)
        result = collector_init(&e->collector, roster, count_of(roster->rows, roster->count), classes, start_ns);
    return result;
}

static int go(struct engine *e, uint64_t start_ns, uint64_t length_ns, const struct roster *roster)
{
    int result = engine_must_be_idle(e);

    if (result != 0)
        return result;
    forget_halts(e);
    if (length_ns < NS_PER_MS)
        return engine_refuse(e, EINVAL, "a subinterval is at least 1 ms long");
    forget_order(e);
    result = check_roster(e, roster);
    if (result != 0)
        return result;
    collect_wait(e); /* of the last step, perhaps */
    result = prepare_engine(e, start_ns, roster);
    if (result != 0)
        return result;
    begin(e, start_ns, length_ns);
    return start_threads(e);
}

int engine_go(struct engine *e, uint64_t start_ns, uint64_t length_ns, const struct roster *roster)
{
    engine_enter(e);
    return engine_leave(e, go(e, start_ns, length_ns, roster));
}
