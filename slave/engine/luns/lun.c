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
#include <sys/utsname.h>
#include <unistd.h>

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x00000008
#endif

enum { PAGE = 4096 };

static void find_queue(struct lun *lun, dev_t device)
{
    struct utsname kernel;
    char folder[64];

    snprintf(folder, sizeof folder, "/sys/dev/block/%u:%u", major(device), minor(device));
    queue_read(&lun->queue, folder, uname(&kernel) == 0 ? kernel.release : "");
    if (lun->device)
        queue_try(&lun->queue, folder, lun->fd, lun->size);
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
        lun->on = status.st_rdev;
        if (ioctl(lun->fd, BLKGETSIZE64, &lun->size) != 0 || ioctl(lun->fd, BLKSSZGET, &unit) != 0)
            result = -errno;
        lun->block = lun->buffered ? PAGE : (uint32_t)unit;
        if (result == 0 && !lun->buffered) {
            find_queue(lun, status.st_rdev);
            lun->nowait = takes_nowait(lun, page);
        }
    } else if (S_ISREG(status.st_mode)) {
        lun->on = status.st_dev;
        lun->file = status.st_ino;
        lun->size = (uint64_t)status.st_size;
        lun->block = lun->buffered ? 1 : file_block(lun->fd, page);
        if (!lun->buffered)
            find_queue(lun, status.st_dev);
    } else {
        result = -ENOTBLK;
    }
    free(page);
    return result;
}

int lun_open(struct lun *lun, const char *path, const char *name, bool writable, bool direct)
{
    *lun = (struct lun){.path = strdup(name), .writable = writable, .buffered = !direct, .generic = -1};
    if (!lun->path)
        return -ENOMEM;
    lun->fd = open(path, (writable ? O_RDWR : O_RDONLY) | (direct ? O_DIRECT : 0) | O_CLOEXEC);
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
    if (lun->generic >= 0)
        close(lun->generic);
    free(lun->path);
    queue_free(&lun->queue);
    *lun = (struct lun){.fd = -1, .generic = -1};
}
