#define _GNU_SOURCE
#include "uring_features.h"

#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fixed_resources.h"
#include "ring.h"

static bool takes_flags(const struct uring_feature *a)
{
    struct io_uring_params p = {.flags = a->flags};
    int fd = (int)syscall(SYS_io_uring_setup, 1, &p);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool registers_itself(const struct uring_feature *a)
{
    struct ring ring;

    (void)a;
    if (ring_open(&ring, 1, 0) != 0)
        return false;
    bool works = ring.enter_flags != 0;
    ring_close(&ring);
    return works;
}

static bool registers_files_and_buffers(const struct uring_feature *a)
{
    struct ring ring;

    (void)a;
    if (ring_open(&ring, 1, 0) != 0)
        return false;
    struct fixed_resources fixed = {.ring = &ring};
    bool works = fixed_resources_open(&fixed, 1);
    ring_close(&ring);
    return works;
}

const struct uring_feature uring_features[] = {
    {"submit_all", takes_flags, IORING_SETUP_SUBMIT_ALL},
    {"coop_taskrun", takes_flags, IORING_SETUP_COOP_TASKRUN},
    {"single_issuer", takes_flags, IORING_SETUP_SINGLE_ISSUER},
    {"defer_taskrun", takes_flags, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN},
    {"iopoll", takes_flags, IORING_SETUP_IOPOLL},
    {"registered_files_and_buffers", registers_files_and_buffers, 0},
    {"registered_ring", registers_itself, 0},
    {NULL, NULL, 0},
};
