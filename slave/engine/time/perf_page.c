#define _GNU_SOURCE
#include "perf_page.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "clock.h"

double perf_page_kernel_hz(void)
{
    /* Any event has the page; one that counts nothing is allowed to everyone. */
    struct perf_event_attr what = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof what,
                                   .config = PERF_COUNT_SW_DUMMY,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    double hertz = 0;
    int fd = (int)syscall(SYS_perf_event_open, &what, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

    if (fd < 0)
        return 0;
    struct perf_event_mmap_page *page = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED) {
        /* ns = ticks x mult >> shift */
        if (page->cap_user_time && page->time_mult)
            hertz = (double)(UINT64_C(1) << page->time_shift) * (double)NS_PER_S / page->time_mult;
        munmap(page, size);
    }
    close(fd);
    return hertz;
}

double perf_page_cpuid_hz(void)
{
#ifdef __x86_64__
    enum { LEAF_RATIO = 0x15 };
    unsigned denominator = 0, numerator = 0, crystal_hz = 0, d;

    if (__get_cpuid(LEAF_RATIO, &denominator, &numerator, &crystal_hz, &d) && denominator && numerator && crystal_hz)
        return (double)crystal_hz * numerator / denominator;
#endif
    return 0;
}
