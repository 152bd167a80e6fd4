/* A machine that has only simulated time. The linker puts these functions in the place of those that they are named for
 * (--wrap, in the Makefile); the engine's code is the product's.
 *
 * Each thread has a core of its own, but only one runs at a time: what it does between two waits takes no time. When
 * all wait, time jumps to the first deadline. So figures are exact, whatever the real machine does meanwhile, and the
 * same each time. Nothing takes time but a batch that is submitted and a poll of the ring, of any backend, and what a
 * driver has its own backend wait.
 *
 * Trap: a loop that looks at the clock until it advances, without a wait, never ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "simulation.h"
#include "thread/thread.h"

#define NEVER UINT64_MAX
#define BEGIN_NS UINT64_C(1000000000000) /* any but 0 */

enum { MOST_TASKS = 64, SCHEDSTAT = 1 << 30 };
enum state { FREE, READY, WAITING, ENDED };

struct task {
    enum state state;
    uint64_t order;    /* of those that are ready */
    uint64_t until_ns; /* of one that waits */
    const void *channel;
    bool woken;           /* else its deadline came */
    uint64_t runqueue_ns; /* how long it waited for its core */
    pthread_t pthread;
    pthread_cond_t turn;
    void *(*main)(void *);
    void *argument;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct task tasks[MOST_TASKS] = {{.state = READY, .turn = PTHREAD_COND_INITIALIZER}}; /* the first: who began */
static uint32_t used = 1; /* of the tasks: those behind have always been free */
static struct task *running = tasks;
static __thread struct task *self;
static uint64_t now_ns = BEGIN_NS, ready;
static const char polls;             /* the channel of those that poll */
static uint64_t period_ns, taken_ns; /* others take the tasks' cores for so long in each period */

uint64_t simulation_batch_ns = 1000, simulation_poll_ns = 100;

#define REAL(type, name, ...) type __real_##name(__VA_ARGS__)
REAL(int, clock_gettime, clockid_t, struct timespec *);
REAL(int, poll, struct pollfd *, nfds_t, int);
REAL(ssize_t, write, int, const void *, size_t);
REAL(int, open, const char *, int, ...);
REAL(int, pthread_create, pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
REAL(int, pthread_join, pthread_t, void **);
REAL(int, pthread_mutex_lock, pthread_mutex_t *);
REAL(int, pthread_mutex_unlock, pthread_mutex_t *);
REAL(int, pthread_cond_wait, pthread_cond_t *, pthread_mutex_t *);
REAL(int, pthread_cond_signal, pthread_cond_t *);
REAL(ssize_t, pread, int, void *, size_t, off_t);
REAL(int, close, int);
REAL(int, reap_poll, struct thread *);
REAL(bool, submit_batch, struct thread *, uint64_t);

static struct task *me(void)
{
    if (!self)
        self = tasks;
    return self;
}

/* Who was ready first; else whose deadline comes first. */
static struct task *next(void)
{
    struct task *found = NULL;

    for (uint32_t n = 0; n < used; n++)
        if (tasks[n].state == READY && (!found || tasks[n].order < found->order))
            found = &tasks[n];
    if (found)
        return found;
    for (uint32_t n = 0; n < used; n++)
        if (tasks[n].state == WAITING && tasks[n].until_ns != NEVER && (!found || tasks[n].until_ns < found->until_ns))
            found = &tasks[n];
    if (!found) {
        fprintf(stderr, "simulation: every thread waits for another\n");
        abort();
    }
    if (found->until_ns > now_ns)
        now_ns = found->until_ns;
    found->woken = false;
    return found;
}

/* The lock is held. */
static void pass_on(void)
{
    running = next();
    running->state = READY;
    if (running != self)
        __real_pthread_cond_signal(&running->turn);
}

static void await_turn(void)
{
    while (running != self)
        __real_pthread_cond_wait(&self->turn, &lock);
}

/* False: nobody woke it until then. */
static bool sleep_on(const void *channel, uint64_t until_ns)
{
    struct task *t = me();

    __real_pthread_mutex_lock(&lock);
    t->state = WAITING;
    t->until_ns = until_ns;
    t->channel = channel;
    pass_on();
    await_turn();
    __real_pthread_mutex_unlock(&lock);
    return t->woken;
}

static bool wait_for(const void *channel, uint64_t until_ns)
{
    bool woken = sleep_on(channel, until_ns);
    uint64_t since_ns = period_ns ? now_ns % period_ns : taken_ns;

    if (since_ns < taken_ns && self != tasks) {
        self->runqueue_ns += taken_ns - since_ns;
        sleep_on(NULL, now_ns + taken_ns - since_ns);
    }
    return woken;
}

void simulation_take_cores(uint64_t of_ns, uint64_t ns)
{
    period_ns = of_ns;
    taken_ns = ns;
}

bool __wrap_submit_batch(struct thread *t, uint64_t stamp_ns)
{
    wait_for(NULL, now_ns + simulation_batch_ns);
    return __real_submit_batch(t, stamp_ns);
}

int __wrap_reap_poll(struct thread *t)
{
    wait_for(NULL, now_ns + simulation_poll_ns);
    return __real_reap_poll(t);
}

/* The lock is held. */
static void wake_those(const void *channel)
{
    for (uint32_t n = 0; n < used; n++)
        if (tasks[n].state == WAITING && tasks[n].channel == channel) {
            tasks[n].state = READY;
            tasks[n].woken = true;
            tasks[n].order = ++ready;
        }
}

static void wake(const void *channel)
{
    __real_pthread_mutex_lock(&lock);
    wake_those(channel);
    __real_pthread_mutex_unlock(&lock);
}

static uint64_t ns_of(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * UINT64_C(1000000000) + (uint64_t)time->tv_nsec;
}

/* All clocks are one: a thread that runs takes no CPU time. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    (void)clock;
    *time = (struct timespec){.tv_sec = (time_t)(now_ns / 1000000000), .tv_nsec = (long)(now_ns % 1000000000)};
    if (clock == CLOCK_THREAD_CPUTIME_ID)
        *time = (struct timespec){0};
    return 0;
}

int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
    uint64_t until_ns = ns_of(time) + (flags & TIMER_ABSTIME ? 0 : now_ns);

    (void)clock, (void)left;
    if (until_ns > now_ns)
        wait_for(NULL, until_ns);
    return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    return __wrap_clock_nanosleep(CLOCK_MONOTONIC, 0, time, left);
}

int __wrap_poll(struct pollfd *fds, nfds_t number, int timeout_ms)
{
    uint64_t until_ns = timeout_ms < 0 ? NEVER : now_ns + (uint64_t)timeout_ms * 1000000;
    int found;

    while ((found = __real_poll(fds, number, 0)) == 0 && now_ns < until_ns)
        wait_for(&polls, until_ns);
    return found;
}

int simulation_poll(int fd, int timeout_ms)
{
    return __wrap_poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, timeout_ms);
}

ssize_t __wrap_write(int fd, const void *bytes, size_t length)
{
    ssize_t written = __real_write(fd, bytes, length);

    wake(&polls);
    return written;
}

/* This machine shows no idle cores. A descriptor that no file has is a task's view of its run queue. */
int __wrap_open(const char *path, int flags, mode_t mode)
{
    if (strcmp(path, "/proc/thread-self/schedstat") == 0)
        return SCHEDSTAT;
    if (strstr(path, "/cpuidle/")) {
        errno = ENOENT;
        return -1;
    }
    return __real_open(path, flags, mode);
}

ssize_t __wrap_pread(int fd, void *bytes, size_t length, off_t offset)
{
    if (fd != SCHEDSTAT)
        return __real_pread(fd, bytes, length, offset);
    return snprintf(bytes, length, "0 %llu 0\n", (unsigned long long)me()->runqueue_ns);
}

int __wrap_close(int fd)
{
    return fd == SCHEDSTAT ? 0 : __real_close(fd);
}

static void *run(void *thread)
{
    self = thread;
    __real_pthread_mutex_lock(&lock);
    await_turn();
    __real_pthread_mutex_unlock(&lock);
    void *result = self->main(self->argument);
    __real_pthread_mutex_lock(&lock);
    self->state = ENDED;
    wake_those(self);
    pass_on();
    __real_pthread_mutex_unlock(&lock);
    return result;
}

int __wrap_pthread_create(pthread_t *pthread, const pthread_attr_t *attributes, void *(*main)(void *), void *argument)
{
    struct task *t = tasks;

    while (t < tasks + MOST_TASKS && t->state != FREE)
        t++;
    if (t == tasks + MOST_TASKS)
        return EAGAIN;
    if (t == tasks + used)
        used++;
    *t = (struct task){
        .state = READY, .order = ++ready, .turn = PTHREAD_COND_INITIALIZER, .main = main, .argument = argument};
    int error = __real_pthread_create(pthread, attributes, run, t);
    t->pthread = *pthread;
    if (error)
        t->state = FREE;
    return error;
}

int __wrap_pthread_join(pthread_t pthread, void **result)
{
    struct task *t = tasks + 1;

    while (t->state == FREE || !pthread_equal(t->pthread, pthread))
        t++;
    while (t->state != ENDED)
        wait_for(t, NEVER);
    int error = __real_pthread_join(pthread, result);
    t->state = FREE;
    return error;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    while (pthread_mutex_trylock(mutex) != 0)
        wait_for(mutex, NEVER);
    return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    int error = __real_pthread_mutex_unlock(mutex);

    wake(mutex);
    return error;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *deadline)
{
    __wrap_pthread_mutex_unlock(mutex);
    bool woken = wait_for(condition, deadline ? ns_of(deadline) : NEVER);
    __wrap_pthread_mutex_lock(mutex);
    return woken ? 0 : ETIMEDOUT;
}

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    return __wrap_pthread_cond_timedwait(condition, mutex, NULL);
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
    wake(condition);
    return 0;
}

/* Who waits looks again anyway. */
int __wrap_pthread_cond_signal(pthread_cond_t *condition)
{
    wake(condition);
    return 0;
}

/* The cycle counter is not simulated. */
bool __wrap_tsc_trusted(void)
{
    return false;
}
