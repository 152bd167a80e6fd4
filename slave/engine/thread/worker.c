#define _GNU_SOURCE
#include "worker.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "thread.h"

/* How long an errand may take without progress: locking a gigabyte of buffers in memory takes a second. */
#define ERRAND_NS (60 * NS_PER_S)

#define ORPHANS_NS (200 * NS_PER_MS)

/* What its I/Os of earlier steps still take of the queue. */
static uint32_t orphan_requests(const struct instance *i)
{
    uint32_t requests = 0;

    for (uint32_t n = 0; i->orphans && n < i->ceiling.tags; n++)
        requests += i->tags[n].filed_as == FILED_AS_ORPHAN ? i->tags[n].weight : 0u;
    return requests;
}

static void prepare(struct thread *t)
{
    boundary_start(t);
    clock_guard_start(t);
    due_times_clear(t);
    ready_queue_reset(t);
    skew_start(t);
    submit_start(t);
    in_flight_reset(&t->in_flight);
    reap_start(t);
    reap_delay_start(t);
    idle_start(t);
    drain_start(t);
    for (uint32_t n = 0; n < t->step_count; n++) {
        struct instance *i = t->step_instances[n];
        i->in_step = i->parameters.fixed.until.what == ENDS_NEVER ? IN_STEP : IN_STEP_UNTIL;
        instance_reset(i, t->step_number, t->step->start_ns);
        i->share->in_flight += orphan_requests(i);
        i->share->room_since_ns = t->step->start_ns;
        ready_queue_join(i);
        row_of(t, i)->edit = i->edit;
        due_times_set_alarm(t, i);
    }
}

static void run_step(struct thread *t)
{
    uint64_t now_ns;
    uint32_t found = loop_run(t, &now_ns);

    atomic_store(&t->worker.state, THREAD_STOPPING);
    drain_in_flight(t, found, now_ns);
    boundary_leave_clock(t);
}

/* Sets a state that the commanding thread may be waiting for. The mutex is held. */
static void enter(struct thread *t, enum thread_state state)
{
    atomic_store(&t->worker.state, state);
    pthread_cond_broadcast(&t->worker.changed);
    thread_signal(t);
}

/* So that LUNs are let go of at once: what a ring still knew would be given back some time after it was closed, and
 * what comes back to it only this thread can fetch. A LUN that has just begun to answer again gets a moment for it. */
static void leave_context(struct thread *t)
{
    drain_await_orphans(t, clock_now() + ORPHANS_NS);
    for (uint32_t n = 0; n < t->slots && t->context && t->backend->detach; n++)
        t->backend->detach(t->context, n);
}

/* What may take long is done with the mutex free, so that whoever waits for it can give up. */
static void do_errand(struct thread *t)
{
    pthread_mutex_unlock(&t->worker.mutex);
    int result = t->worker.errand(t);
    pthread_mutex_lock(&t->worker.mutex);
    t->worker.errand_result = result;
    atomic_store(&t->worker.state, THREAD_WAITING);
    pthread_cond_broadcast(&t->worker.changed);
}

static void *thread_main(void *argument)
{
    struct thread *t = argument;
    char name[16];

    /* With the default of 50 us every sleep would end that much late. */
    prctl(PR_SET_TIMERSLACK, 1);
    snprintf(name, sizeof name, "ivypy-%u", t->number);
    prctl(PR_SET_NAME, name);

    reap_delay_open(t);
    idle_open(t);

    pthread_mutex_lock(&t->worker.mutex);
    for (;;) {
        if (mailbox_has(&t->mailbox))
            mailbox_take(t, clock_now(), false);
        if (atomic_load(&t->worker.exit_by_ns))
            break;
        if (atomic_load(&t->worker.state) == THREAD_ERRAND) {
            do_errand(t);
            continue;
        }
        if (atomic_load(&t->worker.state) != THREAD_STARTING) {
            pthread_cond_wait(&t->worker.changed, &t->worker.mutex);
            continue;
        }
        prepare(t);
        enter(t, THREAD_RUNNING);
        pthread_mutex_unlock(&t->worker.mutex);
        run_step(t);
        pthread_mutex_lock(&t->worker.mutex);
        if (t->dead)
            break;
        enter(t, THREAD_WAITING);
    }
    pthread_mutex_unlock(&t->worker.mutex);
    leave_context(t);
    reap_delay_close(t);
    pthread_mutex_lock(&t->worker.mutex);
    enter(t, t->dead ? THREAD_DIED : THREAD_EXITED);
    pthread_mutex_unlock(&t->worker.mutex);
    return NULL;
}

/* No signal is for a workload thread: one would end its waits early. */
static int create_without_signals(struct thread *t, const pthread_attr_t *attributes)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&t->worker.pthread, attributes, thread_main, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

