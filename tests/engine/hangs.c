/* What hangs outside of I/O, in a command or on a workload thread between steps: each scenario is one such place, and
 * shows that whoever steers or ends the engine does not wait for it. */
#include "life.h"

#include "commands/commands.h"
#include "luns/io_buffers.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { THREADS = 2, TAGS = 4, LONGEST_S = 20 };

#define LENGTH_NS (50 * NS_PER_MS)

/* The backend null, but for what it is told to hang in. */
static struct {
    _Atomic uint32_t open, detach;
    _Atomic uint32_t hanging;          /* how many calls do */
    _Atomic uint32_t opened, attached; /* how many calls there were */
} told;

static struct backend backend;
static struct engine *engine;
static const char *path;

static void hang_while(_Atomic uint32_t *word)
{
    struct timespec pause = {.tv_nsec = 1000000};

    atomic_fetch_add(&told.hanging, 1);
    while (atomic_load(word))
        nanosleep(&pause, NULL);
    atomic_fetch_sub(&told.hanging, 1);
}

static int open_context(void **context, uint32_t depth, uint32_t options)
{
    atomic_fetch_add(&told.opened, 1);
    hang_while(&told.open);
    return backend_null.open(context, depth, options);
}

static void detach(void *context, uint32_t slot)
{
    (void)context, (void)slot;
    hang_while(&told.detach);
}

static int attach(void *context, const struct instance *instances, uint32_t slots)
{
    (void)context, (void)instances, (void)slots;
    atomic_fetch_add(&told.attached, 1);
    return 0;
}

static void await_hanging(uint32_t count)
{
    while (atomic_load(&told.hanging) != count)
        sched_yield();
}

static void create(uint32_t number, uint32_t lun, uint32_t thread)
{
    struct parameters p = {.setting = {.iops = 1000.0, .fraction_read = 1.0, .maxtags = TAGS, .blocksize = 4096}};

    CHECK_EQUAL(engine_create(engine, number, lun, thread, (struct ceiling){TAGS, 4096}, &everywhere, &p), 0);
}

/* A LUN, and an instance for each thread. */
static void populate(void)
{
    int lun = engine_open_lun(engine, path, path, false, true);

    CHECK(lun >= 0);
    for (uint32_t n = 0; n < THREADS; n++)
        create(n, (uint32_t)lun, n);
}

static int go_now(struct sums *s)
{
    static const uint32_t order[THREADS] = {0, 1}, classes[THREADS] = {0, 0};
    static const struct roster roster = {order, classes, order, THREADS, 0};

    *s = (struct sums){.end_ns = clock_now() + 5 * NS_PER_MS};
    engine_set_lease(engine, clock_now() + 60 * NS_PER_S);
    return engine_go(engine, s->end_ns, LENGTH_NS, &roster);
}

/* A command that hangs, on a thread of its own. */
struct call {
    pthread_t pthread;
    _Atomic int task; /* its number in /proc */
    const char *fifo;
    struct sums sums;
    int result;
};

static void *call_open(void *argument)
{
    struct call *call = argument;

    atomic_store(&call->task, (int)syscall(SYS_gettid));
    call->result = engine_open_lun(engine, call->fifo, call->fifo, false, true);
    return NULL;
}

static void *call_go(void *argument)
{
    struct call *call = argument;

    call->result = go_now(&call->sums);
    return NULL;
}

/* Until the task is in that system call. */
static void await_call(const struct call *call, long number)
{
    char name[64];
    long found = -1;

    while (found != number) {
        snprintf(name, sizeof name, "/proc/self/task/%d/syscall", atomic_load(&call->task));
        FILE *file = fopen(name, "r");
        if (file && fscanf(file, "%ld", &found) != 1)
            found = -1;
        if (file)
            fclose(file);
    }
}

/* The open of a LUN, as of a FIFO that nobody writes: all goes on beside it, and the engine closes. */
static void hung_open(void)
{
    struct call call = {0};
    uint32_t left[ENGINE_THREADS], thread;
    char fifo[256], words[64];
    struct sums s;

    snprintf(fifo, sizeof fifo, "%s.fifo", path);
    CHECK(mkfifo(fifo, 0600) == 0);
    call.fifo = fifo;
    CHECK(pthread_create(&call.pthread, NULL, call_open, &call) == 0);
    await_call(&call, SYS_openat);
    populate();
    CHECK_EQUAL(go_now(&s), 0);
    CHECK(!engine_dying_words(engine, &thread, words, sizeof words));
    engine_halt(engine);
    CHECK_EQUAL(finish(engine, &s, TAGS).reason, END_COMMANDED);
    CHECK_EQUAL(engine_close(engine, 5.0, left), 0);
    int writer = open(fifo, O_WRONLY);
    CHECK(writer >= 0);
    pthread_join(call.pthread, NULL);
    CHECK(call.result < 0);
    close(writer);
}

