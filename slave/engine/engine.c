#define _GNU_SOURCE
#include "engine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "context.h"
#include "result.h"

/* How long what is in flight at the end of a step may take; and how much later a thread that is not back is held by the
 * kernel. */
#define CATCH_NS (10 * NS_PER_S)
#define HELD_NS NS_PER_S

/* How long go waits for the threads, which only have to wake up. */
#define READY_S 10

const char *engine_why(struct engine *e)
{
    return e->why;
}

int engine_refuse(struct engine *e, int error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(e->why, sizeof e->why, format, arguments);
    va_end(arguments);
    return -error;
}

static void enter(struct engine *e)
{
    pthread_mutex_lock(&e->lock);
    e->why[0] = '\0';
}

static int leave(struct engine *e, int result)
{
    pthread_mutex_unlock(&e->lock);
    return result;
}

/* Opening and closing. */

static void *reserve_instances(void)
{
    void *memory = mmap(NULL, THREAD_INSTANCES * sizeof(struct instance), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static int open_thread(struct engine *e, uint32_t number, int cpu)
{
    struct thread *t = &e->threads[number];
    pthread_condattr_t attributes;

    t->backend = e->backend;
    t->step = &e->step;
    t->number = number;
    t->cpu = cpu;
    t->eventfd = e->eventfd;
    t->instances = reserve_instances();
    if (!t->instances)
        return -ENOMEM;
    pthread_mutex_init(&t->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&t->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    int result = thread_start(t);
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
    e->backend = backend;
    e->step.catch_ns = CATCH_NS;
    e->counted = counter_trusted();
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

    context_reap_here(t);
    for (uint32_t n = 0; n < t->slots; n++)
        if (t->instances[n].lun)
            held |= t->instances[n].strays > 0;
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
    e->in_step = false;
    e->released = true;
}

uint32_t engine_close(struct engine *e, double timeout_s, uint32_t *left)
{
    uint64_t deadline_ns = deadline_after(timeout_s), catch_by_ns = deadline_after(timeout_s * 0.8);
    uint32_t count = 0;

    enter(e);
    uint64_t now_ns = clock_now();
    step_cut(&e->step, END_COMMANDED, now_ns, now_ns);
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
    e->closed = true;
    if (count == 0 && !e->released)
        release(e);
    return leave(e, 0), count;
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
    pthread_mutex_destroy(&e->lock);
    free(e);
}

/* Between steps only: then the commanding thread owns all but the mailbox. */
static int must_be_idle(struct engine *e)
{
    if (e->closed)
        return engine_refuse(e, EBADF, "the engine is closed");
    if (e->in_step)
        return engine_refuse(e, EBUSY, "a step is running");
    for (uint32_t n = 0; n < e->thread_count; n++) {
        uint32_t state = atomic_load(&e->threads[n].state);
        if (state == THREAD_DIED || state == THREAD_EXITED)
            return engine_refuse(e, ESRCH, "workload thread %u has died", n);
        if (state != THREAD_WAITING)
            return engine_refuse(e, EBUSY, "workload thread %u is held by the kernel, with I/O of the last step", n);
    }
    return 0;
}

struct line engine_anchor(struct engine *e)
{
    if (!e->counted)
        return (struct line){0};
    struct reading now = counter_bracket(CLOCK_MONOTONIC);
    return calibration_add(&e->calibration, &now);
}

/* LUNs and instances. */

static struct lun *lun_of(struct engine *e, uint32_t lun)
{
    return lun < e->lun_count ? e->luns[lun] : NULL;
}

const char *engine_lun_path(struct engine *e, uint32_t lun)
{
    struct lun *l = lun_of(e, lun);

    return l ? l->path : "";
}

/* LUNs above the same queue of the kernel have the same. */
static uint32_t queue_id(const struct engine *e, const struct lun *lun)
{
    for (uint32_t n = 0; n < e->lun_count && lun->has_queue; n++) {
        const struct lun *other = e->luns[n];
        if (other && other->has_queue && other->queue.device == lun->queue.device)
            return other->queue_id;
    }
    return e->lun_count;
}

int engine_open_lun(struct engine *e, const char *path, bool writable)
{
    struct lun *lun = calloc(1, sizeof *lun);

    enter(e);
    if (e->closed) {
        free(lun);
        return leave(e, engine_refuse(e, EBADF, "the engine is closed"));
    }
    struct lun **luns = realloc(e->luns, (e->lun_count + 1u) * sizeof *luns);
    if (luns)
        e->luns = luns;
    int result = lun && luns ? lun_open(lun, path, writable) : -ENOMEM;
    if (result != 0) {
        free(lun);
        if (result == -ENOTBLK)
            engine_refuse(e, ENOTBLK, "neither a block device nor a file");
        if (result == -EINVAL)
            engine_refuse(e, EINVAL, "O_DIRECT is refused");
        return leave(e, result);
    }
    lun->queue_id = queue_id(e, lun);
    e->luns[e->lun_count] = lun;
    return leave(e, (int)e->lun_count++);
}

int engine_close_lun(struct engine *e, uint32_t lun)
{
    enter(e);
    struct lun *l = lun_of(e, lun);
    if (!l)
        return leave(e, engine_refuse(e, EBADF, "there is no LUN with this handle"));
    if (l->users)
        return leave(e, engine_refuse(e, EBUSY, "%u workload instances use this LUN", l->users));
    lun_close(l);
    free(l);
    e->luns[lun] = NULL;
    return leave(e, 0);
}

static struct instance *instance_of(struct engine *e, uint32_t number)
{
    return number < e->number_count ? e->by_number[number] : NULL;
}

static int make_room(struct engine *e, uint32_t number)
{
    enum { HIGHEST = 1 << 24 };
    uint32_t count = e->number_count ? e->number_count : 64;

    if (number >= HIGHEST)
        return engine_refuse(e, ERANGE, "instance numbers end at %d", HIGHEST - 1);
    while (count <= number)
        count *= 2;
    if (count == e->number_count)
        return 0;
    struct instance **larger = realloc(e->by_number, count * sizeof(struct instance *));
    if (!larger)
        return -ENOMEM;
    memset(larger + e->number_count, 0, (count - e->number_count) * sizeof *larger);
    e->by_number = larger;
    e->number_count = count;
    return 0;
}

/* A slot that no instance uses; it counts as used once its instance has a LUN. */
static struct instance *free_slot(struct thread *t)
{
    uint32_t slot = t->holes ? 0 : t->slots;

    while (slot < t->slots && t->instances[slot].lun)
        slot++;
    if (slot == THREAD_INSTANCES)
        return NULL;
    if (slot == t->slots)
        t->slots++, t->holes++;
    t->instances[slot].slot = slot;
    return &t->instances[slot];
}

static int create(struct engine *e, uint32_t number, uint32_t lun, uint32_t thread, uint32_t ceiling,
                  const struct parameters *parameters)
{
    const char *why = "";
    int result = must_be_idle(e);

    if (result != 0)
        return result;
    if (!lun_of(e, lun))
        return engine_refuse(e, EBADF, "there is no LUN with this handle");
    if (thread >= e->thread_count)
        return engine_refuse(e, EINVAL, "there are %u workload threads", e->thread_count);
    if (instance_of(e, number))
        return engine_refuse(e, EEXIST, "there is a workload instance %u already", number);
    result = make_room(e, number);
    if (result != 0)
        return result;
    struct instance *i = free_slot(&e->threads[thread]);
    if (!i)
        return engine_refuse(e, ENOSPC, "a workload thread drives at most %d instances", THREAD_INSTANCES);
    i->number = number;
    i->thread = thread;
    result = instance_create(i, lun_of(e, lun), ceiling, parameters, &why);
    if (result != 0)
        return engine_refuse(e, -result, "%s", why);
    i->created = ++e->created;
    e->threads[thread].holes--;
    e->by_number[number] = i;
    return 0;
}

int engine_create(struct engine *e, uint32_t number, uint32_t lun, uint32_t thread, uint32_t ceiling,
                  const struct parameters *parameters)
{
    enter(e);
    return leave(e, create(e, number, lun, thread, ceiling, parameters));
}

static int delete(struct engine *e, uint32_t number)
{
    int result = must_be_idle(e);

    if (result != 0)
        return result;
    struct instance *i = instance_of(e, number);
    if (!i)
        return engine_refuse(e, ENOENT, "there is no workload instance %u", number);
    if (i->strays)
        context_reap(&e->threads[i->thread]);
    if (i->strays)
        return engine_refuse(e, EBUSY, "%u I/Os of the instance have not come back", i->strays);
    context_forget(&e->threads[i->thread], i->slot);
    e->threads[i->thread].holes++;
    instance_destroy(i);
    e->by_number[number] = NULL;
    return 0;
}

int engine_delete(struct engine *e, uint32_t number)
{
    enter(e);
    return leave(e, delete(e, number));
}

/* Edits. */

static bool all_taken(const struct engine *e)
{
    for (uint32_t n = 0; n < e->thread_count; n++) {
        const struct mailbox *m = &e->threads[n].mailbox;
        if (atomic_load_explicit(&m->taken, memory_order_acquire) !=
            atomic_load_explicit(&m->posted, memory_order_relaxed))
            return false;
    }
    return true;
}

/* Only what is live may differ from what was created. */
static const char *not_live(const struct instance *i, const struct parameters *p)
{
    const struct parameters *old = &i->parameters;

    if (p->iosequencer != old->iosequencer || p->blocksize != old->blocksize || p->seed != old->seed ||
        p->range_start != old->range_start || p->range_end != old->range_end)
        return "only iops, fraction_read and maxtags can be edited";
    if (p->setting.maxtags == 0 || p->setting.maxtags > i->ceiling)
        return "maxtags is not in 1 to the ceiling that buffers were made for";
    if (p->setting.fraction_read < 1.0 && !i->lun->writable)
        return "fraction_read below 1 writes, but the LUN was opened read-only, without consent";
    return NULL;
}

static int post_room(struct mailbox *m, uint32_t count)
{
    if (count <= m->room)
        return 0;
    struct post *posts = realloc(m->posts, count * sizeof *posts);
    if (!posts)
        return -ENOMEM;
    m->posts = posts;
    m->room = count;
    return 0;
}

static int check_edits(struct engine *e, const struct edit *edits, uint32_t count)
{
    for (uint32_t n = 0; n < count; n++) {
        struct instance *i = instance_of(e, edits[n].number);
        if (!i)
            return engine_refuse(e, ENOENT, "there is no workload instance %u", edits[n].number);
        const char *why = not_live(i, &edits[n].parameters);
        if (why)
            return engine_refuse(e, EINVAL, "workload instance %u: %s", edits[n].number, why);
    }
    return 0;
}

static int edit(struct engine *e, uint32_t number, const struct edit *edits, uint32_t count)
{
    int result = e->closed ? engine_refuse(e, EBADF, "the engine is closed") : check_edits(e, edits, count);

    if (result != 0)
        return result;
    if (!all_taken(e))
        return engine_refuse(e, EAGAIN, "an earlier edit was not taken by every workload thread yet");
    for (uint32_t n = 0; n < e->thread_count; n++) {
        result = post_room(&e->threads[n].mailbox, count);
        if (result != 0)
            return result;
        e->threads[n].mailbox.count = 0;
    }
    for (uint32_t n = 0; n < count; n++) {
        const struct instance *i = instance_of(e, edits[n].number);
        struct mailbox *m = &e->threads[i->thread].mailbox;
        m->posts[m->count++] = (struct post){.slot = i->slot, .setting = edits[n].parameters.setting};
    }
    for (uint32_t n = 0; n < e->thread_count; n++) {
        struct thread *t = &e->threads[n];
        t->mailbox.edit = number;
        pthread_mutex_lock(&t->mutex);
        atomic_fetch_add_explicit(&t->mailbox.posted, 1, memory_order_release);
        pthread_cond_broadcast(&t->changed);
        pthread_mutex_unlock(&t->mutex);
    }
    step_call(&e->step);
    e->posted = (struct posted){.edit = number, .pending = true};
    return 0;
}

int engine_edit(struct engine *e, uint32_t number, const struct edit *edits, uint32_t count)
{
    enter(e);
    return leave(e, edit(e, number, edits, count));
}

int engine_edited(struct engine *e, uint32_t *edit, uint64_t *taken_ns)
{
    enter(e);
    if (!e->posted.pending || !all_taken(e))
        return leave(e, 0);
    e->posted.pending = false;
    *edit = e->posted.edit;
    *taken_ns = 0;
    for (uint32_t n = 0; n < e->thread_count; n++) {
        uint64_t at_ns = atomic_load_explicit(&e->threads[n].mailbox.taken_ns, memory_order_relaxed);
        if (at_ns > *taken_ns)
            *taken_ns = at_ns;
    }
    return leave(e, 1);
}

/* In mid-step. */

void engine_place_boundary(struct engine *e, uint32_t subinterval, uint64_t boundary_ns)
{
    enter(e);
    if (e->in_step)
        step_place(&e->step, subinterval, boundary_ns, clock_now());
    leave(e, 0);
}

void engine_cooldown(struct engine *e, uint32_t subinterval)
{
    enter(e);
    atomic_store_explicit(&e->step.cooldown_from, subinterval, memory_order_release);
    step_call(&e->step);
    leave(e, 0);
}

void engine_stop(struct engine *e, uint32_t last)
{
    enter(e);
    atomic_store_explicit(&e->step.stop_after, last, memory_order_release);
    leave(e, 0);
}

void engine_halt(struct engine *e)
{
    enter(e);
    uint64_t now_ns = clock_now();
    if (e->in_step)
        step_cut(&e->step, END_COMMANDED, now_ns, now_ns);
    leave(e, 0);
}

void engine_set_lease(struct engine *e, uint64_t until_ns)
{
    atomic_store_explicit(&e->step.lease_ns, until_ns, memory_order_release);
    step_call(&e->step);
}

static void add_end(struct thread_end *sums, const struct thread_end *end)
{
    sums->caught += end->caught;
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
    uint32_t state = atomic_load(&t->state);

    return state == THREAD_WAITING || state == THREAD_DIED || state == THREAD_EXITED;
}

static int ended(struct engine *e, struct end *end)
{
    uint64_t now_ns = clock_now(), ended_ns = atomic_load(&e->step.ended_ns);
    bool all = true, overdue = now_ns > ended_ns + e->step.catch_ns + HELD_NS;

    if (!e->in_step || ended_ns == 0)
        return 0;
    for (uint32_t n = 0; n < e->thread_count; n++)
        all &= thread_finished(&e->threads[n]);
    if (!overdue && !(all && e->collector.last))
        return 0;
    *end = (struct end){.reason = (enum end_reason)atomic_load(&e->step.reason)};
    for (uint32_t n = 0; n < e->thread_count; n++) {
        struct thread *t = &e->threads[n];
        /* One that is held has its own figures still in its hands. */
        struct thread_end held = {.uncaught = atomic_load(&t->in_flight), .oldest_uncaught_ns = thread_oldest(t, now_ns)};
        add_end(&end->sums, thread_finished(t) ? &t->end : &held);
    }
    e->in_step = false;
    return 1;
}

int engine_ended(struct engine *e, struct end *end)
{
    enter(e);
    return leave(e, ended(e, end));
}

uint64_t engine_oldest_in_flight(struct engine *e)
{
    uint64_t now_ns, oldest_ns = 0;

    enter(e);
    now_ns = clock_now();
    for (uint32_t n = 0; n < e->thread_count; n++) {
        uint64_t age_ns = thread_oldest(&e->threads[n], now_ns);
        if (age_ns > oldest_ns)
            oldest_ns = age_ns;
    }
    return leave(e, 0), oldest_ns;
}

bool engine_dying_words(struct engine *e, uint32_t thread, char *words, size_t size)
{
    struct thread *t = &e->threads[thread];

    enter(e);
    bool news = atomic_load(&t->state) == THREAD_DIED && !t->words_told;
    if (news)
        snprintf(words, size, "%s", t->words);
    t->words_told |= news;
    return leave(e, 0), news;
}

/* Starting a step. */

static int check_order(struct engine *e, const uint32_t *order, const uint32_t *classes, uint32_t count)
{
    for (uint32_t n = 0; n < count; n++) {
        struct instance *i = instance_of(e, order[n]);
        if (!i)
            return engine_refuse(e, ENOENT, "go names workload instance %u, which does not exist", order[n]);
        if (classes[n] >= count)
            return engine_refuse(e, EINVAL, "go names merge class %u; %u instances have at most as many classes",
                                 classes[n], count);
        if (i->class != STEP_NEVER)
            return engine_refuse(e, EINVAL, "go names workload instance %u twice", order[n]);
        i->class = classes[n];
        i->order = n;
    }
    return 0;
}

static void forget_order(struct engine *e)
{
    for (uint32_t n = 0; n < e->number_count; n++)
        if (e->by_number[n])
            e->by_number[n]->class = STEP_NEVER;
}

/* The thread's instances of the step, its merge classes, and the series where each of its instances records. */
static int deal(struct thread *t, uint32_t classes)
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
    for (uint32_t n = 0; n < t->slots; n++) {
        struct instance *i = &t->instances[n];
        if (!i->lun || i->class == STEP_NEVER)
            continue;
        if (local[i->class] == UINT32_MAX) {
            local[i->class] = t->classes_count;
            t->classes[t->classes_count++] = i->class;
        }
        i->series = local[i->class] * SERIES;
        t->step_instances[t->step_count++] = i;
    }
    free(local);
    return 0;
}

static uint64_t wanted_by(const struct instance *i)
{
    return (uint64_t)i->ceiling * i->weight;
}

/* A thread's shares: of a queue that cannot hold what all instances may want, each thread gets a part in proportion to
 * what its own want; so no thread needs to know of the others. `wanted` is by queue, in requests; `places`, scratch, too. */
static int share_out(struct thread *t, const uint64_t *wanted, uint32_t *places)
{
    struct share *shares = realloc(t->shares, (t->step_count + 1u) * sizeof *shares);
    uint32_t count = 0;

    if (!shares)
        return -ENOMEM;
    t->shares = shares;
    for (uint32_t n = 0; n < t->step_count; n++)
        places[t->step_instances[n]->lun->queue_id] = UINT32_MAX;
    for (uint32_t n = 0; n < t->step_count; n++) {
        struct instance *i = t->step_instances[n];
        uint32_t *place = &places[i->lun->queue_id];
        if (*place == UINT32_MAX) {
            *place = count++;
            shares[*place] = (struct share){0};
        }
        i->share = &shares[*place];
        i->share->wanted += wanted_by(i);
    }
    for (uint32_t n = 0; n < t->step_count; n++) {
        const struct lun *lun = t->step_instances[n]->lun;
        struct share *s = t->step_instances[n]->share;
        uint64_t cap = s->wanted, all = wanted[lun->queue_id];
        if (lun->has_queue && all > lun->queue.nr_requests)
            cap = lun->queue.nr_requests * s->wanted / all;
        s->cap = s->full_cap = cap ? (uint32_t)cap : 1;
    }
    return 0;
}

static int share_queues(struct engine *e)
{
    uint64_t *wanted = calloc(e->lun_count + 1u, sizeof *wanted);
    uint32_t *places = calloc(e->lun_count + 1u, sizeof *places);
    int result = wanted && places ? 0 : -ENOMEM;

    for (uint32_t n = 0; n < e->thread_count && result == 0; n++)
        for (uint32_t m = 0; m < e->threads[n].step_count; m++) {
            const struct instance *i = e->threads[n].step_instances[m];
            wanted[i->lun->queue_id] += wanted_by(i);
        }
    for (uint32_t n = 0; n < e->thread_count && result == 0; n++)
        result = share_out(&e->threads[n], wanted, places);
    free(wanted);
    free(places);
    return result;
}

static int prepare_thread(struct engine *e, struct thread *t)
{
    uint32_t series = t->classes_count * SERIES;
    int result = context_prepare(e, t);

    for (int n = 0; n < 2 && result == 0; n++) {
        result = buffer_init(&t->buffers[n], t->slots, series);
        t->buffers[n].anchor = (struct line){0};
        atomic_store(&t->buffers[n].state, BUFFER_READY_TO_RUN);
    }
    heap_free(&t->heap);
    if (result == 0)
        result = heap_init(&t->heap, t->slots);
    t->step_number = e->steps;
    atomic_store(&t->progress, 0);
    return result;
}

/* All threads at once; then waits until each of them runs. */
static int start_threads(struct engine *e)
{
    struct timespec deadline = clock_timespec(clock_now() + READY_S * NS_PER_S);
    struct line anchor = engine_anchor(e);

    for (uint32_t n = 0; n < e->thread_count; n++) {
        struct thread *t = &e->threads[n];
        pthread_mutex_lock(&t->mutex);
        t->clock = t->anchor = anchor;
        atomic_store(&t->state, THREAD_STARTING);
        pthread_cond_broadcast(&t->changed);
        pthread_mutex_unlock(&t->mutex);
    }
    for (uint32_t n = 0; n < e->thread_count; n++) {
        struct thread *t = &e->threads[n];
        int error = 0;
        pthread_mutex_lock(&t->mutex);
        while (atomic_load(&t->state) == THREAD_STARTING && error == 0)
            error = pthread_cond_timedwait(&t->changed, &t->mutex, &deadline);
        pthread_mutex_unlock(&t->mutex);
        if (error) {
            uint64_t now_ns = clock_now();
            step_cut(&e->step, END_COMMANDED, now_ns, now_ns);
            return engine_refuse(e, error, "workload thread %u is not ready after %d s", n, READY_S);
        }
    }
    return 0;
}

static int go(struct engine *e, uint64_t start_ns, uint64_t length_ns, const uint32_t *order, const uint32_t *classes,
              uint32_t count)
{
    uint32_t class_count = 0;
    int result = must_be_idle(e);

    if (result != 0)
        return result;
    if (length_ns < NS_PER_MS)
        return engine_refuse(e, EINVAL, "a subinterval is at least 1 ms long");
    forget_order(e);
    result = check_order(e, order, classes, count);
    for (uint32_t n = 0; n < count; n++)
        if (classes[n] >= class_count)
            class_count = classes[n] + 1;
    for (uint32_t n = 0; n < e->thread_count && result == 0; n++)
        result = deal(&e->threads[n], class_count);
    if (result == 0)
        result = share_queues(e);
    e->steps++;
    for (uint32_t n = 0; n < e->thread_count && result == 0; n++)
        result = prepare_thread(e, &e->threads[n]);
    if (result == 0)
        result = collector_init(&e->collector, count, class_count, start_ns);
    if (result != 0)
        return result;
    step_init(&e->step, start_ns, length_ns);
    e->in_step = true;
    return start_threads(e);
}

int engine_go(struct engine *e, uint64_t start_ns, uint64_t length_ns, const uint32_t *order, const uint32_t *classes,
              uint32_t count)
{
    enter(e);
    return leave(e, go(e, start_ns, length_ns, order, classes, count));
}
