/* The least that a program can do: bare libaio|io_uring PATH DEPTH SECONDS CORE [IOPS]
 *
 * Random reads of 4 KiB by O_DIRECT, all free I/Os in one call, no stamps, no counting but of completions; io_uring
 * with registered file and buffers. Prints I/Os per second of the thread's CPU time. What an engine adds to this is its
 * own cost; what this costs is the kernel's.
 *
 * With IOPS, libaio only: at exponential gaps, asleep in between, and all that is due in one call; prints microseconds
 * of the thread's CPU time per I/O.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#endif
#ifndef IORING_SETUP_DEFER_TASKRUN
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif

enum { BLOCK = 4096, MOST = 1024 };

static int fd;
static uint32_t depth;
static uint64_t blocks, random_state = 88172645463325252;
static char *data;

static void need(bool holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(1);
    }
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t next_offset(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint64_t)(((unsigned __int128)random_state * blocks) >> 64) * BLOCK;
}

/* struct aio_ring of the kernel's fs/aio.c. */
struct aio_ring {
    uint32_t id, size;
    _Atomic uint32_t head, tail;
    uint32_t magic, compatible_features, incompatible_features, header_length;
    struct io_event events[];
};

static aio_context_t aio;
static struct iocb iocbs[MOST], *batch[MOST];
static uint32_t to_go;

static void libaio_open(void)
{
    need(syscall(SYS_io_setup, depth, &aio) == 0, "io_setup");
    for (uint32_t n = 0; n < depth; n++) {
        iocbs[n] = (struct iocb){.aio_fildes = (uint32_t)fd,
                                 .aio_lio_opcode = IOCB_CMD_PREAD,
                                 .aio_nbytes = BLOCK,
                                 .aio_buf = (uint64_t)(uintptr_t)(data + (size_t)n * BLOCK),
                                 .aio_data = n};
        batch[to_go++] = &iocbs[n];
    }
}

static uint64_t libaio_turn(void)
{
    struct aio_ring *ring = (struct aio_ring *)(uintptr_t)aio;

    for (uint32_t n = 0; n < to_go; n++)
        batch[n]->aio_offset = (int64_t)next_offset();
    if (to_go)
        need(syscall(SYS_io_submit, aio, (long)to_go, batch) == (long)to_go, "io_submit");
    to_go = 0;
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    for (; head != tail; head = head + 1 == ring->size ? 0 : head + 1) {
        need(ring->events[head].res == BLOCK, "a read");
        batch[to_go++] = &iocbs[ring->events[head].data];
    }
    atomic_store_explicit(&ring->head, head, memory_order_release);
    return to_go;
}

static int ring_fd;
static struct io_uring_params params;
static char *rings;
static struct io_uring_sqe *sqes;
static uint32_t ready[MOST];

static _Atomic uint32_t *word_at(uint32_t offset)
{
    return (_Atomic uint32_t *)(void *)(rings + offset);
}

static void io_uring_open(void)
{
    struct iovec all = {.iov_base = data, .iov_len = (size_t)depth * BLOCK};

    params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    ring_fd = (int)syscall(SYS_io_uring_setup, depth, &params);
    need(ring_fd >= 0, "io_uring_setup");
    size_t size = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    rings = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring_fd, IORING_OFF_SQ_RING);
    sqes = mmap(NULL, params.sq_entries * sizeof *sqes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring_fd,
                IORING_OFF_SQES);
    need(rings != MAP_FAILED && (void *)sqes != MAP_FAILED, "mmap");
    need(syscall(SYS_io_uring_register, ring_fd, IORING_REGISTER_FILES, &fd, 1) == 0, "files");
    need(syscall(SYS_io_uring_register, ring_fd, IORING_REGISTER_BUFFERS, &all, 1) == 0, "buffers");
    uint32_t *array = (uint32_t *)(void *)(rings + params.sq_off.array);
    for (uint32_t n = 0; n < params.sq_entries; n++)
        array[n] = n;
    for (uint32_t n = 0; n < depth; n++)
        ready[to_go++] = n;
}

