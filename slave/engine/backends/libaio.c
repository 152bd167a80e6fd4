/* The libaio backend: the kernel's own asynchronous I/O by raw system calls.
 *
 * Completions are read from the ring that the kernel maps into the process, without a system call, as fio's
 * userspace_reap and the kernel's own test do: the ring's layout is fixed as long as its magic and its incompatible
 * features say so; else io_getevents does it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/aio_abi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "backend.h"
#include "time/clock.h"

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x00000008
#endif

enum { RING_MAGIC = 0xa10a10a1, AT_ONCE = 256 };

/* struct aio_ring of the kernel's fs/aio.c; the context's id is its address. */
struct aio_ring {
    uint32_t id, size;
    _Atomic uint32_t head, tail;
    uint32_t magic, compatible_features, incompatible_features, header_length;
    struct io_event events[];
};

struct libaio {
    aio_context_t id;
    struct aio_ring *ring; /* NULL: not to be read */
    struct iocb *batch[AT_ONCE];
    struct io_event events[AT_ONCE];
};

static int io_setup(uint32_t depth, aio_context_t *id)
{
    return syscall(SYS_io_setup, depth, id) < 0 ? -errno : 0;
}

static int io_getevents(struct libaio *aio, long least, uint32_t room, uint64_t timeout_ns)
{
    struct timespec timeout = clock_timespec(timeout_ns);
    long count = syscall(SYS_io_getevents, aio->id, least, (long)(room < AT_ONCE ? room : AT_ONCE), aio->events,
                         &timeout);

    if (count < 0)
        return errno == EINTR ? 0 : -errno;
    return (int)count;
}

static int libaio_probe(uint32_t options)
{
    aio_context_t id = 0;
    int result = io_setup(1, &id);

    (void)options;
    if (result == 0)
        syscall(SYS_io_destroy, id);
    return result;
}

/* Before Linux 4.18 no file takes one. What is flushed here has no medium. */
static int try_flush(aio_context_t id)
{
    int fd = memfd_create("ivypy", MFD_CLOEXEC);
    struct iocb iocb = {.aio_lio_opcode = IOCB_CMD_FSYNC, .aio_fildes = (uint32_t)fd}, *list = &iocb;
    struct io_event event;
    int result = 0;

    if (fd < 0)
        return 0; /* nothing speaks against it */
    if (syscall(SYS_io_submit, id, 1L, &list) < 0)
        result = -errno;
    else if (syscall(SYS_io_getevents, id, 1L, 1L, &event, NULL) == 1)
        result = (int)event.res;
    close(fd);
    return result;
}

static int libaio_probe_flush(void)
{
    aio_context_t id = 0;
    int result = io_setup(1, &id);

    if (result != 0)
        return 0; /* whoever opens a context says why */
    result = try_flush(id);
    syscall(SYS_io_destroy, id);
    return result;
}

static int libaio_open(void **context, uint32_t depth, uint32_t options)
{
    struct libaio *aio = calloc(1, sizeof *aio);

    (void)options;
    if (!aio)
        return -ENOMEM;
    int result = io_setup(depth, &aio->id);
    if (result != 0) {
        free(aio);
        return result;
    }
    struct aio_ring *ring = (struct aio_ring *)(uintptr_t)aio->id;
    if (ring->magic == RING_MAGIC && ring->incompatible_features == 0)
        aio->ring = ring;
    *context = aio;
    return 0;
}

static void libaio_close(void *context)
{
    struct libaio *aio = context;

    syscall(SYS_io_destroy, aio->id);
    free(aio);
}

/* An I/O that would read. */
static void change_to_flush(struct iocb *iocb, const struct tag *tag)
{
    iocb->aio_lio_opcode = tag->op == OP_FDATASYNC ? IOCB_CMD_FDSYNC : IOCB_CMD_FSYNC;
    iocb->aio_buf = 0;
    iocb->aio_rw_flags = 0;
}

static void change_to_write(struct iocb *iocb, const struct tag *tag)
{
    iocb->aio_lio_opcode = IOCB_CMD_PWRITE;
    iocb->aio_buf = (uint64_t)(uintptr_t)tag_buffer(tag, true);
    iocb->aio_rw_flags |= (int)tag->instance->write_flags;
}

static void libaio_prepare(void *context, struct tag *const *tags, uint32_t count)
{
    struct libaio *aio = context;

    for (uint32_t n = 0; n < count && n < AT_ONCE; n++) {
        struct iocb *iocb = &tags[n]->iocb;
        iocb->aio_lio_opcode = IOCB_CMD_PREAD;
        iocb->aio_buf = (uint64_t)(uintptr_t)tag_buffer(tags[n], false);
        iocb->aio_rw_flags = tags[n]->nowait ? RWF_NOWAIT : 0;
        if (tags[n]->op == OP_WRITE)
            change_to_write(iocb, tags[n]);
        else if (tags[n]->op != OP_READ)
            change_to_flush(iocb, tags[n]);
        aio->batch[n] = iocb;
    }
}

static int libaio_submit(void *context, struct tag *const *tags, uint32_t count)
{
    struct libaio *aio = context;
    long from = 0;

    /* After a part was taken, the rest comes again: it lies further on in the prepared batch. */
    while (aio->batch[from] != &tags[0]->iocb)
        from++;
    long taken = syscall(SYS_io_submit, aio->id, (long)count, aio->batch + from);
    return taken < 0 ? -errno : (int)taken;
}

static struct completion completion_of(const struct io_event *event)
{
    return (struct completion){.tag = (struct tag *)(uintptr_t)event->data, .result = event->res};
}

static int copy(const struct libaio *aio, int count, struct completion *completions)
{
    for (int n = 0; n < count; n++)
        completions[n] = completion_of(&aio->events[n]);
    return count;
}

static int libaio_reap(void *context, struct completion *completions, uint32_t room)
{
    struct libaio *aio = context;
    struct aio_ring *ring = aio->ring;
    uint32_t count = 0;

    if (!ring)
        return copy(aio, io_getevents(aio, 0, room, 0), completions);
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    for (; head != tail && count < room; count++) {
        completions[count] = completion_of(&ring->events[head]);
        if (++head == ring->size)
            head = 0;
    }
    if (count)
        atomic_store_explicit(&ring->head, head, memory_order_release);
    return (int)count;
}

static int libaio_wait(void *context, uint64_t timeout_ns, struct completion *completions, uint32_t room)
{
    struct libaio *aio = context;

    return copy(aio, io_getevents(aio, 1, room, timeout_ns), completions);
}

static const char *libaio_missing(int error)
{
    switch (error) {
    case -ENOSYS:
        return "this kernel has no asynchronous I/O, or a seccomp filter hides it";
    case -EAGAIN:
        return "fs.aio-max-nr is used up: raise it (sysctl -w fs.aio-max-nr=1048576)";
    default:
        return NULL;
    }
}

static const char *libaio_remedy(int error)
{
    if (error != -EAGAIN)
        return NULL;
    return "its instances may have more asynchronous I/Os in flight than the system has left: lower maxtags, or raise "
           "fs.aio-max-nr (see fs.aio-nr)";
}

const struct backend backend_libaio = {
    .name = "libaio",
    .abilities = {.may_block = true, .counted_by_diskstats = true, .needs_aio_nr = true},
    .probe = libaio_probe,
    .probe_flush = libaio_probe_flush,
    .open = libaio_open,
    .close = libaio_close,
    .prepare = libaio_prepare,
    .submit = libaio_submit,
    .reap = libaio_reap,
    .wait = libaio_wait,
    .missing = libaio_missing,
    .remedy = libaio_remedy,
};
