#include "clock_selftest.h"

#include "clock.h"
#include "tsc.h"

enum { TRIES = 10 };

static double cost_of(bool counter, uint32_t readings)
{
    struct clock_map l = {.slope = INT64_C(1) << CLOCK_MAP_SHIFT};
    uint64_t start_ns = clock_now();

    for (uint32_t n = 0; n < readings; n++) {
        volatile uint64_t now = counter ? clock_map_at(&l, tsc_read()) : clock_now();
        (void)now;
    }
    return (double)(clock_now() - start_ns) / readings;
}

double clock_selftest_cost(bool counter, uint32_t readings)
{
    double least_ns = cost_of(counter, readings);

    for (int again = 1; again < TRIES; again++) {
        double ns = cost_of(counter, readings);
        least_ns = ns < least_ns ? ns : least_ns;
    }
    return least_ns;
}

void clock_selftest_window(uint64_t least_ns, uint64_t *ticks, uint64_t *ns)
{
    uint64_t start_ns = clock_now(), start = tsc_read();

    do {
        *ns = clock_now() - start_ns;
        *ticks = tsc_read() - start;
    } while (*ns < least_ns);
}
