#include "schedule.h"

#include <math.h>

#include "random.h"
#include "time/clock.h"

/* 116 days: an exponential gap of 36.7 times the longest mean still is far from the end of 64 bits. */
#define LONGEST_MEAN_NS 1e16

static void add(struct schedule *s, uint64_t ns, uint64_t fraction)
{
    s->due_fraction += fraction;
    s->due_ns += ns + (s->due_fraction < fraction);
}

static void add_real(struct schedule *s, double ns)
{
    uint64_t whole = (uint64_t)ns;

    add(s, whole, (uint64_t)((ns - (double)whole) * 0x1p64));
}

static void set_rate(struct schedule *s, double iops)
{
    s->mean_ns = fmin((double)NS_PER_S / iops, LONGEST_MEAN_NS);
    s->gap_ns = (uint64_t)s->mean_ns;
    s->gap_fraction = (uint64_t)((s->mean_ns - (double)s->gap_ns) * 0x1p64);
}

void schedule_start(struct schedule *s, bool exponential, double iops, uint64_t at_ns)
{
    set_rate(s, iops);
    s->due_ns = at_ns;
    s->due_fraction = 0;
    add_real(s, s->mean_ns * (exponential ? random_exponential(&s->random) : random_unit(&s->random)));
}

void schedule_retime(struct schedule *s, double iops, uint64_t at_ns)
{
    double old_mean = s->mean_ns, remaining = 0.0;

    if (s->due_ns >= at_ns)
        remaining = (double)(s->due_ns - at_ns) + (double)s->due_fraction * 0x1p-64;
    set_rate(s, iops);
    s->due_ns = at_ns;
    s->due_fraction = 0;
    add_real(s, remaining * (s->mean_ns / old_mean));
}

void schedule_advance(struct schedule *s, bool exponential)
{
    if (exponential)
        add_real(s, s->mean_ns * random_exponential(&s->random));
    else
        add(s, s->gap_ns, s->gap_fraction);
}

/* Even gaps, many of them: one division instead of a loop, so that no rate and no stall takes long to count. */
static uint64_t pass_even(struct schedule *s, uint64_t until_ns)
{
    u128 due = ((u128)s->due_ns << 64) | s->due_fraction;
    u128 gap = ((u128)s->gap_ns << 64) | s->gap_fraction;
    u128 behind = ((u128)until_ns << 64) - due;
    uint64_t passed = (uint64_t)((behind + gap - 1) / gap);

    due += gap * passed;
    s->due_ns = (uint64_t)(due >> 64);
    s->due_fraction = (uint64_t)due;
    return passed;
}

uint64_t schedule_pass(struct schedule *s, bool exponential, uint64_t until_ns, uint64_t most)
{
    uint64_t passed = 0;

    while (s->due_ns < until_ns && passed < most) {
        if (!exponential && passed == 2)
            return passed + pass_even(s, until_ns);
        schedule_advance(s, exponential);
        passed++;
    }
    return passed;
}
