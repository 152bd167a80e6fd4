#define _GNU_SOURCE
#include "worker.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "due_times.h"
#include "drain.h"
#include "loop.h"
#include "mailbox.h"
#include "runqueue_delay.h"
#include "orphans.h"
#include "time/clock.h"
#include "ready_queue.h"

#define ORPHANS_NS (200 * NS_PER_MS)

/* What its I/Os of earlier steps still take of the queue. */
static uint32_t orphan_requests(const struct instance *i)
{
    uint32_t requests = 0;

    for (uint32_t n = 0; i->orphans && n < i->ceiling.tags; n++)
        requests += i->tags[n].orphaned ? i->tags[n].weight : 0u;
    return requests;
}

static void prepare(struct thread *t)
{
    t->cooling = false;
    t->due = t->flat_out = (struct instance_list){0};
    t->again = NULL;
    t->batch_size = t->done_count = 0;
    t->awake_until_ns = t->reap_delay_ns = t->watch_ns = t->unwatched = t->unwatched_gaps_ns = 0;
    t->runqueue_ns = runqueue_delay_ns(t->schedstat);
    t->subinterval = 0;
    t->began_ns = t->step->start_ns;
    t->end = (struct thread_end){0};
    t->running = &t->buffers[0];
    t->rows = t->running->rows;
    t->moments = t->running->moments;
    t->buckets = t->running->buckets;
    atomic_store(&t->running->state, BUFFER_RUNNING);
    atomic_store(&t->in_flight, 0);
    heap_clear(&t->heap);
    for (uint32_t n = 0; n < t->step_count; n++) {
        struct instance *i = t->step_instances[n];
        i->in_step = true;
        instance_reset(i, t->step_number, t->step->start_ns);
        i->share->in_flight += orphan_requests(i);
        i->share->room_since_ns = t->step->start_ns;
        row_of(t, i)->edit = i->edit;
        due_times_set_alarm(t, i);
    }
}

static void run_step(struct thread *t)
{
    uint64_t now_ns;
    uint32_t found = loop_run(t, &now_ns);

    atomic_store(&t->state, THREAD_STOPPING);
    drain_in_flight(t, found, now_ns);
    t->clock = (struct clock_map){0}; /* nobody corrects it between steps */
}

/* Sets a state that the commanding thread may be waiting for. The mutex is held. */
static void enter(struct thread *t, enum thread_state state)
{
    atomic_store(&t->state, state);
    pthread_cond_broadcast(&t->changed);
    thread_signal(t);
}

/* So that LUNs are let go of at once: what a ring still knew would be given back some time after it was closed, and what
 * comes back to it only this thread can fetch. A LUN that has just begun to answer again gets a moment for it. */
static void leave_context(struct thread *t)
{
    orphans_await(t, clock_now() + ORPHANS_NS);
    for (uint32_t n = 0; n < t->slots && t->context && t->backend->detach; n++)
        t->backend->detach(t->context, n);
}

/* What may take long is done with the mutex free, so that whoever waits for it can give up. */
static void do_errand(struct thread *t)
{
    pthread_mutex_unlock(&t->mutex);
    int result = t->errand(t);
    pthread_mutex_lock(&t->mutex);
    t->errand_result = result;
    atomic_store(&t->state, THREAD_WAITING);
    pthread_cond_broadcast(&t->changed);
}

static void *thread_main(void *argument)
{
    struct thread *t = argument;
    char name[16];

    /* With the default of 50 us every sleep would end that much late. */
    prctl(PR_SET_TIMERSLACK, 1);
    snprintf(name, sizeof name, "ivypy-%u", t->number);
    prctl(PR_SET_NAME, name);

    t->schedstat = runqueue_delay_open();

    pthread_mutex_lock(&t->mutex);
    for (;;) {
        if (mailbox_has(t))
            mailbox_take(t, clock_now(), false);
        if (atomic_load(&t->exit_by_ns))
            break;
        if (atomic_load(&t->state) == THREAD_ERRAND) {
            do_errand(t);
            continue;
        }
        if (atomic_load(&t->state) != THREAD_STARTING) {
            pthread_cond_wait(&t->changed, &t->mutex);
            continue;
        }
        prepare(t);
        enter(t, THREAD_RUNNING);
        pthread_mutex_unlock(&t->mutex);
        run_step(t);
        pthread_mutex_lock(&t->mutex);
        if (t->dead)
            break;
        enter(t, THREAD_WAITING);
    }
    pthread_mutex_unlock(&t->mutex);
    leave_context(t);
    runqueue_delay_close(t->schedstat);
    pthread_mutex_lock(&t->mutex);
    enter(t, t->dead ? THREAD_DIED : THREAD_EXITED);
    pthread_mutex_unlock(&t->mutex);
    return NULL;
}

/* No signal is for a workload thread: one would end its waits early. */
static int create_without_signals(struct thread *t, const pthread_attr_t *attributes)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&t->pthread, attributes, thread_main, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

int worker_start(struct thread *t)
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
