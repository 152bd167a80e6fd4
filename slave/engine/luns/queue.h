/* The kernel's queue below a block device, or below the file system that a file is on, as sysfs shows it.
 *
 * Rule: nr_requests limits only what has hardware queues (blk-mq; before Linux 5.0 also the drivers with an I/O
 * scheduler of their own). Before about Linux 6.5 the kernel shows 128 for every other device too (dm, md, the head of
 * an NVMe multipath device, zram), where it limits nothing.
 */
#ifndef IVYPY_QUEUE_H
#define IVYPY_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hw_queues.h"

/* Partitions of a disk, and files on it, share theirs. What sysfs does not show is 0. */
struct queue {
    dev_t device;         /* the whole disk's */
    uint32_t nr_requests; /* in flight at once in each of its hardware queues; submitting more blocks. 0: no limit */
    uint32_t max_bytes;   /* of one request; a larger I/O is split */
    uint32_t max_segments, max_segment_bytes; /* pieces of memory in one request */
    uint32_t chunk_bytes;                     /* no request crosses a multiple of it: stripes, zones */
    bool by_page;                             /* a trial says that memory in huge pages is no larger pieces */
    bool polls;                               /* its completions can be polled for */
    struct hw_queues hw_queues;
};

/* Of a device's folder in sysfs, /sys/dev/block/MAJOR:MINOR, on a kernel of this release ("6.1.0-10-amd64"). */
void queue_read(struct queue *q, const char *folder, const char *release);
void queue_free(struct queue *q);

/* How many requests one I/O of `blocksize` bytes takes at most, its buffer being in huge pages or not; 1 where nothing
 * is limited. */
uint16_t queue_requests_per_io(const struct queue *q, uint32_t blocksize, bool huge);

/* Reads `fd`, a block device with this folder in sysfs and so many bytes, to see whether buffers in huge pages are as
 * few requests as expected: by the device's own counters, if nobody else moves them. Nothing is read where huge pages
 * make no difference. */
void queue_try(struct queue *q, const char *folder, int fd, uint64_t size);

#endif
