/* An I/O as an NVMe command in an io_uring (IORING_OP_URING_CMD on the namespace's generic device): past the file
 * system, the block layer's splitting and its I/O scheduler.
 *
 * Source of the layouts: linux/io_uring.h and linux/nvme_ioctl.h of Linux 5.19, which older headers lack.
 */
#ifndef IVYPY_NVME_H
#define IVYPY_NVME_H

#include "fixed_resources.h"

/* Behind the command stands nothing that the kernel reads, up to the end of an entry of 128 bytes. */
struct nvme_command {
    uint8_t opcode, flags;
    uint16_t reserved;
    uint32_t nsid, cdw2, cdw3;
    uint64_t metadata, addr;
    uint32_t metadata_len, data_len, cdw10, cdw11, cdw12, cdw13, cdw14, cdw15, timeout_ms, reserved2;
};

enum { NVME_COMMAND_AT = 48 }; /* in the entry */

/* 0 if this kernel has such commands and a generic device, else -errno: ENODEV where only the device is missing. */
int nvme_probe(uint32_t options);

/* The entry, of twice the common length. */
void nvme_fill(const struct ring *ring, struct io_uring_sqe *sqe, struct tag *tag, const struct place *place);

/* Of a completion's: -errno, or -(NVME_STATUS + status). */
int64_t nvme_failure(int32_t result);

/* Bytes, or a failure. */
static inline int64_t nvme_result(const struct tag *tag, int32_t result)
{
    return result == 0 ? (int64_t)tag_bytes(tag) : nvme_failure(result);
}

#endif
