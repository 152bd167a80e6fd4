/* A file system of one file, dev.img, whose I/O is slow or fails as configured: put a loop device over it.
 *
 *   faultfs BACKING [FUSE options] MOUNTPOINT
 *   echo "READ_US WRITE_US READ_ERRORS_PPM WRITE_ERRORS_PPM [BAD_FROM BAD_TO]" > MOUNTPOINT/ctl
 *
 * Delays are added to every I/O; I/Os that touch the bad range fail with EIO. To hang it, stop the process (SIGSTOP).
 * With FAULTFS_SYNCHRONOUS in its environment, O_DIRECT on dev.img is done within the submit call.
 */
#define FUSE_USE_VERSION 35
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_IN_FLIGHT = 256 };

static int backing;
static off_t size;

static struct {
    _Atomic long read_us, write_us, read_errors, write_errors, bad_from, bad_to;
} faults = {.bad_from = -1, .bad_to = -1};

static void delay(long us)
{
    struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    if (us > 0)
        clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static bool fails(off_t offset, size_t length, long ppm)
{
    static _Thread_local unsigned seed;
    long from = faults.bad_from, to = faults.bad_to;

    if (seed == 0)
        seed = (unsigned)(size_t)&seed ^ (unsigned)time(NULL);
    if (from >= 0 && offset < to && offset + (off_t)length > from)
        return true;
    return ppm && rand_r(&seed) % 1000000 < ppm;
}

static int fault_getattr(const char *path, struct stat *status, struct fuse_file_info *info)
{
    (void)info;
    memset(status, 0, sizeof *status);
    status->st_nlink = 1;
    status->st_mode = S_IFREG | 0600;
    if (strcmp(path, "/") == 0)
        status->st_mode = S_IFDIR | 0755;
    else if (strcmp(path, "/dev.img") == 0)
        status->st_size = size;
    else if (strcmp(path, "/ctl") != 0)
        return -ENOENT;
    return 0;
}

static int fault_open(const char *path, struct fuse_file_info *info)
{
    if (strcmp(path, "/ctl") == 0)
        info->direct_io = 1;
    return 0;
}

static int fault_read(const char *path, char *data, size_t length, off_t offset, struct fuse_file_info *info)
{
    (void)info;
    if (strcmp(path, "/ctl") == 0)
        return 0;
    delay(faults.read_us);
    if (fails(offset, length, faults.read_errors))
        return -EIO;
    ssize_t done = pread(backing, data, length, offset);
    return done < 0 ? -errno : (int)done;
}

static int take_orders(const char *data, size_t length)
{
    long n[6] = {0, 0, 0, 0, -1, -1};
    char text[256] = {0};

    memcpy(text, data, length < sizeof text - 1 ? length : sizeof text - 1);
    sscanf(text, "%ld %ld %ld %ld %ld %ld", n, n + 1, n + 2, n + 3, n + 4, n + 5);
    faults.read_us = n[0];
    faults.write_us = n[1];
    faults.read_errors = n[2];
    faults.write_errors = n[3];
    faults.bad_from = n[4];
    faults.bad_to = n[5];
    return (int)length;
}

static int fault_write(const char *path, const char *data, size_t length, off_t offset, struct fuse_file_info *info)
{
    (void)info;
    if (strcmp(path, "/ctl") == 0)
        return take_orders(data, length);
    delay(faults.write_us);
    if (fails(offset, length, faults.write_errors))
        return -EIO;
    ssize_t done = pwrite(backing, data, length, offset);
    return done < 0 ? -errno : (int)done;
}

static int fault_truncate(const char *path, off_t length, struct fuse_file_info *info)
{
    (void)path, (void)length, (void)info;
    return 0;
}

static int fault_fsync(const char *path, int data_only, struct fuse_file_info *info)
{
    (void)path, (void)data_only, (void)info;
    return 0;
}

static void *fault_init(struct fuse_conn_info *connection, struct fuse_config *config)
{
    if (getenv("FAULTFS_SYNCHRONOUS"))
        connection->want &= ~FUSE_CAP_ASYNC_DIO;
    else if (connection->capable & FUSE_CAP_ASYNC_DIO)
        connection->want |= FUSE_CAP_ASYNC_DIO;
    connection->max_background = MOST_IN_FLIGHT;
    connection->congestion_threshold = MOST_IN_FLIGHT;
    config->kernel_cache = 0;
    return NULL;
}

static const struct fuse_operations operations = {
    .getattr = fault_getattr,
    .open = fault_open,
    .read = fault_read,
    .write = fault_write,
    .truncate = fault_truncate,
    .fsync = fault_fsync,
    .init = fault_init,
};

int main(int count, char **words)
{
    if (count < 3) {
        fprintf(stderr, "usage: faultfs BACKING [FUSE options] MOUNTPOINT\n");
        return 2;
    }
    backing = open(words[1], O_RDWR);
    if (backing < 0) {
        perror(words[1]);
        return 1;
    }
    size = lseek(backing, 0, SEEK_END);
    words[1] = words[0];
    return fuse_main(count - 1, words + 1, &operations, NULL);
}
