#define _GNU_SOURCE
#include "thread.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

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