/* A thread that is about to open its context, while `go` waits for it: steering waits for neither, close not for longer
 * than it is told, and what was halted before it began submits nothing. */
static void hung_go(void)
{
    struct call call = {0};
    uint32_t left[ENGINE_THREADS], thread;
    char words[64];

    populate();
    atomic_store(&told.open, 1);
    CHECK(pthread_create(&call.pthread, NULL, call_go, &call) == 0);
    await_hanging(THREADS);
    engine_halt(engine);
    CHECK(!engine_dying_words(engine, &thread, words, sizeof words));
    uint64_t asked_ns = clock_now();
    CHECK_EQUAL(engine_close(engine, 0.1, left), THREADS);
    CHECK(clock_now() - asked_ns < 5 * NS_PER_S);
    atomic_store(&told.open, 0);
    pthread_join(call.pthread, NULL);
    CHECK_EQUAL(call.result, 0);
    CHECK_EQUAL(finish(engine, &call.sums, TAGS).reason, END_COMMANDED);
    CHECK_EQUAL(call.sums.submitted, 0);
}

/* `go` gives up a thread that is too long about it, and so does close; the thread takes no other command meanwhile. */
static void slow_errand(void)
{
    uint32_t left[ENGINE_THREADS];
    struct sums s;

    populate();
    for (uint32_t n = 0; n < THREADS; n++)
        engine->threads[n].worker.errand_limit_ns = 50 * NS_PER_MS;
    atomic_store(&told.open, 1);
    CHECK_EQUAL(go_now(&s), -ETIMEDOUT);
    CHECK(strstr(engine_why(engine), "the kernel holds workload thread 0"));
    CHECK(strstr(engine_why(engine), "for longer than 0.05 s"));
    CHECK_EQUAL(engine_delete(engine, 0), -EBUSY);
    CHECK_EQUAL(engine_close(engine, 0.1, left), THREADS);
    atomic_store(&told.open, 0);
}

/* A command at work on a thread of its own. */
static void *call_prepare(void *argument)
{
    struct call *call = argument;

    call->result = engine_prepare(engine);
    return NULL;
}

/* All that takes long is done before `go`, by all threads at once, each for itself; `go` finds nothing left to do. */
static void prepared(void)
{
    struct call call = {0};
    struct sums s;

    populate();
    for (uint32_t n = 0; n < THREADS; n++)
        CHECK(!engine_instance(engine, n)->tags && !engine_instance(engine, n)->data);
    atomic_store(&told.open, 1);
    CHECK(pthread_create(&call.pthread, NULL, call_prepare, &call) == 0);
    await_hanging(THREADS);
    CHECK(engine_progress(engine) >= THREADS);
    atomic_store(&told.open, 0);
    pthread_join(call.pthread, NULL);
    CHECK_EQUAL(call.result, 0);
    for (uint32_t n = 0; n < THREADS; n++)
        CHECK(engine_instance(engine, n)->tags && engine_instance(engine, n)->data);
    CHECK_EQUAL(go_now(&s), 0);
    CHECK_EQUAL(told.opened, THREADS);
    engine_stop(engine, 0);
    finish(engine, &s, TAGS);
}

/* Large I/O buffers are whole huge pages, small ones are not. */
static void whole_huge_pages(void)
{
    static const struct ceiling ceilings[] = {{3, 1 << 20}, {511, 1 << 16}, {4, 4096}};
    int lun = engine_open_lun(engine, path, path, false, true);

    for (uint32_t n = 0; n < sizeof ceilings / sizeof *ceilings; n++) {
        struct parameters p = {.setting = {.fraction_read = 1.0, .maxtags = 1, .blocksize = 4096}};
        CHECK_EQUAL(engine_create(engine, n, (uint32_t)lun, 0, ceilings[n], &everywhere, &p), 0);
    }
    CHECK_EQUAL(engine_prepare(engine), 0);
    CHECK_EQUAL(engine_instance(engine, 0)->data_size, 2 * HUGE_PAGE);
    CHECK_EQUAL(engine_instance(engine, 1)->data_size, 16 * HUGE_PAGE);
    CHECK_EQUAL(engine_instance(engine, 2)->data_size, 4 * 4096);
}

/* A thread advances more slowly than its limit, but advances: it is waited for. */
static void slow_progress(void)
{
    struct call call = {0};

    populate();
    engine->threads[0].worker.errand_limit_ns = 500 * NS_PER_MS; /* longer than a busy machine stalls */
    atomic_store(&told.open, 1);
    CHECK(pthread_create(&call.pthread, NULL, call_prepare, &call) == 0);
    await_hanging(THREADS);
    for (uint64_t until_ns = clock_now() + 1500 * NS_PER_MS; clock_now() < until_ns; sched_yield())
        atomic_fetch_add(&engine->threads[0].worker.progress, 1);
    atomic_store(&told.open, 0);
    pthread_join(call.pthread, NULL);
    CHECK_EQUAL(call.result, 0);
}

