/* An io_uring by raw system calls: set up as this kernel does it best, mapped, entered.
 *
 * Rule: one workload thread opens a ring and alone enters it, so that the kernel need not lock it (SINGLE_ISSUER) and
 * puts completions into it when that thread asks (DEFER_TASKRUN, else COOP_TASKRUN), never by an interrupt. What an
 * older kernel lacks is left out, down to 5.11, which can wait with a timeout.
 */
#ifndef IVYPY_RING_H
#define IVYPY_RING_H

#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Later than the headers of some machines that this is built on. */
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

#ifndef IORING_SETUP_SQE128
#define IORING_SETUP_SQE128 (1U << 10)
#define IORING_SETUP_CQE32 (1U << 11)
#endif

/* Beside the backend's options: entries of twice the common length, for commands of a driver (Linux 5.19). */
enum { RING_WIDE = 1 << 7 };

struct ring {
    int fd;
    int enter_fd; /* what enter names it by: its number among the thread's registered rings, or fd */
    uint32_t enter_flags;
    void *rings;
    size_t rings_size, sqes_size;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
    _Atomic uint32_t *sq_head, *sq_tail, *sq_flags, *cq_head, *cq_tail;
    uint32_t sq_entries, sq_mask, cq_mask;
    uint32_t setup; /* the flags that it was set up with */
    bool wide;
};

/* With room for `depth` completions; `options`: BACKEND_POLLED, RING_WIDE. 0 or -errno. */
int ring_open(struct ring *r, uint32_t depth, uint32_t options);
void ring_close(struct ring *r);

/* How many were submitted, or -errno. */
int ring_enter(const struct ring *r, uint32_t submit, uint32_t complete, uint32_t flags, const void *argument,
               size_t size);

/* 0 or -errno. */
int ring_register(const struct ring *r, uint32_t what, void *argument, uint32_t count);

#endif
