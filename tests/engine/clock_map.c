/* The clock as a line, on a simulated clock: exact, true for a day, and never going back. */
#include <inttypes.h>
#include <string.h>

#include "check.h"
#include "load/random.h"
#include "thread/step.h"
#include "time/clock.h"
#include "time/clock_map.h"

static void convert(void)
{
    uint64_t ticks, per_s, seconds;

    while (scanf("%" SCNu64 " %" SCNu64, &per_s, &seconds) == 2) {
        struct reading start = {.ticks = 12345, .ns = 0};
        ticks = per_s * seconds;
        struct clock_map l = clock_map_through(&start, NS_PER_S, per_s);
        printf("%" PRIu64 "\n", clock_map_at(&l, start.ticks + ticks));
    }
}

/* What the counter of `hertz` shows at an instant; exact. */
static uint64_t ticks_at(uint64_t ns, uint64_t hertz)
{
    return (uint64_t)((u128)ns * hertz / NS_PER_S) + UINT64_C(0xfedcba9876543210);
}

/* A day of 5 s: boundaries lie where they should, and the thread's clock is at each within a nanosecond or two of the
 * truth, with the anchor that was taken a subinterval ago. */
static void day(void)
{
    enum { SUBINTERVALS = 24 * 720 };
    const uint64_t hertz = UINT64_C(2699999871), length_ns = 5 * NS_PER_S, start_ns = UINT64_C(777000000123);
    static struct step s;
    struct calibration c = {0};
    struct clock_map own = {0}, anchor = {0};
    uint64_t boundary_ns = start_ns;
    int64_t worst_ns = 0;

    step_init(&s, start_ns, length_ns);
    for (uint32_t n = 0; n < SUBINTERVALS; n++) {
        boundary_ns = step_boundary(&s, n, boundary_ns);
        CHECK_EQUAL(boundary_ns, start_ns + (n + UINT64_C(1)) * length_ns);
        uint64_t ticks = ticks_at(boundary_ns, hertz);
        struct reading now = {.ticks = ticks, .ns = boundary_ns};
        if (own.slope) {
            int64_t off_ns = (int64_t)(clock_map_at(&own, ticks) - boundary_ns);
            worst_ns = llabs(off_ns) > worst_ns ? llabs(off_ns) : worst_ns;
            clock_map_follow(&own, &anchor, ticks, length_ns);
        } else if (anchor.slope) {
            own = anchor;
        }
        anchor = calibration_add(&c, &now);
    }
    CHECK(worst_ns <= 2);
    CHECK(own.slope);
}

/* Anchors that jump about, as after a migration of a virtual machine, and swaps at any time. */
static void forward(void)
{
    uint64_t random = 7, hertz = UINT64_C(2700000000), ticks = ticks_at(0, hertz), last_ns = 0;
    struct reading start = {.ticks = ticks, .ns = NS_PER_S};
    struct clock_map own = clock_map_through(&start, NS_PER_S, hertz);

    for (uint32_t turn = 0; turn < 200000; turn++) {
        uint64_t off_ns = UINT64_C(1) << random_below(&random, 36);
        struct reading at = {.ticks = ticks, .ns = clock_map_at(&own, ticks) + off_ns};
        if (random_below(&random, 2))
            at.ns -= 2 * off_ns;
        struct clock_map anchor = clock_map_through(&at, NS_PER_S, hertz + random_below(&random, 1000));
        uint64_t over_ns = UINT64_C(1) << random_below(&random, 33);
        uint64_t before_ns = clock_map_at(&own, ticks);
        int64_t moved_ns = clock_map_follow(&own, &anchor, ticks, over_ns);
        CHECK_EQUAL(clock_map_at(&own, ticks), before_ns);
        CHECK(own.slope > 0);
        CHECK(llabs(moved_ns) <= (int64_t)off_ns + 1);
        for (uint32_t n = 0; n < 5; n++) {
            ticks += random_below(&random, 1 << 20);
            CHECK(clock_map_at(&own, ticks) >= last_ns);
            last_ns = clock_map_at(&own, ticks);
        }
    }
}

/* What is off is made up for exactly at the end of the time that it was given. */
static void meet(void)
{
    const uint64_t hertz = UINT64_C(2600001000);

    for (int64_t off_ns = -100000000; off_ns <= 100000000; off_ns += 1000003) {
        struct reading at = {.ticks = ticks_at(0, hertz), .ns = 50 * NS_PER_S};
        struct clock_map anchor = clock_map_through(&at, NS_PER_S, hertz), own = anchor;
        own.ns -= (uint64_t)off_ns;
        int64_t moved_ns = clock_map_follow(&own, &anchor, at.ticks, NS_PER_S);
        CHECK_EQUAL(moved_ns, off_ns);
        int64_t left_ns = (int64_t)(clock_map_at(&anchor, at.ticks + hertz) - clock_map_at(&own, at.ticks + hertz));
        CHECK(llabs(left_ns) <= 1);
    }
}

int main(int count, char **words)
{
    CHECK(count == 2);
    if (strcmp(words[1], "convert") == 0)
        convert();
    else if (strcmp(words[1], "day") == 0)
        day();
    else if (strcmp(words[1], "forward") == 0)
        forward();
    else
        meet();
    return 0;
}
