/* How I/Os reach the kernel: a struct of functions, chosen once.
 *
 * Rule: a backend knows nothing of load, time or counting. Its context belongs to one workload thread, which alone
 * calls these, but for close. Nothing but open and attach allocates; reap makes no system call where that can be
 * avoided. What may be NULL is said.
 */
#ifndef IVYPY_BACKEND_H
#define IVYPY_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "luns/instance.h"

struct completion {
    struct tag *tag;
    int64_t result; /* bytes, or -errno, or minus what luns/nvme_namespace.h has for a status of NVMe */
};

/* Ways of working that are a user's choice, as bits. */
enum {
    BACKEND_POLLED = 1, /* the thread looks for completions in the device's own queues, which raise no interrupt */
};

/* What it can do, and what whoever uses it has to know.
 *
 *   polled                 it has BACKEND_POLLED
 *   may_block              a submit call waits where the LUN's driver or file system lacks RWF_NOWAIT
 *   hands_over             there, threads of the kernel do its I/Os
 *   counted_by_diskstats   the kernel counts its I/Os for the device (/sys/block/NAME/stat)
 *   trims                  it trims and writes zeroes: not with BACKEND_POLLED
 *   buffered               a submit call does not wait for the page cache: not with BACKEND_POLLED
 *   needs_aio_nr           room for its I/Os in flight is taken from fs.aio-max-nr
 *   needs_io_uring         kernel.io_uring_disabled is about it, too
 */
/* clang-format off */
#define ABILITIES(X)                                                                               \
    X(polled) X(may_block) X(hands_over) X(counted_by_diskstats) X(buffered) X(trims) X(needs_aio_nr) \
    X(needs_io_uring)
/* clang-format on */

#define ABILITY(name) bool name;

struct abilities {
    ABILITIES(ABILITY)
};

struct backend {
    const char *name;
    struct abilities abilities;

    /* 0 if it works on this kernel with these options, else -errno. */
    int (*probe)(uint32_t options);

    /* 0 if this kernel takes flushes from it, else -errno. NULL: it does. With BACKEND_POLLED none does. */
    int (*probe_flush)(void);

    /* 0 if this kernel and the driver of an open block device take trims from it, else -errno. NULL: they do. */
    int (*probe_trim)(int fd);

    /* Opens what else it needs to drive a LUN with I/Os of at most `blocksize` bytes. 0 or -errno; `*why` then says
     * what is wrong, in words. May be NULL. */
    int (*take)(struct lun *lun, uint32_t blocksize, const char **why);

    /* A context for at most `depth` I/Os in flight. 0 or -errno: EAGAIN where the system's limit is reached. */
    int (*open)(void **context, uint32_t depth, uint32_t options);

    /* May wait for all that is in flight; so only when nothing is. */
    void (*close)(void *context);

    /* Before a step: makes known to the kernel what the instances in these slots use, where it was not known yet; so
     * they are where they were until they are detached. 0 or -errno. May be NULL, as may detach. */
    int (*attach)(void *context, const struct instance *instances, uint32_t slots);

    /* The instance in this slot is about to be destroyed. */
    void (*detach)(void *context, uint32_t slot);

    /* What can be done for these tags before the instant of submission is read. */
    void (*prepare)(void *context, struct tag *const *tags, uint32_t count);

    /* Hands the prepared tags to the kernel, in order: how many it took, or -errno of the first. */
    int (*submit)(void *context, struct tag *const *tags, uint32_t count);

    /* What has completed, at most `room`: how many, or -errno. */
    int (*reap)(void *context, struct completion *completions, uint32_t room);

    /* Sleeps until something completes, at most `timeout_ns`: like reap. */
    int (*wait)(void *context, uint64_t timeout_ns, struct completion *completions, uint32_t room);

    /* In words, what is wrong and what to do when probe said this; NULL: errno says it. May be NULL. */
    const char *(*missing)(int error);

    /* Likewise when open or attach said it. */
    const char *(*remedy)(int error);
};

extern const struct backend backend_libaio, backend_io_uring, backend_nvme, backend_null;

/* All, ended by NULL. */
extern const struct backend *const backends[];

/* NULL if there is none of this name. */
const struct backend *backend_named(const char *name);

#endif
