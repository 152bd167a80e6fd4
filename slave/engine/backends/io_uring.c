/* The backends io_uring and nvme: one ring per workload thread, which alone enters it. They differ in what they put
 * into the ring: reads and writes, or NVMe commands (nvme.h).
 *
 * Completions are put into the ring when this thread asks for them, which every submit call does too; the ring's flags
 * say when there are some, so a poll costs no system call. With `polled`, every poll asks the device.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "backend.h"
#include "fixed_resources.h"
#include "luns/nvme_namespace.h"
#include "nvme.h"
#include "ring.h"
#include "time/clock.h"

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x00000008
#endif
#ifndef IORING_SQ_TASKRUN
#define IORING_SQ_TASKRUN (1U << 2)
#endif

/* IORING_OP_URING_CMD, BLOCK_URING_CMD_DISCARD of Linux 6.12: later than the headers of some machines. */
enum { URING_CMD = 46, TRIM_COMMAND = _IO(0x12, 0), ADDR3_AT = 48 };

/* Of the enum io_uring_register_op, which older headers have without it; and how many are enough. */
enum { REGISTER_IOWQ_MAX_WORKERS = 19, MOST_WORKERS = 256 };

struct uring {
    struct ring ring;
    struct fixed_resources fixed;
    bool polls;    /* this thread looks into the device's queues, which raise no interrupt */
    uint32_t tail; /* behind the last that was submitted */
    uint32_t in_flight;
    uint32_t workers; /* of the kernel's, which this thread may have at once; 0: as many as the kernel has it */
};

static int uring_probe(uint32_t options)
{
    struct ring ring;
    int result = ring_open(&ring, 1, options);

    if (result == 0)
        ring_close(&ring);
    return result;
}

static int uring_open(void **context, uint32_t depth, uint32_t options)
{
    struct uring *u = calloc(1, sizeof *u);

    if (!u)
        return -ENOMEM;
    int result = ring_open(&u->ring, depth, options);
    if (result != 0) {
        free(u);
        return result;
    }
    u->fixed.ring = &u->ring;
    u->fixed.generic = u->ring.wide;
    u->polls = options & BACKEND_POLLED;
    *context = u;
    return 0;
}

static int nvme_open(void **context, uint32_t depth, uint32_t options)
{
    return uring_open(context, depth, options | RING_WIDE);
}

static void uring_close(void *context)
{
    struct uring *u = context;

    ring_close(&u->ring);
    fixed_resources_free(&u->fixed);
    free(u);
}

static bool needs_workers(const struct instance *i)
{
    const struct setting *s = &i->parameters.setting;

    return i->lun->buffered || setting_has(s, OP_WRITE_ZEROES) || (setting_has(s, OP_TRIM) && !i->lun->device);
}

/* What would wait for the page cache, and what zeroes, the kernel hands to workers, by default at most 4 for each core:
 * as many as there may be such I/Os, so that each of them is in flight. Before Linux 5.15 the default stays. */
static void raise_workers(struct uring *u, const struct instance *instances, uint32_t slots)
{
    uint32_t workers[2] = {0}, tags = 0; /* of files and block devices, of all else; 0: asks */

    for (uint32_t n = 0; n < slots && tags < MOST_WORKERS; n++)
        if (instances[n].lun && needs_workers(&instances[n]))
            tags += instances[n].ceiling.tags;
    if (tags > MOST_WORKERS)
        tags = MOST_WORKERS;
    if (tags <= u->workers || ring_register(&u->ring, REGISTER_IOWQ_MAX_WORKERS, workers, 2) != 0)
        return;
    u->workers = tags;
    if (tags <= workers[0])
        return;
    workers[0] = tags;
    workers[1] = 0;
    ring_register(&u->ring, REGISTER_IOWQ_MAX_WORKERS, workers, 2);
}

static int uring_attach(void *context, const struct instance *instances, uint32_t slots)
{
    struct uring *u = context;

    raise_workers(u, instances, slots);
    return fixed_resources_attach(&u->fixed, instances, slots);
}

static void uring_detach(void *context, uint32_t slot)
{
    struct uring *u = context;

    fixed_resources_detach(&u->fixed, slot);
}

/* Submission. */

