#define _GNU_SOURCE
#include "thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "clock.h"
#include "context.h"
#include "queued.h"

#define STRAYS_NS (200 * NS_PER_MS)

void thread_signal(struct thread *t)
{
    uint64_t one = 1;

    /* EAGAIN means that the counter is full, so that the reader will wake up anyway. */
    if (write(t->eventfd, &one, sizeof one) < 0)
        return;
}

void thread_die(struct thread *t, const char *format, ...)
{
    va_list arguments;

    if (t->dead)
        return;
    va_start(arguments, format);
    vsnprintf(t->words, sizeof t->words, format, arguments);
    va_end(arguments);
    t->dead = true;
    uint64_t now_ns = thread_now(t);
    step_cut(t->step, END_DIED, now_ns, now_ns);
}

/* A new rate for an instance in mid-step: what is overdue stays owed as it was. */
static void retime(struct thread *t, struct instance *i, double iops, uint64_t now_ns)
{
    uint64_t start_ns = t->step->start_ns;

    pacer_retime(&i->pacer, iops, now_ns > start_ns ? now_ns : start_ns);
    i->flat_out = iops < 0.0;
    loop_set_alarm(t, i);
}

static void apply(struct thread *t, struct instance *i, const struct setting *setting, uint64_t now_ns)
{
    double old_iops = i->parameters.setting.iops;

    instance_set(i, setting);
    i->edit = t->mailbox.edit;
    if (!i->in_step)
        return;
    row_of(t, i)->edit = i->edit;
    if (i->in_flight >= i->maxtags)
        i->tag_since_ns = now_ns;
    i->maxtags = setting->maxtags;
    if (setting->iops != old_iops && !t->cooling)
        retime(t, i, setting->iops, now_ns);
    submit_enqueue(t, i);
}

void thread_take_mail(struct thread *t, uint64_t now_ns, bool in_step)
{
    struct mailbox *m = &t->mailbox;
    uint32_t posted = atomic_load_explicit(&m->posted, memory_order_acquire);

    for (uint32_t n = 0; n < m->count; n++) {
        struct instance *i = &t->instances[m->posts[n].slot];
        if (in_step) {
            apply(t, i, &m->posts[n].setting, now_ns);
        } else {
            instance_set(i, &m->posts[n].setting);
            i->edit = m->edit;
        }
    }
    /* Not now_ns, the pass's stamp: a thread that was put aside since would seem to have known before it was told. */
    atomic_store_explicit(&m->taken_ns, thread_now(t), memory_order_relaxed);
    atomic_store_explicit(&m->taken, posted, memory_order_release);
    thread_signal(t);
}

static bool has_mail(const struct thread *t)
{
    return atomic_load_explicit(&t->mailbox.posted, memory_order_acquire) !=
           atomic_load_explicit(&t->mailbox.taken, memory_order_relaxed);
}

/* One that was in flight at the end of the step came back, with or without success. */
static void catch_one(struct thread *t, struct tag *tag, uint64_t now_ns)
{
    struct instance *i = tag->instance;

    if (tag->stray) {
        tag->stray = false;
        i->strays--;
        return;
    }
    if (now_ns - tag->submit_ns > t->end.longest_caught_ns)
        t->end.longest_caught_ns = now_ns - tag->submit_ns;
    t->end.caught++;
    tag->fresh = false;
    atomic_store_explicit(&t->in_flight, atomic_load_explicit(&t->in_flight, memory_order_relaxed) - 1,
                          memory_order_relaxed);
    land(i, tag);
    atomic_store_explicit(&i->oldest_submit_ns, i->flying.first ? i->flying.first->submit_ns : 0,
                          memory_order_relaxed);
}

/* What the kernel gave back and was not submitted again is not in flight. */
static void give_up_again(struct thread *t)
{
    for (struct share *s = t->again; s; s = s->next_listed)
        for (struct tag *tag = s->again_first; tag; tag = tag->next_again) {
            land(tag->instance, tag);
            add_in_flight(t, (uint32_t)-1);
            t->end.dropped++;
        }
    t->again = NULL;
}

