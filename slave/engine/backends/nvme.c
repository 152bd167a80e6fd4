#include "nvme.h"

#include <errno.h>
#include <linux/ioctl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "luns/nvme_namespace.h"

enum { URING_CMD = 46, COMMAND_FIXED = 1 }; /* IORING_OP_URING_CMD, IORING_URING_CMD_FIXED */
enum { NVME_FLUSH = 0x00, NVME_WRITE = 0x01, NVME_READ = 0x02 };

#define NVME_FUA (1U << 30) /* in cdw12: done once it is on the medium */
enum { PAGE = 4096 };

#define NVME_COMMAND_IO _IOWR('N', 0x80, struct nvme_command)

_Static_assert(sizeof(struct nvme_command) == 72, "as linux/nvme_ioctl.h has struct nvme_uring_cmd");
_Static_assert(offsetof(struct nvme_command, addr) == 24 && offsetof(struct nvme_command, cdw10) == 40, "likewise");
_Static_assert(offsetof(struct nvme_command, cdw12) == 48, "likewise");
_Static_assert(NVME_COMMAND_AT + sizeof(struct nvme_command) <= 2 * sizeof(struct io_uring_sqe), "it fits");

int nvme_probe(uint32_t options)
{
    struct ring ring;
    int result = ring_open(&ring, 1, options | RING_WIDE);

    if (result != 0)
        return result;
    ring_close(&ring);
    return access("/sys/class/nvme-generic", F_OK) == 0 ? 0 : -ENODEV;
}

/* The registered buffers as one piece: up to Linux 6.12 the kernel refuses, or copies, a command whose registered
 * buffer is more pages than the device takes pieces, however few of them the command uses. Linux 6.1, which is known by
 * DEFER_TASKRUN, takes registered buffers first. */
static bool is_fixed(const struct ring *ring, const struct instance *i, const struct place *place)
{
    return place->buffers && ring->setup & IORING_SETUP_DEFER_TASKRUN &&
           i->data_size / PAGE <= i->lun->queue.max_segments;
}

/* The kernel lets root write through a descriptor that is open read-only: so a write on such a LUN gets none. */
static void name_file(struct io_uring_sqe *sqe, const struct tag *tag, const struct place *place)
{
    const struct instance *i = tag->instance;

    if (tag->op == OP_WRITE && !i->lun->writable) {
        sqe->fd = -1;
    } else if (place->file) {
        sqe->fd = (int32_t)i->slot;
        sqe->flags = IOSQE_FIXED_FILE;
    } else {
        sqe->fd = i->lun->generic;
    }
}

static void put(struct io_uring_sqe *sqe, const struct tag *tag, const struct place *place,
                const struct nvme_command *command)
{
    memset(sqe, 0, 2 * sizeof *sqe);
    sqe->opcode = URING_CMD;
    sqe->off = NVME_COMMAND_IO; /* cmd_op lies there */
    sqe->user_data = (uint64_t)(uintptr_t)tag;
    name_file(sqe, tag, place);
    memcpy((char *)sqe + NVME_COMMAND_AT, command, sizeof *command);
}

/* It knows no data without metadata: fdatasync is the same. */
static void fill_flush(struct io_uring_sqe *sqe, const struct tag *tag, const struct place *place)
{
    struct nvme_command command = {.opcode = NVME_FLUSH, .nsid = tag->instance->lun->nsid};

    put(sqe, tag, place, &command);
}

static void fill_io(const struct ring *ring, struct io_uring_sqe *sqe, struct tag *tag, const struct place *place)
{
    const struct instance *i = tag->instance;
    uint64_t first = tag_offset(tag) / i->lun->block;
    struct nvme_command command = {
        .opcode = tag->op == OP_WRITE ? NVME_WRITE : NVME_READ,
        .nsid = i->lun->nsid,
        .addr = (uint64_t)(uintptr_t)tag_buffer(tag, tag->op == OP_WRITE),
        .data_len = tag_bytes(tag),
        .cdw10 = (uint32_t)first,
        .cdw11 = (uint32_t)(first >> 32),
        .cdw12 = tag_bytes(tag) / i->lun->block - 1, /* NVMe counts from 0 */
    };

    if (tag->op == OP_WRITE && i->write_flags)
        command.cdw12 |= NVME_FUA;
    put(sqe, tag, place, &command);
    if (is_fixed(ring, i, place)) {
        sqe->rw_flags = COMMAND_FIXED; /* uring_cmd_flags lie there */
        sqe->buf_index = (uint16_t)i->slot;
    }
}

void nvme_fill(const struct ring *ring, struct io_uring_sqe *sqe, struct tag *tag, const struct place *place)
{
    if (tag->op == OP_READ || tag->op == OP_WRITE)
        fill_io(ring, sqe, tag, place);
    else
        fill_flush(sqe, tag, place);
}

int64_t nvme_failure(int32_t result)
{
    return result < 0 ? result : -(NVME_STATUS + (result & NVME_STATUS_MASK));
}
