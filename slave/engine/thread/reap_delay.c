#define _GNU_SOURCE
#include "reap_delay.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "thread.h"

/* "time on a core, time queued for one, how often"; nanoseconds. 0 where nothing is known. */
static uint64_t read_runqueue_ns(const struct reap_delay *d)
{
    char text[96], *behind;
    ssize_t length = d->schedstat >= 0 ? pread(d->schedstat, text, sizeof text - 1, 0) : 0;

    if (length <= 0)
        return 0;
    text[length] = '\0';
    strtoull(text, &behind, 10);
    return strtoull(behind, NULL, 10);
}

/* Since the last reading. */
static uint64_t without_core(struct reap_delay *d)
{
    uint64_t before_ns = d->runqueue_ns;

    d->runqueue_ns = read_runqueue_ns(d);
    return d->runqueue_ns > before_ns ? d->runqueue_ns - before_ns : 0;
}

void reap_delay_open(struct thread *t)
{
    t->reap_delay.schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

void reap_delay_close(struct thread *t)
{
    if (t->reap_delay.schedstat >= 0)
        close(t->reap_delay.schedstat);
}

void reap_delay_start(struct thread *t)
{
    t->reap_delay = (struct reap_delay){.schedstat = t->reap_delay.schedstat};
    t->reap_delay.runqueue_ns = read_runqueue_ns(&t->reap_delay);
}

void reap_delay_enter_loop(struct thread *t, uint64_t now_ns)
{
    t->reap_delay.last_poll_ns = now_ns;
}

void reap_delay_sleeps(struct thread *t, uint64_t now_ns)
{
    struct reap_delay *d = &t->reap_delay;

    d->watched = now_ns >= d->watch_ns && in_flight_count(&t->in_flight) > 0;
    if (!d->watched)
        return;
    d->watch_ns = now_ns + REAP_DELAY_WATCH_NS;
    d->runqueue_ns = read_runqueue_ns(d);
}

/* Here and below: how late the poll was, if known. */
static uint64_t after_sleep(struct reap_delay *d, uint32_t found, uint64_t gap_ns)
{
    uint64_t delay_ns;

    if (found == 0)
        return 0;
    if (!d->watched && gap_ns < REAP_DELAY_WATCH_NS)
        return earlier(d->watched_delay_ns, gap_ns);
    delay_ns = earlier(without_core(d), gap_ns);
    if (d->watched)
        d->watched_delay_ns = delay_ns;
    return delay_ns;
}

uint64_t reap_delay_polled(struct thread *t, uint32_t found, uint64_t now_ns, uint64_t batch_ns, bool asleep)
{
    struct reap_delay *d = &t->reap_delay;
    uint64_t gap_ns = now_ns - d->last_poll_ns;

    d->last_poll_ns = now_ns;
    d->batch_ns = batch_ns;
    d->batch_delay_ns = 0;
    d->delay_ns = gap_ns;
    if (asleep)
        d->delay_ns = after_sleep(d, found, gap_ns);
    else if (gap_ns >= REAP_DELAY_WATCH_NS) /* maybe preempted in the submit call: not the kernel's work alone */
        d->batch_delay_ns = earlier(without_core(d), gap_ns);
    return gap_ns;
}