static uint64_t catch_until(const struct thread *t, uint64_t end_ns)
{
    uint64_t exit_by_ns = atomic_load_explicit(&t->exit_by_ns, memory_order_acquire);
    uint64_t until_ns = end_ns + t->step->catch_ns;

    return exit_by_ns && exit_by_ns < until_ns ? exit_by_ns : until_ns;
}

/* Waits for what is in flight, for a bounded time. The completions of the loop's last look come first. */
static void catch_in_flight(struct thread *t, uint32_t found, uint64_t now_ns)
{
    uint64_t end_ns = now_ns;

    for (;;) {
        for (uint32_t n = 0; n < found; n++)
            catch_one(t, t->completions[n].tag, now_ns);
        if (has_mail(t))
            thread_take_mail(t, now_ns, false);
        if (atomic_load_explicit(&t->in_flight, memory_order_relaxed) == 0 || t->dead ||
            now_ns >= catch_until(t, end_ns))
            break;
        int result = t->backend->wait(t->context, THREAD_LONGEST_WAIT_NS, t->completions, THREAD_HARVEST);
        now_ns = thread_now(t);
        if (result < 0)
            thread_die(t, "the kernel refused to tell what has completed: %s", strerror(-result));
        found = result > 0 ? (uint32_t)result : 0;
    }
}

/* What did not come back keeps its tag and its memory until it does, in whatever step. */
static void count_uncaught(struct thread *t, uint64_t now_ns)
{
    for (uint32_t n = 0; n < t->step_count; n++) {
        struct instance *i = t->step_instances[n];
        if (i->flying.first && now_ns - i->flying.first->submit_ns > t->end.oldest_uncaught_ns)
            t->end.oldest_uncaught_ns = now_ns - i->flying.first->submit_ns;
        for (struct tag *tag = i->flying.first; tag; tag = tag->next) {
            tag->stray = true;
            i->strays++;
            t->end.uncaught++;
        }
        t->end.dropped += i->pacer.backlog;
        i->flying = (struct tag_list){0};
        i->in_step = false;
    }
    atomic_store_explicit(&t->in_flight, 0, memory_order_relaxed);
}

/* What its I/Os of earlier steps still take of the queue. */
static uint32_t stray_requests(const struct instance *i)
{
    uint32_t requests = 0;

    for (uint32_t n = 0; i->strays && n < i->ceiling.tags; n++)
        requests += i->tags[n].stray ? i->tags[n].weight : 0u;
    return requests;
}

static void prepare(struct thread *t)
{
    t->cooling = false;
    t->due = t->flat_out = (struct instance_list){0};
    t->again = NULL;
    t->batch_size = t->done_count = 0;
    t->awake_until_ns = t->watch_ns = t->unwatched = 0;
    t->queued_ns = queued_ns(t->queued);
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
        i->share->in_flight += stray_requests(i);
        i->share->room_since_ns = t->step->start_ns;
        row_of(t, i)->edit = i->edit;
        loop_set_alarm(t, i);
    }
}

static void run_step(struct thread *t)
{
    uint64_t now_ns;
    uint32_t found = loop_run(t, &now_ns);

    atomic_store(&t->state, THREAD_STOPPING);
    give_up_again(t);
    catch_in_flight(t, found, now_ns);
    count_uncaught(t, thread_now(t));
    t->clock = (struct line){0}; /* nobody corrects it between steps */
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
    context_await_strays(t, clock_now() + STRAYS_NS);
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

    t->queued = queued_open();

    pthread_mutex_lock(&t->mutex);
    for (;;) {
        if (has_mail(t))
            thread_take_mail(t, clock_now(), false);
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
    queued_close(t->queued);
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

int thread_start(struct thread *t)
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
