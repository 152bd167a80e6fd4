#define _GNU_SOURCE
#include "core_use.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "time/clock.h"

enum { MOST_STATES = 10 };

/* What the thread leaves below this part of the time shows nothing. */
enum { SHOWS_FROM = 64 };

static bool read_number(const char *path, uint64_t *number)
{
    char text[32];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;

    if (fd >= 0)
        close(fd);
    if (length <= 0)
        return false;
    text[length] = '\0';
    *number = strtoull(text, NULL, 10);
    return true;
}

/* Of all its states, ns; 0 if it has none. */
static uint64_t idle_time(int cpu)
{
    uint64_t sum_us = 0, us = 0;
    char path[80];

    for (int state = 0; cpu >= 0 && state < MOST_STATES; state++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpuidle/state%d/time", cpu, state);
        if (!read_number(path, &us))
            break;
        sum_us += us;
    }
    return sum_us * 1000;
}

bool core_use_wanted(struct core_use *c, int cpu, uint64_t now_ns)
{
    struct core_use before = *c;

    *c = (struct core_use){.seen_ns = now_ns, .cpu_ns = clock_thread_cpu(), .idle_ns = idle_time(cpu)};
    if (before.idle_ns == 0 || c->idle_ns == 0)
        return false;
    uint64_t elapsed_ns = c->seen_ns - before.seen_ns, used_ns = c->cpu_ns - before.cpu_ns;
    uint64_t left_ns = elapsed_ns > used_ns ? elapsed_ns - used_ns : 0;
    return left_ns > elapsed_ns / SHOWS_FROM && c->idle_ns - before.idle_ns < left_ns / 2;
}
