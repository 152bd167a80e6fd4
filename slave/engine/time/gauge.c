#include "gauge.h"

#include "clock.h"
#include "counter.h"

enum { TRIES = 10 };

static double cost_of(bool counter, uint32_t readings)
{
    struct line l = {.slope = INT64_C(1) << LINE_SHIFT};
    uint64_t start_ns = clock_now();

    for (uint32_t n = 0; n < readings; n++) {
        volatile uint64_t now = counter ? line_at(&l, counter_read()) : clock_now();
        (void)now;
    }
    return (double)(clock_now() - start_ns) / readings;
}

double gauge_cost(bool counter, uint32_t readings)
{
    double least_ns = cost_of(counter, readings);

    for (int again = 1; again < TRIES; again++) {
        double ns = cost_of(counter, readings);
        least_ns = ns < least_ns ? ns : least_ns;
    }
    return least_ns;
}

void gauge_window(uint64_t least_ns, uint64_t *ticks, uint64_t *ns)
{
    uint64_t start_ns = clock_now(), start = counter_read();

    do {
        *ns = clock_now() - start_ns;
        *ticks = counter_read() - start;
    } while (*ns < least_ns);
}
