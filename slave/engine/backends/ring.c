#define _GNU_SOURCE
#include "ring.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend.h"

#ifndef IORING_ENTER_REGISTERED_RING
#define IORING_ENTER_REGISTERED_RING (1U << 4)
#endif

/* Of the enum io_uring_register_op, which older headers have without these. */
enum { REGISTER_RING_FDS = 20, UNREGISTER_RING_FDS = 21 };

/* A batch fits twice into the submission queue. */
enum { SQ_ENTRIES = 64, LEAST_CQ_ENTRIES = 64, MOST_CQ_ENTRIES = 65536 };

/* The best first. */
static const uint32_t choices[] = {
    IORING_SETUP_SUBMIT_ALL | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
    IORING_SETUP_SUBMIT_ALL | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN,
    IORING_SETUP_SUBMIT_ALL | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_COOP_TASKRUN,
    0,
};

static int io_uring_setup(uint32_t entries, struct io_uring_params *parameters)
{
    long fd = syscall(SYS_io_uring_setup, entries, parameters);

    return fd < 0 ? -errno : (int)fd;
}

int ring_enter(const struct ring *r, uint32_t submit, uint32_t complete, uint32_t flags, const void *argument,
               size_t size)
{
    long count = syscall(SYS_io_uring_enter, r->enter_fd, submit, complete, flags | r->enter_flags, argument, size);

    return count < 0 ? -errno : (int)count;
}

int ring_register(const struct ring *r, uint32_t what, void *argument, uint32_t count)
{
    return syscall(SYS_io_uring_register, r->fd, what, argument, count) < 0 ? -errno : 0;
}

static uint32_t mode_of(uint32_t options)
{
    return (options & BACKEND_POLLED ? IORING_SETUP_IOPOLL : 0) |
           (options & RING_WIDE ? IORING_SETUP_SQE128 | IORING_SETUP_CQE32 : 0);
}

/* The best that this kernel takes: the ring's descriptor, or -errno. */
static int set_up(uint32_t depth, uint32_t options, struct io_uring_params *p)
{
    uint32_t room = depth > LEAST_CQ_ENTRIES ? depth : LEAST_CQ_ENTRIES;
    int fd = -EINVAL;

    for (size_t n = 0; fd == -EINVAL; n++) {
        *p = (struct io_uring_params){.flags = choices[n] | mode_of(options) | IORING_SETUP_CQSIZE, .cq_entries = room};
        fd = io_uring_setup(SQ_ENTRIES, p);
        if (choices[n] == 0)
            break;
    }
    return fd;
}

static bool can_wait(const struct io_uring_params *p)
{
    const uint32_t needed = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG;

    return (p->features & needed) == needed;
}

static void *map(const struct ring *r, size_t size, uint64_t offset)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, (off_t)offset);

    return memory == MAP_FAILED ? NULL : memory;
}

static _Atomic uint32_t *word_at(const struct ring *r, uint32_t offset)
{
    return (_Atomic uint32_t *)(void *)((char *)r->rings + offset);
}

static int map_rings(struct ring *r, const struct io_uring_params *p)
{
    size_t sq_size = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
    size_t cq_size = p->cq_off.cqes + (p->cq_entries * sizeof(struct io_uring_cqe) << r->wide);

    r->rings_size = sq_size > cq_size ? sq_size : cq_size;
    r->sqes_size = p->sq_entries * sizeof(struct io_uring_sqe) << r->wide;
    r->rings = map(r, r->rings_size, IORING_OFF_SQ_RING);
    r->sqes = map(r, r->sqes_size, IORING_OFF_SQES);
    if (!r->rings || !r->sqes)
        return -ENOMEM;
    r->cqes = (struct io_uring_cqe *)(void *)((char *)r->rings + p->cq_off.cqes);
    r->sq_head = word_at(r, p->sq_off.head);
    r->sq_tail = word_at(r, p->sq_off.tail);
    r->sq_flags = word_at(r, p->sq_off.flags);
    r->cq_head = word_at(r, p->cq_off.head);
    r->cq_tail = word_at(r, p->cq_off.tail);
    r->sq_entries = p->sq_entries;
    r->sq_mask = p->sq_entries - 1;
    r->cq_mask = p->cq_entries - 1;
    uint32_t *array = (uint32_t *)(void *)((char *)r->rings + p->sq_off.array);
    for (uint32_t n = 0; n < p->sq_entries; n++)
        array[n] = n;
    return 0;
}

/* So that enter need not take and give back a reference to the ring's file, whose count other threads of the process
 * may hold. Of older kernels than 5.18, and where a thread has 16 already, by its descriptor. */
static void register_itself(struct ring *r)
{
    struct io_uring_rsrc_update update = {.offset = UINT32_MAX, .data = (uint32_t)r->fd};

    r->enter_fd = r->fd;
    if (syscall(SYS_io_uring_register, r->fd, REGISTER_RING_FDS, &update, 1) != 1)
        return;
    r->enter_fd = (int)update.offset;
    r->enter_flags = IORING_ENTER_REGISTERED_RING;
}

/* By the thread that opened it. Another one, after that has ended, finds nothing to do: it went with the thread. */
static void unregister_itself(const struct ring *r)
{
    struct io_uring_rsrc_update update = {.offset = (uint32_t)r->enter_fd};

    if (r->enter_flags & IORING_ENTER_REGISTERED_RING)
        ring_register(r, UNREGISTER_RING_FDS, &update, 1);
}

int ring_open(struct ring *r, uint32_t depth, uint32_t options)
{
    struct io_uring_params p;

    *r = (struct ring){0};
    if (depth > MOST_CQ_ENTRIES)
        return -EOVERFLOW;
    r->fd = set_up(depth, options, &p);
    if (r->fd < 0)
        return r->fd;
    r->setup = p.flags;
    r->wide = options & RING_WIDE;
    int result = can_wait(&p) ? map_rings(r, &p) : -ENOSYS;
    if (result == 0)
        register_itself(r);
    else
        ring_close(r);
    return result;
}

void ring_close(struct ring *r)
{
    unregister_itself(r);
    if (r->rings)
        munmap(r->rings, r->rings_size);
    if (r->sqes)
        munmap(r->sqes, r->sqes_size);
    close(r->fd);
}