/* A `go` whose threads are not ready in time is given up; the next one works as soon as they are back. */
static void late_go(void)
{
    struct sums s;
    struct end end;
    int result = 0;

    populate();
    engine->ready_ns = 0; /* whether threads were that quick is chance: they rarely are */
    for (uint32_t tries = 0; tries < 1000 && result == 0; tries++) {
        result = go_now(&s);
        if (result == 0) {
            engine_halt(engine);
            finish(engine, &s, TAGS);
        }
    }
    CHECK_EQUAL(result, -ETIMEDOUT);
    CHECK(strstr(engine_why(engine), "is not ready after 0 s"));
    CHECK(!engine_ended(engine, &end));
    engine->ready_ns = 10 * NS_PER_S;
    while ((result = go_now(&s)) == -EBUSY) {
        CHECK(strstr(engine_why(engine), "still ending"));
        sched_yield();
    }
    CHECK_EQUAL(result, 0);
    engine_stop(engine, 1);
    CHECK_EQUAL(finish(engine, &s, TAGS).reason, END_COMMANDED);
    CHECK_EQUAL(s.results, 2);
    CHECK(s.completed > 0);
}

/* An instance that its thread does not let go of stays; and is deleted once it does. */
static void slow_delete(void)
{
    struct sums s;
    int result;

    populate();
    CHECK_EQUAL(go_now(&s), 0);
    engine_stop(engine, 0);
    finish(engine, &s, TAGS);
    engine->threads[0].worker.errand_limit_ns = 50 * NS_PER_MS;
    atomic_store(&told.detach, 1);
    CHECK_EQUAL(engine_delete(engine, 0), -ETIMEDOUT);
    CHECK_EQUAL(engine_delete(engine, 0), -EBUSY);
    CHECK_EQUAL(engine_close_lun(engine, 0), -EBUSY);
    atomic_store(&told.detach, 0);
    while ((result = engine_delete(engine, 0)) == -EBUSY)
        sched_yield();
    CHECK_EQUAL(result, 0);
}

/* A collection that is under way, as one of a thousand merge classes is for a tenth of a second: nothing that steers or
 * asks waits for it. */
static void long_collection(void)
{
    uint32_t thread;
    struct sums s;
    struct end end;
    char words[64];

    populate();
    CHECK_EQUAL(go_now(&s), 0);
    pthread_mutex_lock(&engine->collecting);
    engine_place_boundary(engine, 3, s.end_ns + 4 * LENGTH_NS);
    engine_cooldown(engine, 5);
    engine_stop(engine, 9);
    engine_set_lease(engine, clock_now() + 60 * NS_PER_S);
    CHECK(!engine_ended(engine, &end));
    CHECK(!engine_dying_words(engine, &thread, words, sizeof words));
    engine_halt(engine);
    pthread_mutex_unlock(&engine->collecting);
    CHECK_EQUAL(finish(engine, &s, TAGS).reason, END_COMMANDED);
}

/* A thread that is long about giving up what it drives, when it is to end. */
static void slow_exit(void)
{
    uint32_t left[ENGINE_THREADS];
    struct sums s;

    populate();
    CHECK_EQUAL(go_now(&s), 0);
    atomic_store(&told.detach, 1);
    uint64_t asked_ns = clock_now();
    CHECK_EQUAL(engine_close(engine, 0.2, left), THREADS);
    CHECK(clock_now() - asked_ns < 5 * NS_PER_S);
    await_hanging(THREADS);
    atomic_store(&told.detach, 0);
}

static const struct scenario {
    const char *name;
    void (*play)(void);
} scenarios[] = {
    {"hung_open", hung_open},
    {"hung_go", hung_go},
    {"slow_errand", slow_errand},
    {"slow_delete", slow_delete},
    {"slow_exit", slow_exit},
    {"prepared", prepared},
    {"whole_huge_pages", whole_huge_pages},
    {"slow_progress", slow_progress},
    {"late_go", late_go},
    {"long_collection", long_collection},
};

int main(int count, char **words)
{
    uint32_t left[ENGINE_THREADS];
    int cpus[THREADS] = {-1, -1};

    CHECK(count == 3); /* scenario, path */
    path = words[2];
    backend = backend_null;
    backend.open = open_context;
    backend.attach = attach;
    backend.detach = detach;
    alarm(LONGEST_S); /* instead of hanging too */
    for (size_t n = 0; n < sizeof scenarios / sizeof *scenarios; n++) {
        if (strcmp(scenarios[n].name, words[1]) != 0)
            continue;
        CHECK_EQUAL(engine_open(&engine, &backend, cpus, THREADS), 0);
        scenarios[n].play();
        CHECK_EQUAL(engine_close(engine, 5.0, left), 0);
        engine_free(engine);
        return 0;
    }
    fprintf(stderr, "there is no scenario %s\n", words[1]);
    return 2;
}
