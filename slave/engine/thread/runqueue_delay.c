#define _GNU_SOURCE
#include "runqueue_delay.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int runqueue_delay_open(void)
{
    return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

void runqueue_delay_close(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* "time on a core, time queued for one, how often"; nanoseconds. */
uint64_t runqueue_delay_ns(int fd)
{
    char text[96], *behind;
    ssize_t length = fd >= 0 ? pread(fd, text, sizeof text - 1, 0) : 0;

    if (length <= 0)
        return 0;
    text[length] = '\0';
    strtoull(text, &behind, 10);
    return strtoull(behind, NULL, 10);
}
