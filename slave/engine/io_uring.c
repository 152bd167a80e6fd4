/* The io_uring backend, by raw system calls: one ring per workload thread, which alone enters it.
 *
 * Files and buffers of the step's instances are registered, under the instance's slot on the thread, so that no I/O looks
 * them up or pins pages. Completions are put into the ring when this thread asks for them (DEFER_TASKRUN, else
 * COOP_TASKRUN), never by an interrupt; the ring's flags say when there are some, so looking costs no system call.
 * What an older kernel lacks is left out, down to 5.11, which can wait with a timeout.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "backend.h"
#include "clock.h"

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x00000008
#endif
#ifndef IORING_SETUP_SUBMIT_ALL
#define IORING_SETUP_SUBMIT_ALL (1U << 7)
#endif
#ifndef IORING_SETUP_COOP_TASKRUN
#define IORING_SETUP_COOP_TASKRUN (1U << 8)
#define IORING_SETUP_TASKRUN_FLAG (1U << 9)
#endif
#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#endif
#ifndef IORING_SETUP_DEFER_TASKRUN
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif
#ifndef IORING_SQ_TASKRUN
#define IORING_SQ_TASKRUN (1U << 2)
#endif
#ifndef IORING_RSRC_REGISTER_SPARSE
#define IORING_RSRC_REGISTER_SPARSE (1U << 0)
#endif

enum { SQ_ENTRIES = 64, MOST_CQ_ENTRIES = 65536, LEAST_SLOTS = 64 };

/* What a slot of the thread has registered. */
struct place {
    uint64_t created; /* of the instance; 0: none */
    bool file, buffers;
};

struct ring {
    int fd;
    bool sparse; /* files and buffers can be registered one by one */
    void *rings, *sqe_memory;
    size_t rings_size, sqes_size;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
    _Atomic uint32_t *sq_head, *sq_tail, *sq_flags, *cq_head, *cq_tail;
    uint32_t sq_mask, cq_mask;
    struct place *places;
    uint32_t slots; /* places */
};

static int io_uring_setup(uint32_t entries, struct io_uring_params *parameters)
{
    long fd = syscall(SYS_io_uring_setup, entries, parameters);

    return fd < 0 ? -errno : (int)fd;
}

static int io_uring_enter(const struct ring *r, uint32_t submit, uint32_t complete, uint32_t flags, const void *argument,
                          size_t size)
{
    long count = syscall(SYS_io_uring_enter, r->fd, submit, complete, flags, argument, size);

    return count < 0 ? -errno : (int)count;
}

static int io_uring_register(const struct ring *r, uint32_t what, void *argument, uint32_t count)
{
    return syscall(SYS_io_uring_register, r->fd, what, argument, count) < 0 ? -errno : 0;
}

/* The best that this kernel takes. */
static int set_up(uint32_t depth, struct io_uring_params *p)
{
    static const uint32_t choices[] = {
        IORING_SETUP_SUBMIT_ALL | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
        IORING_SETUP_SUBMIT_ALL | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN,
        IORING_SETUP_SUBMIT_ALL | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_COOP_TASKRUN,
        0,
    };
    int fd = -EINVAL;

    for (size_t n = 0; n < sizeof choices / sizeof *choices && fd == -EINVAL; n++) {
        *p = (struct io_uring_params){.flags = choices[n] | IORING_SETUP_CQSIZE,
                                      .cq_entries = depth > SQ_ENTRIES ? depth : SQ_ENTRIES};
        fd = io_uring_setup(SQ_ENTRIES, p);
    }
    return fd;
}

static bool can_wait(const struct io_uring_params *p)
{
    const uint32_t needed = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG;

    return (p->features & needed) == needed;
}

static int ring_probe(void)
{
    struct io_uring_params p;
    int fd = set_up(1, &p);

    if (fd < 0)
        return fd;
    close(fd);
    return can_wait(&p) ? 0 : -ENOSYS;
}

static void ring_close(void *context)
{
    struct ring *r = context;

    if (r->rings)
        munmap(r->rings, r->rings_size);
    if (r->sqe_memory)
        munmap(r->sqe_memory, r->sqes_size);
    close(r->fd);
    free(r->places);
    free(r);
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
    size_t cq_size = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);

    r->rings_size = sq_size > cq_size ? sq_size : cq_size;
    r->sqes_size = p->sq_entries * sizeof(struct io_uring_sqe);
    r->rings = map(r, r->rings_size, IORING_OFF_SQ_RING);
    r->sqe_memory = map(r, r->sqes_size, IORING_OFF_SQES);
    if (!r->rings || !r->sqe_memory)
        return -ENOMEM;
    r->sqes = r->sqe_memory;
    r->cqes = (struct io_uring_cqe *)(void *)((char *)r->rings + p->cq_off.cqes);
    r->sq_head = word_at(r, p->sq_off.head);
    r->sq_tail = word_at(r, p->sq_off.tail);
    r->sq_flags = word_at(r, p->sq_off.flags);
    r->cq_head = word_at(r, p->cq_off.head);
    r->cq_tail = word_at(r, p->cq_off.tail);
    r->sq_mask = p->sq_entries - 1;
    r->cq_mask = p->cq_entries - 1;
    uint32_t *array = (uint32_t *)(void *)((char *)r->rings + p->sq_off.array);
    for (uint32_t n = 0; n < p->sq_entries; n++)
        array[n] = n;
    return 0;
}

