/* Opening and closing an engine: its threads, and all that they used, once they have ended. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "commands.h"
#include "result.h"
#include "thread/worker.h"
#include "thread/orphans.h"
#include "thread/ready_queue.h"
#include "time/clock.h"

/* How long what is in flight at the end of a step may take. */
#define CATCH_NS (10 * NS_PER_S)

/* How long a thread may take for an errand: locking gigabytes of buffers in memory takes a second. */
#define ERRAND_NS (60 * NS_PER_S)

static void *reserve_instances(void)
{
    void *memory = mmap(NULL, THREAD_INSTANCES * sizeof(struct instance), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

/* With deadlines by the clock that stamps everything else. */
static void make_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

static int open_thread(struct engine *e, uint32_t number, int cpu)
{
    struct thread *t = &e->threads[number];

    t->backend = e->backend;
    t->step = &e->step;
    t->number = number;
    t->cpu = cpu;
    t->eventfd = e->eventfd;
    t->errand_limit_ns = ERRAND_NS;
    t->instances = reserve_instances();
    if (!t->instances)
        return -ENOMEM;
    pthread_mutex_init(&t->mutex, NULL);
    make_condition(&t->changed);
    int result = worker_start(t);
    if (result != 0) {
        munmap(t->instances, THREAD_INSTANCES * sizeof(struct instance));
        pthread_cond_destroy(&t->changed);
        pthread_mutex_destroy(&t->mutex);
    }
    return result;
}

int engine_open(struct engine **engine, const struct backend *backend, const int *cpus, uint32_t count)
{
    struct engine *e = calloc(1, sizeof *e);
    uint32_t left[ENGINE_THREADS];
    int result = 0;

    if (!e)
        return -ENOMEM;
    pthread_mutex_init(&e->lock, NULL);
    make_condition(&e->free);
    e->backend = backend;
    e->step.catch_ns = CATCH_NS;
    e->counted = tsc_trusted();
    engine_anchor(e); /* so that the rate is known when a step begins */
    e->threads = aligned_alloc(64, (count * sizeof *e->threads + 63) / 64 * 64);
    e->eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (!e->threads || e->eventfd < 0)
        result = e->threads ? -errno : -ENOMEM;
    else
        memset(e->threads, 0, count * sizeof *e->threads);
    while (result == 0 && e->thread_count < count) {
        result = open_thread(e, e->thread_count, cpus[e->thread_count]);
        e->thread_count += result == 0;
    }
    if (result != 0) {
        engine_close(e, 10.0, left);
        engine_free(e);
        return result;
    }
    *engine = e;
    return 0;
}

static uint64_t deadline_after(double timeout_s)
{
    return clock_now() + (uint64_t)(timeout_s * (double)NS_PER_S);
}

static bool thread_gone(const struct thread *t)
{
    uint32_t state = atomic_load(&t->state);

    return state == THREAD_EXITED || state == THREAD_DIED;
}

/* False at the deadline. The mutex is held. */
static bool wait_until_gone(struct thread *t, uint64_t deadline_ns)
{
    struct timespec deadline = clock_timespec(deadline_ns);

    while (!thread_gone(t))
        if (pthread_cond_timedwait(&t->changed, &t->mutex, &deadline) == ETIMEDOUT)
            return thread_gone(t);
    return true;
}

static void free_thread(struct thread *t)
{
    bool held = false;

    orphans_reap(t);
    for (uint32_t n = 0; n < t->slots; n++)
        if (t->instances[n].lun)
            held |= t->instances[n].orphans > 0;
    /* What the kernel may still write into stays, until the process ends; so does a context whose end would be waited
     * for. */
    if (!held) {
        for (uint32_t n = 0; n < t->slots; n++)
            if (t->instances[n].lun)
                instance_destroy(&t->instances[n]);
        munmap(t->instances, THREAD_INSTANCES * sizeof(struct instance));
        if (t->context)
            t->backend->close(t->context);
    }
    buffer_free(&t->buffers[0]);
    buffer_free(&t->buffers[1]);
    heap_free(&t->heap);
    free(t->step_instances);
    free(t->shares);
    free(t->classes);
    free(t->mailbox.posts);
    t->slots = 0;
}

/* All that the threads used, once they have ended. */
static void release(struct engine *e)
{
    for (uint32_t n = 0; n < e->thread_count; n++)
        free_thread(&e->threads[n]);
    for (uint32_t n = 0; n < e->lun_count; n++)
        if (e->luns[n]) {
            lun_close(e->luns[n]);
            free(e->luns[n]);
        }
    collector_free(&e->collector);
    free(e->luns);
    free(e->by_number);
    e->luns = NULL;
    e->by_number = NULL;
    e->lun_count = e->number_count = 0;
    e->released = true;
}

/* Nobody steers or collects any more what is released. */
static void end_step(struct engine *e)
{
    engine_hold(e);
    e->in_step = false;
    engine_let_go(e);
}

/* Has every thread end by `deadline_ns`, and waits for it. The turn is ours. */
static uint32_t end_threads(struct engine *e, uint64_t catch_by_ns, uint64_t deadline_ns, uint32_t *left)
{
    uint32_t count = 0;

    for (uint32_t n = 0; n < e->thread_count; n++) {
        struct thread *t = &e->threads[n];
        pthread_mutex_lock(&t->mutex);
        atomic_store(&t->exit_by_ns, catch_by_ns);
        pthread_cond_broadcast(&t->changed);
        pthread_mutex_unlock(&t->mutex);
    }
    for (uint32_t n = 0; n < e->thread_count; n++) {
        struct thread *t = &e->threads[n];
        if (t->joined)
            continue;
        pthread_mutex_lock(&t->mutex);
        bool gone = wait_until_gone(t, deadline_ns);
        pthread_mutex_unlock(&t->mutex);
        /* Its last act was to say so: the join is immediate. */
        if (gone && pthread_join(t->pthread, NULL) == 0)
            t->joined = true;
        else
            left[count++] = n;
    }
    return count;
}

uint32_t engine_close(struct engine *e, double timeout_s, uint32_t *left)
{
    uint64_t deadline_ns = deadline_after(timeout_s), catch_by_ns = deadline_after(timeout_s * 0.8);

    engine_halt(e);
    if (!engine_enter_by(e, deadline_ns)) {
        for (uint32_t n = 0; n < e->thread_count; n++)
            left[n] = n;
        return e->thread_count;
    }
    engine_halt(e); /* what began while we waited */
    uint32_t count = end_threads(e, catch_by_ns, deadline_ns, left);
    e->closed = true;
    if (count == 0 && !e->released) {
        end_step(e);
        release(e);
    }
    return engine_leave(e, 0), count;
}

void engine_free(struct engine *e)
{
    if (!e->released)
        return;
    for (uint32_t n = 0; n < e->thread_count; n++) {
        pthread_cond_destroy(&e->threads[n].changed);
        pthread_mutex_destroy(&e->threads[n].mutex);
    }
    free(e->threads);
    if (e->eventfd >= 0)
        close(e->eventfd);
    pthread_cond_destroy(&e->free);
    pthread_mutex_destroy(&e->lock);
    free(e);
}