static uint64_t io_uring_turn(void)
{
    uint32_t from = atomic_load_explicit(word_at(params.sq_off.tail), memory_order_relaxed);
    const struct io_uring_cqe *cqes = (const struct io_uring_cqe *)(void *)(rings + params.cq_off.cqes);

    for (uint32_t n = 0; n < to_go; n++)
        sqes[(from + n) & (params.sq_entries - 1)] = (struct io_uring_sqe){
            .opcode = IORING_OP_READ_FIXED,
            .flags = IOSQE_FIXED_FILE,
            .off = next_offset(),
            .addr = (uint64_t)(uintptr_t)(data + (size_t)ready[n] * BLOCK),
            .len = BLOCK,
            .user_data = ready[n]};
    atomic_store_explicit(word_at(params.sq_off.tail), from + to_go, memory_order_release);
    long taken = syscall(SYS_io_uring_enter, ring_fd, to_go, to_go ? 0 : 1, IORING_ENTER_GETEVENTS, NULL, 0);
    need(taken == (long)to_go, "io_uring_enter");
    to_go = 0;
    uint32_t head = atomic_load_explicit(word_at(params.cq_off.head), memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(word_at(params.cq_off.tail), memory_order_acquire);
    for (; head != tail; head++) {
        need(cqes[head & (params.cq_entries - 1)].res == BLOCK, "a read");
        ready[to_go++] = (uint32_t)cqes[head & (params.cq_entries - 1)].user_data;
    }
    atomic_store_explicit(word_at(params.cq_off.head), head, memory_order_release);
    return to_go;
}

/* An exponential gap by comparisons of uniform numbers alone (von Neumann 1951), so that nothing need be linked. */
static uint64_t next_gap(double iops)
{
    double sum = 0, part;

    for (;;) {
        double first = (double)(next_offset() / BLOCK) / (double)blocks, last = first;
        bool odd = true;
        for (;; odd = !odd) {
            double next = (double)(next_offset() / BLOCK) / (double)blocks;
            if (next >= last)
                break;
            last = next;
        }
        part = first;
        if (odd)
            break;
        sum += 1;
    }
    return (uint64_t)((sum + part) / iops * 1e9);
}

static double paced(double iops, double seconds)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), due_ns = now_ns, end_ns = now_ns + (uint64_t)(seconds * 1e9);
    uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), done = 0;
    struct io_event events[MOST];

    prctl(PR_SET_TIMERSLACK, 1);
    for (; now_ns < end_ns; now_ns = clock_ns(CLOCK_MONOTONIC)) {
        uint32_t going = 0;
        for (; due_ns <= now_ns && going < to_go; going++, due_ns += next_gap(iops))
            batch[to_go - 1 - going]->aio_offset = (int64_t)next_offset();
        if (going)
            need(syscall(SYS_io_submit, aio, (long)going, batch + to_go - going) == (long)going, "io_submit");
        to_go -= going;
        now_ns = clock_ns(CLOCK_MONOTONIC);
        uint64_t wait_ns = due_ns > now_ns && to_go ? due_ns - now_ns : 0;
        struct timespec wait = {.tv_sec = (time_t)(wait_ns / 1000000000), .tv_nsec = (long)(wait_ns % 1000000000)};
        long found = syscall(SYS_io_getevents, aio, 1L, (long)depth, events, to_go ? &wait : NULL);
        for (long n = 0; n < found; n++, done++)
            batch[to_go++] = &iocbs[events[n].data];
    }
    return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns) / 1e3 / (double)done;
}

int main(int count, char **words)
{
    cpu_set_t cores;

    if (count != 6 && count != 7)
        return 2;
    bool uring = strcmp(words[1], "io_uring") == 0;
    fd = open(words[2], O_RDONLY | O_DIRECT | O_CLOEXEC);
    need(fd >= 0, words[2]);
    depth = (uint32_t)atoi(words[3]);
    need(depth > 0 && depth <= MOST, "depth");
    blocks = (uint64_t)lseek(fd, 0, SEEK_END) / BLOCK;
    CPU_ZERO(&cores);
    CPU_SET((size_t)atoi(words[5]), &cores);
    need(sched_setaffinity(0, sizeof cores, &cores) == 0, "the core");
    data = aligned_alloc(BLOCK, (size_t)depth * BLOCK);
    need(data != NULL, "memory");
    memset(data, 1, (size_t)depth * BLOCK);
    if (uring)
        io_uring_open();
    else
        libaio_open();

    if (count == 7) {
        printf("%.3f\n", paced(atof(words[6]), atof(words[4])));
        return 0;
    }
    uint64_t done = 0, end_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)(atof(words[4]) * 1e9);
    uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    while (clock_ns(CLOCK_MONOTONIC) < end_ns)
        for (uint32_t turn = 0; turn < 256; turn++)
            done += uring ? io_uring_turn() : libaio_turn();
    printf("%.0f\n", (double)done / (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns) * 1e9);
    return 0;
}