static int ring_open(void **context, uint32_t depth)
{
    struct io_uring_params p;
    struct ring *r;

    if (depth > MOST_CQ_ENTRIES)
        return -EOVERFLOW;
    r = calloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    r->fd = set_up(depth, &p);
    if (r->fd < 0) {
        int result = r->fd;
        free(r);
        return result;
    }
    int result = can_wait(&p) ? map_rings(r, &p) : -ENOSYS;
    if (result != 0)
        ring_close(r);
    else
        *context = r;
    return result;
}

/* Registration. */

static int register_sparse(const struct ring *r, uint32_t what, uint32_t slots)
{
    struct io_uring_rsrc_register table = {.nr = slots, .flags = IORING_RSRC_REGISTER_SPARSE};

    return io_uring_register(r, what, &table, sizeof table);
}

/* Tables for so many slots; without any where the kernel has none that can be filled one by one. */
static int make_tables(struct ring *r, uint32_t slots)
{
    uint32_t room = LEAST_SLOTS;

    while (room < slots)
        room *= 2;
    struct place *places = calloc(room, sizeof *places);
    if (!places)
        return -ENOMEM;
    if (r->sparse) {
        io_uring_register(r, IORING_UNREGISTER_FILES, NULL, 0);
        io_uring_register(r, IORING_UNREGISTER_BUFFERS, NULL, 0);
    }
    free(r->places);
    r->places = places;
    r->slots = room;
    r->sparse = register_sparse(r, IORING_REGISTER_FILES2, room) == 0;
    if (r->sparse && register_sparse(r, IORING_REGISTER_BUFFERS2, room) != 0) {
        io_uring_register(r, IORING_UNREGISTER_FILES, NULL, 0);
        r->sparse = false;
    }
    return 0;
}

static int update_file(const struct ring *r, uint32_t slot, int fd)
{
    struct io_uring_rsrc_update2 update = {.offset = slot, .data = (uint64_t)(uintptr_t)&fd, .nr = 1};

    return io_uring_register(r, IORING_REGISTER_FILES_UPDATE2, &update, sizeof update);
}

static int update_buffers(const struct ring *r, uint32_t slot, void *data, size_t size)
{
    struct iovec vector = {.iov_base = data, .iov_len = size};
    struct io_uring_rsrc_update2 update = {.offset = slot, .data = (uint64_t)(uintptr_t)&vector, .nr = 1};

    return io_uring_register(r, IORING_REGISTER_BUFFERS_UPDATE, &update, sizeof update);
}

static void ring_detach(void *context, uint32_t slot)
{
    struct ring *r = context;

    if (slot >= r->slots)
        return;
    struct place *place = &r->places[slot];
    if (place->file)
        update_file(r, slot, -1);
    if (place->buffers)
        update_buffers(r, slot, NULL, 0);
    *place = (struct place){0};
}

/* What cannot be registered (more than 1 GiB of buffers) goes without; but a limit of the user's is an error. */
static int attach_one(struct ring *r, const struct instance *i)
{
    struct place *place = &r->places[i->slot];

    ring_detach(r, i->slot);
    int result = update_buffers(r, i->slot, i->data, i->data_size);
    if (result == -ENOMEM)
        return result;
    *place = (struct place){.created = i->created, .buffers = result == 0};
    place->file = update_file(r, i->slot, i->lun->fd) == 0;
    return 0;
}

static int ring_attach(void *context, const struct instance *instances, uint32_t slots)
{
    struct ring *r = context;
    int result = slots > r->slots || !r->places ? make_tables(r, slots) : 0;

    for (uint32_t n = 0; n < slots && result == 0 && r->sparse; n++)
        if (instances[n].lun && r->places[n].created != instances[n].created)
            result = attach_one(r, &instances[n]);
    return result;
}

/* I/O. */

static struct io_uring_sqe *sqe_at(const struct ring *r, uint32_t at)
{
    return &r->sqes[(atomic_load_explicit(r->sq_head, memory_order_acquire) + at) & r->sq_mask];
}

