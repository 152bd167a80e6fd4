/* A thing that is driven: a block device or a file, opened with O_DIRECT, or buffered: through the page cache.
 *
 * Rule: opened read-only unless the caller has the user's consent, so that the kernel enforces it. What limits
 * submission is found out here, once: the queue below, and whether the LUN takes RWF_NOWAIT. Buffered, nothing does:
 * the cache submits to the queue, and when it does is its own affair.
 */
#ifndef IVYPY_LUN_H
#define IVYPY_LUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "queue.h"

struct lun {
    char *path;
    int fd;
    bool device; /* a block device, else a file */
    bool writable;
    bool buffered;
    bool nowait;               /* takes RWF_NOWAIT */
    int generic;               /* the generic device of an NVMe namespace; -1: not open */
    bool trims;                /* the backend was asked whether it takes trims, and does */
    uint32_t nsid, most_bytes; /* of that: its number, the largest I/O of one command */
    dev_t on;                  /* the device that it is, or that has the file */
    ino_t file;                /* 0: a device */
    uint64_t size;             /* bytes */
    uint32_t block;            /* the unit of its I/O, bytes: O_DIRECT's; buffered: of a device a page, of a file 1 */
    struct queue queue;
    uint32_t queue_id; /* the same for all LUNs above one queue */
    uint32_t users;    /* workload instances on it */
};

/* Whether two that are open, perhaps in other ways, are one. */
static inline bool lun_is_same(const struct lun *one, const struct lun *other)
{
    return one->on == other->on && one->file == other->file;
}

/* 0 or -errno: ENOTBLK where it is neither block device nor file. */
int lun_open(struct lun *lun, const char *path, const char *name, bool writable, bool direct);
void lun_close(struct lun *lun);

#endif
