/* A thing that is driven: a block device or a file, opened with O_DIRECT.
 *
 * Rule: opened read-only unless the caller has the user's consent, so that the kernel enforces it. What limits
 * submission is found out here, once: the queue below (nr_requests, the largest request, its hardware queues),
 * and whether the LUN takes RWF_NOWAIT.
 */
#ifndef IVYPY_LUN_H
#define IVYPY_LUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hw_queues.h"

/* The kernel's queue below one or more LUNs: partitions of a disk, and files on it, share theirs. */
struct queue {
    dev_t device;         /* the whole disk's */
    uint32_t nr_requests; /* in flight at once in each of its hardware queues; submitting more blocks */
    uint32_t max_bytes;   /* of one request; a larger I/O is split */
    uint32_t max_segments;
};

struct lun {
    char *path;
    int fd;
    bool device;   /* a block device, else a file */
    bool writable;
    bool nowait;   /* takes RWF_NOWAIT */
    uint64_t size; /* bytes */
    uint32_t block; /* O_DIRECT's unit, bytes */
    bool has_queue;
    bool polls; /* the queue's completions can be polled for */
    struct queue queue;
    struct hw_queues hw_queues; /* below the queue */
    uint32_t queue_id; /* the same for all LUNs above one queue */
    uint32_t users; /* workload instances on it */
};

/* 0 or -errno: ENOTBLK where it is neither block device nor file. */
int lun_open(struct lun *lun, const char *path, const char *name, bool writable);
void lun_close(struct lun *lun);

/* How many requests of the queue one I/O of `blocksize` bytes takes; 1 where there is no queue. */
uint16_t lun_requests_per_io(const struct lun *lun, uint32_t blocksize);

#endif