static struct io_uring_sqe *sqe_at(const struct uring *u, uint32_t at)
{
    return &u->ring.sqes[((u->tail + at) & u->ring.sq_mask) << u->ring.wide];
}

/* An entry that would read. */
static void change_to_flush(struct io_uring_sqe *sqe, const struct tag *tag)
{
    *sqe = (struct io_uring_sqe){
        .opcode = IORING_OP_FSYNC,
        .fd = sqe->fd,
        .flags = sqe->flags,
        .fsync_flags = tag->op == OP_FDATASYNC ? IORING_FSYNC_DATASYNC : 0,
        .user_data = sqe->user_data,
    };
}

/* On nothing, so that it does nothing: as the request is wrong, only its place in the list of what could be wrong says
 * what the kernel knows. Before Linux 6.12 it has no such command, and drivers without trims say the same. */
static int try_trim(struct ring *ring, int fd)
{
    struct io_uring_sqe *sqe = ring->sqes;

    *sqe = (struct io_uring_sqe){.opcode = URING_CMD, .fd = fd, .off = TRIM_COMMAND};
    atomic_store_explicit(ring->sq_tail, 1, memory_order_release);
    if (ring_enter(ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
        return 0; /* nothing is known */
    return ring->cqes[0].res;
}

static int uring_probe_trim(int fd)
{
    struct ring ring;

    if (ring_open(&ring, 1, 0) != 0)
        return 0; /* whoever opens a context says why */
    int result = try_trim(&ring, fd);
    ring_close(&ring);
    return result == -EOPNOTSUPP ? result : 0;
}

/* Of a block device, a command with its first byte in `addr` and its length in `addr3`, which older headers lack. */
static void change_to_trim(struct io_uring_sqe *sqe, const struct tag *tag)
{
    uint64_t bytes = tag_bytes(tag);

    *sqe = (struct io_uring_sqe){
        .opcode = URING_CMD,
        .fd = sqe->fd,
        .flags = sqe->flags,
        .off = TRIM_COMMAND,
        .addr = tag_offset(tag),
        .user_data = sqe->user_data,
    };
    memcpy((char *)sqe + ADDR3_AT, &bytes, sizeof bytes);
}

static void change_to_fallocate(struct io_uring_sqe *sqe, const struct tag *tag, uint32_t mode)
{
    *sqe = (struct io_uring_sqe){
        .opcode = IORING_OP_FALLOCATE,
        .fd = sqe->fd,
        .flags = sqe->flags,
        .off = tag_offset(tag),
        .addr = tag_bytes(tag),
        .len = mode | FALLOC_FL_KEEP_SIZE,
        .user_data = sqe->user_data,
    };
}

/* No read or write. */
static void change_to_other(struct io_uring_sqe *sqe, const struct tag *tag)
{
    if (tag->op == OP_WRITE_ZEROES)
        change_to_fallocate(sqe, tag, FALLOC_FL_ZERO_RANGE);
    else if (tag->op != OP_TRIM)
        change_to_flush(sqe, tag);
    else if (tag->instance->lun->device)
        change_to_trim(sqe, tag);
    else
        change_to_fallocate(sqe, tag, FALLOC_FL_PUNCH_HOLE);
}

static void change_to_write(struct io_uring_sqe *sqe, const struct tag *tag, const struct place *place)
{
    sqe->addr = (uint64_t)(uintptr_t)tag_buffer(tag, true);
    sqe->rw_flags |= tag->instance->write_flags;
    sqe->opcode = place->buffers ? IORING_OP_WRITE_FIXED : IORING_OP_WRITE;
}

static void fill(const struct uring *u, struct io_uring_sqe *sqe, struct tag *tag)
{
    const struct instance *i = tag->instance;
    const struct place *place = &u->fixed.places[i->slot];

    *sqe = (struct io_uring_sqe){
        .fd = place->file ? (int32_t)i->slot : i->lun->fd,
        .flags = place->file ? IOSQE_FIXED_FILE : 0,
        .off = tag_offset(tag),
        .addr = (uint64_t)(uintptr_t)tag_buffer(tag, false),
        .len = tag_bytes(tag),
        .rw_flags = tag->nowait ? RWF_NOWAIT : 0,
        .user_data = (uint64_t)(uintptr_t)tag,
    };
    if (place->buffers) {
        sqe->opcode = IORING_OP_READ_FIXED;
        sqe->buf_index = (uint16_t)i->slot;
    } else {
        sqe->opcode = IORING_OP_READ;
    }
    if (tag->op == OP_READ)
        return;
    if (tag->op == OP_WRITE)
        change_to_write(sqe, tag, place);
    else
        change_to_other(sqe, tag);
}

/* Behind the ring's tail, as the next to go; only the submit call moves that. */
static void uring_prepare(void *context, struct tag *const *tags, uint32_t count)
{
    struct uring *u = context;

    for (uint32_t n = 0; n < count && n < u->ring.sq_entries; n++)
        fill(u, sqe_at(u, n), tags[n]);
}

static void nvme_prepare(void *context, struct tag *const *tags, uint32_t count)
{
    struct uring *u = context;

    for (uint32_t n = 0; n < count && n < u->ring.sq_entries; n++)
        nvme_fill(&u->ring, sqe_at(u, n), tags[n], &u->fixed.places[tags[n]->instance->slot]);
}

static int submit(struct uring *u, uint32_t count)
{
    atomic_store_explicit(u->ring.sq_tail, u->tail + count, memory_order_release);
    int taken = ring_enter(&u->ring, count, 0, IORING_ENTER_GETEVENTS, NULL, 0);
    /* What it did not take must not go with the next call, which may come with others. */
    uint32_t behind = atomic_load_explicit(u->ring.sq_head, memory_order_acquire);
    atomic_store_explicit(u->ring.sq_tail, behind, memory_order_release);
    uint32_t went = behind - u->tail;
    u->tail = behind;
    u->in_flight += went;
    if (went)
        return (int)went;
    return taken == -EBUSY ? -EAGAIN : taken;
}

static int uring_submit(void *context, struct tag *const *tags, uint32_t count)
{
    struct uring *u = context;

    if (sqe_at(u, 0)->user_data != (uint64_t)(uintptr_t)tags[0])
        (u->ring.wide ? nvme_prepare : uring_prepare)(u, tags, count);
    return submit(u, count);
}

/* Completions. */

static uint32_t reap(struct uring *u, struct completion *completions, uint32_t room)
{
    uint32_t head = atomic_load_explicit(u->ring.cq_head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(u->ring.cq_tail, memory_order_acquire);
    uint32_t count = 0;

    for (; head != tail && count < room; head++, count++) {
        const struct io_uring_cqe *cqe = &u->ring.cqes[(head & u->ring.cq_mask) << u->ring.wide];
        struct tag *tag = (struct tag *)(uintptr_t)cqe->user_data;
        completions[count] = (struct completion){.tag = tag,
                                                 .result = u->ring.wide ? nvme_result(tag, cqe->res) : cqe->res};
    }
    if (count)
        atomic_store_explicit(u->ring.cq_head, head, memory_order_release);
    u->in_flight -= count;
    return count;
}

/* Whether completions reach the ring only by a system call. */
static bool must_enter(const struct uring *u)
{
    if (u->polls)
        return u->in_flight > 0;
    return atomic_load_explicit(u->ring.sq_flags, memory_order_relaxed) & IORING_SQ_TASKRUN;
}

/* What came of a wait; that it was cut short is no error. */
static int reap_after(struct uring *u, int result, struct completion *completions, uint32_t room)
{
    if (result < 0 && result != -ETIME && result != -EINTR && result != -EAGAIN && result != -EBUSY)
        return result;
    return (int)reap(u, completions, room);
}

static int enter_and_reap(struct uring *u, struct completion *completions, uint32_t room)
{
    return reap_after(u, ring_enter(&u->ring, 0, 0, IORING_ENTER_GETEVENTS, NULL, 0), completions, room);
}

static int uring_reap(void *context, struct completion *completions, uint32_t room)
{
    struct uring *u = context;
    uint32_t count = reap(u, completions, room);

    return count == 0 && must_enter(u) ? enter_and_reap(u, completions, room) : (int)count;
}

/* The kernel would poll without end, whatever the timeout. */
static int wait_polling(struct uring *u, uint64_t timeout_ns, struct completion *completions, uint32_t room)
{
    uint64_t until_ns = clock_now() + timeout_ns;
    int count;

    if (u->in_flight == 0) {
        struct timespec time = clock_timespec(timeout_ns);
        clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
        return 0;
    }
    do
        count = enter_and_reap(u, completions, room);
    while (count == 0 && clock_now() < until_ns);
    return count;
}

static int wait_asleep(struct uring *u, uint64_t timeout_ns, struct completion *completions, uint32_t room)
{
    struct __kernel_timespec timeout = {.tv_sec = (int64_t)(timeout_ns / NS_PER_S),
                                        .tv_nsec = (int64_t)(timeout_ns % NS_PER_S)};
    struct io_uring_getevents_arg argument = {.ts = (uint64_t)(uintptr_t)&timeout};
    const uint32_t flags = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG;
    int result = ring_enter(&u->ring, 0, 1, flags, &argument, sizeof argument);

    /* After a sleep it puts one completion into the ring. The others, which came meanwhile, need another call. */
    if (must_enter(u))
        ring_enter(&u->ring, 0, 0, IORING_ENTER_GETEVENTS, NULL, 0);
    return reap_after(u, result, completions, room);
}

static int uring_wait(void *context, uint64_t timeout_ns, struct completion *completions, uint32_t room)
{
    struct uring *u = context;
    uint32_t count = reap(u, completions, room);

    if (count)
        return (int)count;
    return (u->polls ? wait_polling : wait_asleep)(u, timeout_ns, completions, room);
}

static const char *uring_missing(int error)
{
    switch (error) {
    case -EPERM:
    case -EACCES:
        return "a seccomp filter forbids it, as those of containers do: run the slave outside, or allow "
               "io_uring_setup, io_uring_enter and io_uring_register";
    case -ENOMEM:
        return "the limit of locked memory is too low: raise it (ulimit -l, LimitMEMLOCK)";
    case -ENOSYS:
        return "this kernel has no io_uring that can wait with a timeout (5.11 has), or a seccomp filter hides it";
    default:
        return NULL;
    }
}

static const char *commands_missing(int error)
{
    switch (error) {
    case -EINVAL:
        return "this kernel's io_uring has no commands for drivers (Linux 5.19 has): use "
               "`engine: { backend: io_uring }`";
    case -ENODEV:
        return "no NVMe namespace here has a generic device (/dev/ng0n1): use `engine: { backend: io_uring }`";
    default:
        return uring_missing(error);
    }
}

static const char *uring_remedy(int error)
{
    switch (error) {
    case -EOVERFLOW:
        return "an io_uring holds at most 65,535 I/Os: lower maxtags, or use more threads";
    case -ENOMEM:
        return "io_uring keeps I/O buffers locked in memory: raise the limit of locked memory (ulimit -l, "
               "LimitMEMLOCK), lower maxtags, or use `engine: { backend: libaio }`";
    default:
        return NULL;
    }
}

const struct backend backend_io_uring = {
    .name = "io_uring",
    .abilities = {.polled = true,
                  .hands_over = true,
                  .counted_by_diskstats = true,
                  .buffered = true,
                  .trims = true,
                  .needs_io_uring = true},
    .probe = uring_probe,
    .probe_trim = uring_probe_trim,
    .open = uring_open,
    .close = uring_close,
    .attach = uring_attach,
    .detach = uring_detach,
    .prepare = uring_prepare,
    .submit = uring_submit,
    .reap = uring_reap,
    .wait = uring_wait,
    .missing = uring_missing,
    .remedy = uring_remedy,
};

/* Not polled: Linux 6.1 polls commands by a bio that may be gone, and crashes (bio_poll). */
const struct backend backend_nvme = {
    .name = "nvme",
    .abilities = {.needs_io_uring = true},
    .probe = nvme_probe,
    .take = nvme_namespace_open,
    .open = nvme_open,
    .close = uring_close,
    .attach = uring_attach,
    .detach = uring_detach,
    .prepare = nvme_prepare,
    .submit = uring_submit,
    .reap = uring_reap,
    .wait = uring_wait,
    .missing = commands_missing,
    .remedy = uring_remedy,
};
