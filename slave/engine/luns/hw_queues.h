/* A device's hardware queues (blk-mq), as far as sysfs tells of them: which cores submit to the same ones.
 *
 * Rule: nr_requests counts for each hardware queue by itself, so threads share it only if their cores submit to the
 * same one. A core is listed by one queue of each type (default, read, poll); sysfs does not tell their types, so cores
 * belong together that are listed by all the same queues. Nor does it tell whether hardware queues share one set of
 * tags (SCSI's host_tagset). In both cases more may be taken for possible than is: the kernel then says EAGAIN, and the
 * cap comes down (thread/ready_queue.c). What goes without RWF_NOWAIT (to files, or in several requests) waits in the
 * submit call, and whatever that makes late counts as late.
 */
#ifndef IVYPY_HW_QUEUES_H
#define IVYPY_HW_QUEUES_H

#include <stdbool.h>
#include <stdint.h>

/* Without several queues, all zero. */
struct hw_queues {
    uint16_t *set_of; /* by core; 0: no queue lists it, so it is not known where it submits */
    uint32_t cores;
    uint32_t sets; /* they are numbered from 1 */
};

/* Reads a device's folder `mq`. False: there is none (a device without requests of its own, an old driver). */
bool hw_queues_read(struct hw_queues *h, const char *folder);
void hw_queues_free(struct hw_queues *h);

/* The set of hardware queues that an I/O from this core may go to; 0: any (of a core that is not known, or -1). */
static inline uint32_t hw_queues_set(const struct hw_queues *h, int core)
{
    return core >= 0 && (uint32_t)core < h->cores ? h->set_of[core] : 0;
}

#endif
