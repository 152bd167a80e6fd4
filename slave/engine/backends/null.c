/* The null backend: every I/O completes at once, so that what is measured is the engine itself. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "backend.h"
#include "time/clock.h"

struct null_context {
    uint32_t mask, head, tail; /* a ring: completed, not reaped */
    struct tag *tags[];
};

static int null_probe(uint32_t options)
{
    (void)options;
    return 0;
}

static int null_open(void **context, uint32_t depth, uint32_t options)
{
    uint32_t size = 1;

    (void)options;
    while (size < depth)
        size *= 2;
    struct null_context *null = calloc(1, sizeof *null + size * sizeof *null->tags);
    if (!null)
        return -ENOMEM;
    null->mask = size - 1;
    *context = null;
    return 0;
}

static void null_close(void *context)
{
    free(context);
}

static void null_prepare(void *context, struct tag *const *tags, uint32_t count)
{
    (void)context, (void)tags, (void)count;
}

static int null_submit(void *context, struct tag *const *tags, uint32_t count)
{
    struct null_context *null = context;

    for (uint32_t n = 0; n < count; n++)
        null->tags[null->tail++ & null->mask] = tags[n];
    return (int)count;
}

static int null_reap(void *context, struct completion *completions, uint32_t room)
{
    struct null_context *null = context;
    uint32_t count = 0;

    while (count < room && null->head != null->tail) {
        struct tag *tag = null->tags[null->head++ & null->mask];
        completions[count++] = (struct completion){.tag = tag, .result = tag_bytes(tag)};
    }
    return (int)count;
}

static int null_wait(void *context, uint64_t timeout_ns, struct completion *completions, uint32_t room)
{
    struct null_context *null = context;

    if (null->head == null->tail) {
        struct timespec time = clock_timespec(timeout_ns);
        clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
    }
    return null_reap(context, completions, room);
}

const struct backend backend_null = {
    .name = "null",
    .abilities = {.buffered = true, .trims = true},
    .probe = null_probe,
    .open = null_open,
    .close = null_close,
    .prepare = null_prepare,
    .submit = null_submit,
    .reap = null_reap,
    .wait = null_wait,
};
