#define _GNU_SOURCE
#include "lun.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x00000008
#endif

enum { PAGE = 4096 };

/* The text of an attribute of the disk that `device` is, or is a partition of. */
static bool read_sysfs(dev_t device, const char *name, char *text, size_t size)
{
    static const char *const places[] = {"", "../"}; /* a disk's own directory; a partition lies in its disk's */
    char path[128];

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "/sys/dev/block/%u:%u/%s%s", major(device), minor(device), places[i], name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        ssize_t length = read(fd, text, size - 1);
        close(fd);
        if (length <= 0)
            return false;
        text[length] = '\0';
        return true;
    }
    return false;
}

/* 0 where there is none. */
static uint32_t sysfs_number(dev_t device, const char *name)
{
    char text[32];

    if (!read_sysfs(device, name, text, sizeof text))
        return 0;
    unsigned long long number = strtoull(text, NULL, 10);
    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

/* The disk that a device is, or is a partition of. */
static dev_t whole_disk(dev_t device)
{
    char path[64], text[32];
    unsigned disk_major, disk_minor;

    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/partition", major(device), minor(device));
    if (access(path, F_OK) != 0)
        return device;
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/../dev", major(device), minor(device));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return device;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return device;
    text[length] = '\0';
    return sscanf(text, "%u:%u", &disk_major, &disk_minor) == 2 ? makedev(disk_major, disk_minor) : device;
}

/* Without memory for it the queue is taken for one, as where there is nothing to be read. */
static void find_hw_queues(struct lun *lun, dev_t device)
{
    char folder[64];

    snprintf(folder, sizeof folder, "/sys/dev/block/%u:%u/mq", major(device), minor(device));
    if (hw_queues_read(&lun->hw_queues, folder))
        return;
    snprintf(folder, sizeof folder, "/sys/dev/block/%u:%u/../mq", major(device), minor(device)); /* a partition's */
    hw_queues_read(&lun->hw_queues, folder);
}

/* Drivers without a request queue (zram) have no nr_requests, or 0: nothing to cap. So have file systems that are on
 * no single device (btrfs, tmpfs, network). */
static void find_queue(struct lun *lun, dev_t device)
{
    uint32_t kilobytes = sysfs_number(device, "queue/max_sectors_kb");

    lun->queue = (struct queue){
        .device = whole_disk(device),
        .nr_requests = sysfs_number(device, "queue/nr_requests"),
        .max_bytes = kilobytes < UINT32_MAX / 1024 ? kilobytes * 1024 : 0,
        .max_segments = sysfs_number(device, "queue/max_segments"),
    };
    lun->has_queue = lun->queue.nr_requests > 0;
    if (lun->has_queue)
        find_hw_queues(lun, device);
    lun->polls = sysfs_number(device, "queue/io_poll") == 1;
}

static void *aligned_page(void)
{
    void *page = NULL;

    return posix_memalign(&page, PAGE, PAGE) == 0 ? page : NULL;
}

/* The smallest unit that O_DIRECT takes on a file: found by reading, as old kernels do not tell. */
static uint32_t file_block(int fd, void *page)
{
    for (uint32_t unit = 512; unit < PAGE; unit *= 2)
        if (pread(fd, page, unit, 0) >= 0)
            return unit;
    return PAGE;
}

/* Of block devices only. Loop devices (over memory, files and FUSE were tried) say EAGAIN when their queue is full and
 * never else; zram, which has no queue, does not take it. A file system says EAGAIN for reasons that waiting does not
 * cure (an extent that is not in memory, a lock, a block to allocate), so for files it says nothing about a full queue.
 * The probe leaves out block 0, as all I/O does. */
static bool takes_nowait(const struct lun *lun, void *page)
{
    struct iovec vector = {.iov_base = page, .iov_len = lun->block <= PAGE ? lun->block : PAGE};

    if (lun->size < 2 * (uint64_t)lun->block)
        return false;
    return preadv2(lun->fd, &vector, 1, lun->block, RWF_NOWAIT) >= 0 || errno == EAGAIN;
}

static int inspect(struct lun *lun)
{
    struct stat status;
    void *page = aligned_page();
    int unit = 0, result = 0;

    if (!page)
        return -ENOMEM;
    if (fstat(lun->fd, &status) != 0) {
        result = -errno;
    } else if (S_ISBLK(status.st_mode)) {
        lun->device = true;
        if (ioctl(lun->fd, BLKGETSIZE64, &lun->size) != 0 || ioctl(lun->fd, BLKSSZGET, &unit) != 0)
            result = -errno;
        lun->block = (uint32_t)unit;
        if (result == 0) {
            find_queue(lun, status.st_rdev);
            lun->nowait = takes_nowait(lun, page);
        }
    } else if (S_ISREG(status.st_mode)) {
        lun->size = (uint64_t)status.st_size;
        lun->block = file_block(lun->fd, page);
        find_queue(lun, status.st_dev);
    } else {
        result = -ENOTBLK;
    }
    free(page);
    return result;
}

int lun_open(struct lun *lun, const char *path, const char *name, bool writable)
{
    *lun = (struct lun){.path = strdup(name), .writable = writable};
    if (!lun->path)
        return -ENOMEM;
    lun->fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_DIRECT | O_CLOEXEC);
    if (lun->fd < 0) {
        int result = -errno;
        free(lun->path);
        return result;
    }
    int result = inspect(lun);
    if (result != 0)
        lun_close(lun);
    return result;
}

void lun_close(struct lun *lun)
{
    close(lun->fd);
    free(lun->path);
    hw_queues_free(&lun->hw_queues);
    *lun = (struct lun){.fd = -1};
}

static uint32_t divide_up(uint32_t n, uint32_t by)
{
    return by ? n / by + (n % by != 0) : 1;
}

uint16_t lun_requests_per_io(const struct lun *lun, uint32_t blocksize)
{
    if (!lun->has_queue)
        return 1;
    uint32_t by_size = divide_up(blocksize, lun->queue.max_bytes);
    uint32_t by_segments = divide_up(divide_up(blocksize, PAGE), lun->queue.max_segments);
    uint32_t requests = by_size > by_segments ? by_size : by_segments;

    return requests < UINT16_MAX ? (uint16_t)requests : UINT16_MAX;
}
