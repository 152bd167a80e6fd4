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

static size_t round_up(size_t size)
{
    return (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

/* Filled at once, and by a call that may fail: where a control group allows no huge pages, mapping them succeeds and the
 * first touch would kill. Kernels before 5.14 have no such call, and get none. */
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
    size_t before = round_up((uintptr_t)data) - (uintptr_t)data, behind = HUGE_PAGE - before;
    if (before)
        munmap(data, before);
    if (behind)
        munmap(data + before + size, behind);
    madvise(data + before, size, MADV_HUGEPAGE); /* a kernel without them refuses */
    return data + before;
}

char *io_buffers_take(size_t *size)
{
    enum { PAGE = 4096 };
    size_t wanted = (*size + PAGE - 1) / PAGE * PAGE;

    if (wanted >= HUGE_PAGE) {
        *size = round_up(wanted);
        char *data = reserved(*size);
        if (data)
            return data;
    }
    *size = wanted;
    return wanted >= HUGE_PAGE ? aligned(wanted) : map(wanted, 0);
}

void io_buffers_free(char *data, size_t size)
{
    if (data)
        munmap(data, size);
}
