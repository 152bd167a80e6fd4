#include "clock_map.h"

/* Of its own rate: 1/8. A tenth of a second in one subinterval of a second; beyond it, the rest comes later. */
enum { MOST_SLEW = 8 };

struct clock_map clock_map_through(const struct reading *at, uint64_t ns, uint64_t ticks)
{
    i128 slope = ticks ? (((i128)ns << CLOCK_MAP_SHIFT) + ticks / 2) / ticks : 0;

    if (slope > INT64_MAX)
        slope = 0; /* a counter too slow to stamp I/Os */
    return (struct clock_map){.ticks = at->ticks, .ns = at->ns, .slope = (int64_t)slope};
}

int64_t clock_map_follow(struct clock_map *own, const struct clock_map *anchor, uint64_t ticks, uint64_t over_ns)
{
    uint64_t own_ns = clock_map_at(own, ticks);
    int64_t behind_ns = (int64_t)(clock_map_at(anchor, ticks) - own_ns), most_ns = (int64_t)(over_ns / MOST_SLEW);

    if (behind_ns > most_ns)
        behind_ns = most_ns;
    if (behind_ns < -most_ns)
        behind_ns = -most_ns;
    *own = (struct clock_map){.ticks = ticks, .ns = own_ns, .slope = anchor->slope};
    if (over_ns)
        own->slope += (int64_t)((i128)anchor->slope * behind_ns / (int64_t)over_ns);
    return behind_ns;
}

struct clock_map calibration_add(struct calibration *c, const struct reading *newest)
{
    if (!c->begun) {
        c->oldest = c->middle = *newest;
        c->begun = true;
    } else if (newest->ns - c->middle.ns >= CALIBRATION_NS) {
        c->oldest = c->middle;
        c->middle = *newest;
    }
    uint64_t span_ns = newest->ns - c->oldest.ns;
    if (span_ns < CALIBRATION_LEAST_NS)
        return (struct clock_map){.ticks = newest->ticks, .ns = newest->ns};
    return clock_map_through(newest, span_ns, newest->ticks - c->oldest.ticks);
}
