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
#include "time/clock.h"

/* How long what is in flight at the end of a step may take. */
#define CATCH_NS (10 * NS_PER_S)

#define READY_NS (10 * NS_PER_S)

static void *reserve_instances(void)
{
    void *memory = mmap(NULL, THREAD_INSTANCES * sizeof(struct instance), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static int open_thread(struct engine *e, uint32_t number, int cpu)
{
    struct thread *t = &e->threads[number];

    t->backend = e->backend;
    t->step = &e->step;
    t->number = number;
    t->cpu = cpu;
    t->eventfd = e->eventfd;
    t->instances = reserve_instances();
    if (!t->instances)
        return -ENOMEM;
    int result = worker_start(t);
    if (result != 0)
        munmap(t->instances, THREAD_INSTANCES * sizeof(struct instance));
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
    pthread_mutex_init(&e->collecting, NULL);
    clock_condition_init(&e->free);
    e->backend = backend;
    e->step.catch_ns = CATCH_NS;
    e->ready_ns = READY_NS;
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

static void free_thread(struct thread *t)
{
    bool held = false;

    drain_orphans(t);
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
    due_times_free(t);
    free(t->step_instances);
    free(t->shares);
    free(t->classes);
    mailbox_free(t);
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
    free(e->rooms);
    e->rooms = NULL;
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

    for (uint32_t n = 0; n < e->thread_count; n++)
        worker_end(&e->threads[n], catch_by_ns);
    for (uint32_t n = 0; n < e->thread_count; n++)
        if (!worker_join(&e->threads[n], deadline_ns))
            left[count++] = n;
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
        collect_wait(e);
        release(e);
    }
    return engine_leave(e, 0), count;
}

void engine_free(struct engine *e)
{
    if (!e->released)
        return;
    for (uint32_t n = 0; n < e->thread_count; n++)
        worker_free(&e->threads[n]);
    free(e->threads);
    if (e->eventfd >= 0)
        close(e->eventfd);
    pthread_cond_destroy(&e->free);
    pthread_mutex_destroy(&e->collecting);
    pthread_mutex_destroy(&e->lock);
    free(e);
}
