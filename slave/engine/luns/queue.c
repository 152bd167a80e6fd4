#define _GNU_SOURCE
#include "queue.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { PAGE = 4096, PATH = 4096 };

/* Where the disk's folder is, seen from that of the disk or of its partition. */
static const char *const places[] = {"", "../"};

static bool read_text(const char *folder, const char *place, const char *name, char *text, size_t size)
{
    char path[PATH];

    if ((size_t)snprintf(path, sizeof path, "%s/%s%s", folder, place, name) >= sizeof path)
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, size - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* The text of an attribute of the disk. */
static bool read_of_disk(const char *folder, const char *name, char *text, size_t size)
{
    for (size_t n = 0; n < sizeof places / sizeof *places; n++)
        if (read_text(folder, places[n], name, text, size))
            return true;
    return false;
}

/* 0 where there is none. */
static uint32_t number_of_disk(const char *folder, const char *name)
{
    char text[32];

    if (!read_of_disk(folder, name, text, sizeof text))
        return 0;
    unsigned long long number = strtoull(text, NULL, 10);
    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

static dev_t disk(const char *folder)
{
    unsigned disk_major, disk_minor;
    char text[32];
    bool partition = read_text(folder, "", "partition", text, sizeof text);

    if (!read_text(folder, partition ? "../" : "", "dev", text, sizeof text))
        return 0;
    return sscanf(text, "%u:%u", &disk_major, &disk_minor) == 2 ? makedev(disk_major, disk_minor) : 0;
}

/* Without memory for it the queue is taken for one, as where there is nothing to be read. */
static bool read_hw_queues(struct queue *q, const char *folder)
{
    char path[PATH];

    for (size_t n = 0; n < sizeof places / sizeof *places; n++)
        if ((size_t)snprintf(path, sizeof path, "%s/%smq", folder, places[n]) < sizeof path &&
            hw_queues_read(&q->hw_queues, path))
            return true;
    return false;
}

/* Drivers of before blk-mq always have an I/O scheduler, if only "noop"; what has no requests has "none". */
static bool is_old_driver(const char *folder, const char *release)
{
    char text[256];

    return strtoul(release, NULL, 10) < 5 && read_of_disk(folder, "queue/scheduler", text, sizeof text) &&
           strncmp(text, "none", 4) != 0;
}

void queue_read(struct queue *q, const char *folder, const char *release)
{
    uint32_t kilobytes = number_of_disk(folder, "queue/max_sectors_kb");

    *q = (struct queue){
        .device = disk(folder),
        .max_bytes = kilobytes < UINT32_MAX / 1024 ? kilobytes * 1024 : 0,
        .max_segments = number_of_disk(folder, "queue/max_segments"),
        .polls = number_of_disk(folder, "queue/io_poll") == 1,
    };
    if (read_hw_queues(q, folder) || is_old_driver(folder, release))
        q->nr_requests = number_of_disk(folder, "queue/nr_requests");
}

void queue_free(struct queue *q)
{
    hw_queues_free(&q->hw_queues);
}

static uint32_t divide_up(uint32_t n, uint32_t by)
{
    return by ? n / by + (n % by != 0) : 1;
}

uint16_t queue_requests_per_io(const struct queue *q, uint32_t blocksize)
{
    if (q->nr_requests == 0)
        return 1;
    uint32_t by_size = divide_up(blocksize, q->max_bytes);
    uint32_t by_segments = divide_up(divide_up(blocksize, PAGE), q->max_segments);
    uint32_t requests = by_size > by_segments ? by_size : by_segments;

    return requests < UINT16_MAX ? (uint16_t)requests : UINT16_MAX;
}
