#define _GNU_SOURCE
#include "queue.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "io_buffers.h"

enum { PAGE = 4096, PATH = 4096, TRIAL = 1 << 20, TRIALS = 4 };

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
    uint32_t sectors = number_of_disk(folder, "queue/chunk_sectors");

    *q = (struct queue){
        .device = disk(folder),
        .max_bytes = kilobytes < UINT32_MAX / 1024 ? kilobytes * 1024 : 0,
        .max_segments = number_of_disk(folder, "queue/max_segments"),
        .max_segment_bytes = number_of_disk(folder, "queue/max_segment_size"),
        .chunk_bytes = sectors < UINT32_MAX / 512 ? sectors * 512 : 0,
        .polls = number_of_disk(folder, "queue/io_poll") == 1,
    };
    if (read_hw_queues(q, folder) || is_old_driver(folder, release))
        q->nr_requests = number_of_disk(folder, "queue/nr_requests");
}

void queue_free(struct queue *q)
{
    hw_queues_free(&q->hw_queues);
}

static uint32_t divide_up(uint32_t n, size_t by)
{
    return by ? (uint32_t)(n / by + (n % by != 0)) : 1;
}

/* Pieces of memory: each in one huge page, and no larger than the device takes; or pages. */
static uint32_t segments(const struct queue *q, uint32_t blocksize, bool huge)
{
    if (!huge || q->by_page)
        return divide_up(blocksize, PAGE);
    uint32_t in_huge_pages = divide_up(blocksize, HUGE_PAGE) + 1;
    bool smaller = q->max_segment_bytes && q->max_segment_bytes < HUGE_PAGE;
    return in_huge_pages + (smaller ? divide_up(blocksize, q->max_segment_bytes) : 0);
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

uint16_t queue_requests_per_io(const struct queue *q, uint32_t blocksize, bool huge)
{
    if (q->nr_requests == 0)
        return 1;
    uint32_t by_size = divide_up(blocksize, q->max_bytes);
    uint32_t by_segments = divide_up(segments(q, blocksize, huge), q->max_segments);
    uint32_t by_chunks = !q->chunk_bytes || q->chunk_bytes % blocksize == 0 ? 1
                                                                            : divide_up(blocksize, q->chunk_bytes) + 1;
    uint32_t requests = larger(larger(by_size, by_segments), by_chunks);

    return requests < UINT16_MAX ? (uint16_t)requests : UINT16_MAX;
}

/* What the device has done: reads and writes completed, and how many are in flight. */
struct done {
    unsigned long long reads, writes, in_flight;
};

static bool read_counters(const char *folder, struct done *d)
{
    char text[512];

    return read_text(folder, "", "stat", text, sizeof text) &&
           sscanf(text, "%llu %*u %*u %*u %llu %*u %*u %*u %llu", &d->reads, &d->writes, &d->in_flight) == 3;
}

/* How many requests one read is; 0: that cannot be told, for others use the device, or it does not count. */
static uint32_t requests_of_a_read(const char *folder, int fd, char *data)
{
    const struct timespec moment = {.tv_nsec = 200000}; /* the kernel counts a request after it has reported it */
    struct done before, after, later;

    if (!read_counters(folder, &before) || pread(fd, data, TRIAL, TRIAL) != TRIAL)
        return 0;
    nanosleep(&moment, NULL);
    if (!read_counters(folder, &after))
        return 0;
    nanosleep(&moment, NULL);
    if (!read_counters(folder, &later) || before.in_flight || after.in_flight || after.writes != before.writes ||
        memcmp(&after, &later, sizeof after) != 0)
        return 0;
    return (uint32_t)(after.reads - before.reads);
}

void queue_try(struct queue *q, const char *folder, int fd, uint64_t size)
{
    uint32_t expected = queue_requests_per_io(q, TRIAL, true), last = 0;
    size_t taken = HUGE_PAGE;

    if (size < 2 * TRIAL || expected == queue_requests_per_io(q, TRIAL, false))
        return;
    char *data = io_buffers_take(&taken, false);
    if (!data)
        return;
    memset(data, 1, taken);
    for (uint32_t n = 0; n < TRIALS; n++) {
        uint32_t requests = requests_of_a_read(folder, fd, data);
        if (requests > expected && requests == last) {
            q->by_page = true;
            break;
        }
        if (requests && requests <= expected)
            break;
        last = requests;
    }
    io_buffers_free(data, taken);
}
