/* A workload thread's life: it waits for a command, does an errand or runs a step, and so on until it is to end. */
#ifndef IVYPY_WORKER_H
#define IVYPY_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct thread;

enum thread_state {
    THREAD_WAITING,
    THREAD_ERRAND,
    THREAD_STARTING,
    THREAD_RUNNING,
    THREAD_STOPPING,
    THREAD_DIED,
    THREAD_EXITED,
};

struct worker {
    pthread_t pthread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    _Atomic uint32_t state;          /* enum thread_state */
    _Atomic uint64_t exit_by_ns;     /* 0: go on; else exit, in-flight I/Os being caught until then */
    int (*errand)(struct thread *t); /* what the commanding thread has it do between steps, */
    uint32_t errand_argument;        /* with this, */
    int errand_result;               /* and what came of it, */
    const char *errand_why;          /* in words, where the backend has none for it; or NULL */
    uint64_t errand_limit_ns;        /* how long it may take without progress */
    _Atomic uint64_t progress;       /* grows while an errand advances */
    bool joined;
};

/* Starts it. 0 or -errno; what was taken is given back. */
int worker_start(struct thread *t);

/* Has it do something while it waits for a command; it takes its mail first. And waits for it: what that returns, or
 * -ETIMEDOUT. Then it is still at it, and takes no further command before it has done. */
void worker_post(struct thread *t, int (*errand)(struct thread *t), uint32_t argument);
int worker_await(struct thread *t);

/* By an errand that fails: why, in words that stay. */
void worker_explain(struct thread *t, const char *why);

/* Both. */
int worker_do(struct thread *t, int (*errand)(struct thread *t), uint32_t argument);

/* Has it begin the step; and waits until it has: 0 or ETIMEDOUT. */
void worker_begin(struct thread *t);
int worker_await_begin(struct thread *t, uint64_t deadline_ns);

/* Has it see its mail, if it waits for a command. */
void worker_wake(struct thread *t);

/* Has it end, catching what is in flight until `catch_by_ns`. */
void worker_end(struct thread *t, uint64_t catch_by_ns);

/* False where it has not ended by the deadline. */
bool worker_join(struct thread *t, uint64_t deadline_ns);

/* After that. */
void worker_free(struct thread *t);

static inline enum thread_state worker_state(const struct worker *w)
{
    return (enum thread_state)atomic_load(&w->state);
}

/* It will take no further command. */
static inline bool worker_gone(const struct worker *w)
{
    return worker_state(w) == THREAD_EXITED || worker_state(w) == THREAD_DIED;
}

#endif
