/* The order of the counter across cores, and whether it is trusted. */
#include "time/tsc.h"
#include "check.h"
#include "time/clock.h"

int main(void)
{
    struct tsc_order order;
    char why[TSC_WORDS];

    CHECK(tsc_order(&order, ORDER_TURNS, 5 * NS_PER_S) == 0);
    bool trusted = tsc_check(&order, why);
    printf("%s %s cores %u turns %llu backwards %llu\n", trusted ? "trusted" : "refused", why, order.cores,
           (unsigned long long)order.least_turns, (unsigned long long)order.backwards);
    if (trusted) {
        struct reading first = tsc_bracket(CLOCK_MONOTONIC), second = tsc_bracket(CLOCK_MONOTONIC);
        CHECK(second.ticks > first.ticks);
        CHECK(second.ns > first.ns);
    }
    return 0;
}
