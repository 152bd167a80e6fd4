/* The order of the counter across cores, and whether it is trusted. */
#include "check.h"
#include "time/clock.h"
#include "time/counter.h"

int main(void)
{
    struct order order;
    char why[COUNTER_WORDS];

    CHECK(counter_order(&order, ORDER_TURNS, 5 * NS_PER_S) == 0);
    bool trusted = counter_judge(&order, why);
    printf("%s %s cores %u turns %llu backwards %llu\n", trusted ? "trusted" : "refused", why, order.cores,
           (unsigned long long)order.least_turns, (unsigned long long)order.backwards);
    if (trusted) {
        struct reading first = counter_bracket(CLOCK_MONOTONIC), second = counter_bracket(CLOCK_MONOTONIC);
        CHECK(second.ticks > first.ticks);
        CHECK(second.ns > first.ns);
    }
    return 0;
}
