/* The generic device of an NVMe namespace (/dev/ng0n1), found from its block device.
 *
 * Rule: the LUN stays the block device, by which it is selected, identified, held and agreed to; the generic device is
 * opened only if the kernel says that it is the same namespace.
 */
#ifndef IVYPY_NVME_NAMESPACE_H
#define IVYPY_NVME_NAMESPACE_H

#include "lun.h"

/* An error of an I/O that is a status of NVMe, not an errno: this plus its type and code (11 bits). */
enum { NVME_STATUS = 0x8000, NVME_STATUS_MASK = 0x7ff };

/* Opens it, once, for I/Os of at most `blocksize` bytes. 0 or -errno; `*why` then says what is wrong, in words. */
int nvme_namespace_open(struct lun *lun, uint32_t blocksize, const char **why);

#endif