static void fill(const struct ring *r, struct io_uring_sqe *sqe, struct tag *tag)
{
    const struct instance *i = tag->instance;
    const struct place *place = &r->places[i->slot];

    *sqe = (struct io_uring_sqe){
        .fd = place->file ? (int32_t)i->slot : i->lun->fd,
        .flags = place->file ? IOSQE_FIXED_FILE : 0,
        .off = tag->offset,
        .addr = (uint64_t)(uintptr_t)tag_buffer(tag, tag->write),
        .len = tag_bytes(tag),
        .rw_flags = tag->nowait ? RWF_NOWAIT : 0,
        .user_data = (uint64_t)(uintptr_t)tag,
    };
    if (place->buffers) {
        sqe->opcode = tag->write ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED;
        sqe->buf_index = (uint16_t)i->slot;
    } else {
        sqe->opcode = tag->write ? IORING_OP_WRITE : IORING_OP_READ;
    }
}

/* Behind the ring's head, as the next to go; the tail says how many really do, and only the submit call moves it. */
static void ring_prepare(void *context, struct tag *const *tags, uint32_t count)
{
    struct ring *r = context;

    for (uint32_t n = 0; n < count && n < SQ_ENTRIES; n++)
        fill(r, sqe_at(r, n), tags[n]);
}

static int ring_submit(void *context, struct tag *const *tags, uint32_t count)
{
    struct ring *r = context;
    uint32_t head = atomic_load_explicit(r->sq_head, memory_order_acquire);

    if (sqe_at(r, 0)->user_data != (uint64_t)(uintptr_t)tags[0])
        ring_prepare(r, tags, count);
    atomic_store_explicit(r->sq_tail, head + count, memory_order_release);
    int taken = io_uring_enter(r, count, 0, IORING_ENTER_GETEVENTS, NULL, 0);
    /* What it did not take must not go with the next call, which may come with others. */
    uint32_t behind = atomic_load_explicit(r->sq_head, memory_order_acquire);
    atomic_store_explicit(r->sq_tail, behind, memory_order_release);
    if (behind != head)
        return (int)(behind - head);
    return taken == -EBUSY ? -EAGAIN : taken;
}

static uint32_t reap(struct ring *r, struct completion *completions, uint32_t room)
{
    uint32_t head = atomic_load_explicit(r->cq_head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(r->cq_tail, memory_order_acquire);
    uint32_t count = 0;

    for (; head != tail && count < room; head++, count++) {
        const struct io_uring_cqe *cqe = &r->cqes[head & r->cq_mask];
        completions[count] =
            (struct completion){.tag = (struct tag *)(uintptr_t)cqe->user_data, .result = cqe->res};
    }
    if (count)
        atomic_store_explicit(r->cq_head, head, memory_order_release);
    return count;
}

static int ring_harvest(void *context, struct completion *completions, uint32_t room)
{
    struct ring *r = context;
    uint32_t count = reap(r, completions, room);

    if (count == 0 && (atomic_load_explicit(r->sq_flags, memory_order_relaxed) & IORING_SQ_TASKRUN)) {
        int result = io_uring_enter(r, 0, 0, IORING_ENTER_GETEVENTS, NULL, 0);
        if (result < 0 && result != -EINTR && result != -EAGAIN && result != -EBUSY)
            return result;
        count = reap(r, completions, room);
    }
    return (int)count;
}

static int ring_wait(void *context, uint64_t timeout_ns, struct completion *completions, uint32_t room)
{
    struct ring *r = context;
    uint32_t count = reap(r, completions, room);

    if (count)
        return (int)count;
    struct __kernel_timespec timeout = {.tv_sec = (int64_t)(timeout_ns / NS_PER_S),
                                        .tv_nsec = (int64_t)(timeout_ns % NS_PER_S)};
    struct io_uring_getevents_arg argument = {.ts = (uint64_t)(uintptr_t)&timeout};
    int result =
        io_uring_enter(r, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &argument, sizeof argument);
    if (result < 0 && result != -ETIME && result != -EINTR && result != -EAGAIN && result != -EBUSY)
        return result;
    return (int)reap(r, completions, room);
}

static const char *ring_remedy(int error)
{
    switch (error) {
    case -EOVERFLOW:
        return "an io_uring holds at most 65,535 I/Os: lower maxtags, or use more threads";
    case -ENOMEM:
        return "io_uring keeps I/O buffers locked in memory: raise the limit of locked memory (ulimit -l, LimitMEMLOCK), "
               "lower maxtags, or use backend: libaio";
    default:
        return NULL;
    }
}

const struct backend backend_io_uring = {
    .name = "io_uring",
    .probe = ring_probe,
    .open = ring_open,
    .close = ring_close,
    .attach = ring_attach,
    .detach = ring_detach,
    .prepare = ring_prepare,
    .submit = ring_submit,
    .harvest = ring_harvest,
    .wait = ring_wait,
    .remedy = ring_remedy,
};
