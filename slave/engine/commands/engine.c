#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "commands.h"
#include "time/clock.h"

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

void engine_hold(struct engine *e)
{
    pthread_mutex_lock(&e->lock);
}

void engine_let_go(struct engine *e)
{
    pthread_mutex_unlock(&e->lock);
}

void engine_enter(struct engine *e)
{
    engine_hold(e);
    while (e->busy)
        pthread_cond_wait(&e->free, &e->lock);
    e->busy = true;
    engine_let_go(e);
    e->why[0] = '\0';
}

bool engine_enter_by(struct engine *e, uint64_t deadline_ns)
{
    struct timespec deadline = clock_timespec(deadline_ns);
    int error = 0;

    engine_hold(e);
    while (e->busy && error == 0)
        error = pthread_cond_timedwait(&e->free, &e->lock, &deadline);
    bool mine = !e->busy;
    e->busy = true; /* ours, or still theirs */
    engine_let_go(e);
    return mine;
}

int engine_leave(struct engine *e, int result)
{
    engine_hold(e);
    e->busy = false;
    pthread_cond_signal(&e->free);
    engine_let_go(e);
    return result;
}

static bool all_wait(const struct engine *e)
{
    for (uint32_t n = 0; n < e->thread_count; n++)
        if (worker_state(&e->threads[n].worker) != THREAD_WAITING)
            return false;
    return true;
}

int engine_must_be_idle(struct engine *e)
{
    if (e->closed)
        return engine_refuse(e, EBADF, "the engine is closed");
    engine_hold(e);
    bool abandoned = e->abandoned;
    if (abandoned && all_wait(e))
        e->in_step = e->abandoned = false;
    bool in_step = e->in_step;
    engine_let_go(e);
    if (in_step && abandoned)
        return engine_refuse(e, EBUSY, "a step that did not begin in time is still ending: try again");
    if (in_step)
        return engine_refuse(e, EBUSY, "a step is running");
    for (uint32_t n = 0; n < e->thread_count; n++) {
        enum thread_state state = worker_state(&e->threads[n].worker);
        if (state == THREAD_DIED || state == THREAD_EXITED)
            return engine_refuse(e, ESRCH, "workload thread %u has died", n);
        if (state != THREAD_WAITING)
            return engine_refuse(e, EBUSY, "workload thread %u is held by the kernel, with I/O of the last step", n);
    }
    return 0;
}

struct clock_map engine_anchor(struct engine *e)
{
    if (!e->counted)
        return (struct clock_map){0};
    struct reading now = tsc_bracket(CLOCK_MONOTONIC);
    return calibration_add(&e->calibration, &now);
}