static int create_pinned(struct thread *t)
{
    pthread_attr_t attributes;
    cpu_set_t cpus;
    int result = 0;

    pthread_attr_init(&attributes);
    if (t->cpu >= 0) {
        CPU_ZERO(&cpus);
        if (t->cpu < CPU_SETSIZE)
            CPU_SET((size_t)t->cpu, &cpus);
        result = -pthread_attr_setaffinity_np(&attributes, sizeof cpus, &cpus);
    }
    if (result == 0)
        result = create_without_signals(t, &attributes);
    pthread_attr_destroy(&attributes);
    return result;
}

int worker_start(struct thread *t)
{
    t->worker.errand_limit_ns = ERRAND_NS;
    pthread_mutex_init(&t->worker.mutex, NULL);
    clock_condition_init(&t->worker.changed);
    int result = create_pinned(t);
    if (result != 0)
        worker_free(t);
    return result;
}

/* Has it look at its state. */
static void set_state(struct thread *t, enum thread_state state)
{
    atomic_store(&t->worker.state, state);
    pthread_cond_broadcast(&t->worker.changed);
}

void worker_post(struct thread *t, int (*errand)(struct thread *t), uint32_t argument)
{
    struct worker *w = &t->worker;

    pthread_mutex_lock(&w->mutex);
    w->errand = errand;
    w->errand_argument = argument;
    w->errand_why = NULL;
    set_state(t, THREAD_ERRAND);
    pthread_mutex_unlock(&w->mutex);
}

/* Until it has done its errand, or made no progress for as long as it may. The mutex is held. */
static void await_errand(struct worker *w)
{
    uint64_t seen;
    int error;

    do {
        struct timespec deadline = clock_timespec(clock_now() + w->errand_limit_ns);
        seen = atomic_load_explicit(&w->progress, memory_order_relaxed);
        error = 0;
        while (worker_state(w) == THREAD_ERRAND && error == 0)
            error = pthread_cond_timedwait(&w->changed, &w->mutex, &deadline);
    } while (worker_state(w) == THREAD_ERRAND && seen != atomic_load_explicit(&w->progress, memory_order_relaxed));
}

int worker_await(struct thread *t)
{
    struct worker *w = &t->worker;

    pthread_mutex_lock(&w->mutex);
    await_errand(w);
    int result = worker_state(w) == THREAD_ERRAND ? -ETIMEDOUT : w->errand_result;
    pthread_mutex_unlock(&w->mutex);
    return result;
}

void worker_explain(struct thread *t, const char *why)
{
    t->worker.errand_why = why;
}

int worker_do(struct thread *t, int (*errand)(struct thread *t), uint32_t argument)
{
    worker_post(t, errand, argument);
    return worker_await(t);
}

void worker_begin(struct thread *t)
{
    pthread_mutex_lock(&t->worker.mutex);
    set_state(t, THREAD_STARTING);
    pthread_mutex_unlock(&t->worker.mutex);
}

int worker_await_begin(struct thread *t, uint64_t deadline_ns)
{
    struct timespec deadline = clock_timespec(deadline_ns);
    int error = 0;

    pthread_mutex_lock(&t->worker.mutex);
    while (worker_state(&t->worker) == THREAD_STARTING && error == 0)
        error = pthread_cond_timedwait(&t->worker.changed, &t->worker.mutex, &deadline);
    pthread_mutex_unlock(&t->worker.mutex);
    return error;
}

void worker_wake(struct thread *t)
{
    pthread_mutex_lock(&t->worker.mutex);
    pthread_cond_broadcast(&t->worker.changed);
    pthread_mutex_unlock(&t->worker.mutex);
}

void worker_end(struct thread *t, uint64_t catch_by_ns)
{
    pthread_mutex_lock(&t->worker.mutex);
    atomic_store(&t->worker.exit_by_ns, catch_by_ns);
    pthread_cond_broadcast(&t->worker.changed);
    pthread_mutex_unlock(&t->worker.mutex);
}

bool worker_join(struct thread *t, uint64_t deadline_ns)
{
    struct worker *w = &t->worker;
    struct timespec deadline = clock_timespec(deadline_ns);
    int error = 0;

    if (w->joined)
        return true;
    pthread_mutex_lock(&w->mutex);
    while (!worker_gone(w) && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&w->changed, &w->mutex, &deadline);
    bool gone = worker_gone(w);
    pthread_mutex_unlock(&w->mutex);
    w->joined = gone && pthread_join(w->pthread, NULL) == 0; /* its last act was to say so: the join is immediate */
    return w->joined;
}

void worker_free(struct thread *t)
{
    pthread_cond_destroy(&t->worker.changed);
    pthread_mutex_destroy(&t->worker.mutex);
}
