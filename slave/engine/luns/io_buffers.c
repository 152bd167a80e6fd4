#define _GNU_SOURCE
#include "io_buffers.h"

#include <stdint.h>
#include <sys/mman.h>

#ifndef MAP_HUGE_2MB
#define MAP_HUGE_2MB (21 << 26)
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static char *map(size_t size, int flags)
{
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    return data == MAP_FAILED ? NULL : data;
}

static size_t round_up(size_t size, size_t page)
{
    return (size + page - 1) / page * page;
}

/* Filled at once, and by a call that may fail: where a control group allows no huge pages, mapping them succeeds and
 * the first touch would kill. Kernels before 5.14 have no such call, and get none. */
static char *reserved(size_t size)
{
    char *data = map(size, MAP_HUGETLB | MAP_HUGE_2MB);

    if (data && madvise(data, size, MADV_POPULATE_WRITE) != 0) {
        munmap(data, size);
        return NULL;
    }
    return data;
}

/* On a huge page's boundary, for a huge page lies nowhere else. */
static char *aligned(size_t size)
{
    char *data = map(size + HUGE_PAGE, 0);

    if (!data)
        return NULL;
    size_t before = round_up((uintptr_t)data, HUGE_PAGE) - (uintptr_t)data, behind = HUGE_PAGE - before;
    if (before)
        munmap(data, before);
    if (behind)
        munmap(data + before + size, behind);
    madvise(data + before, size, MADV_HUGEPAGE); /* a kernel without them refuses */
    return data + before;
}

char *io_buffers_take(size_t *size, bool from_reserved)
{
    enum { PAGE = 4096 };
    bool large = *size >= HUGE_PAGE;

    *size = round_up(*size, large ? HUGE_PAGE : PAGE);
    if (!large)
        return map(*size, 0);
    char *data = from_reserved ? reserved(*size) : NULL;
    return data ? data : aligned(*size);
}

void io_buffers_free(char *data, size_t size)
{
    if (data)
        munmap(data, size);
}
