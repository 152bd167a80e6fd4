#include "line.h"

/* Of its own rate: 1/8. A tenth of a second in one subinterval of a second; beyond it, the rest comes later. */
enum { MOST_SLEW = 8 };

struct line line_through(const struct reading *at, uint64_t ns, uint64_t ticks)
{
    i128 slope = ticks ? (((i128)ns << LINE_SHIFT) + ticks / 2) / ticks : 0;

    if (slope > INT64_MAX)
        slope = 0; /* a counter too slow to stamp I/Os */
    return (struct line){.ticks = at->ticks, .ns = at->ns, .slope = (int64_t)slope};
}

int64_t line_follow(struct line *own, const struct line *anchor, uint64_t ticks, uint64_t over_ns)
{
    uint64_t own_ns = line_at(own, ticks);
    int64_t behind_ns = (int64_t)(line_at(anchor, ticks) - own_ns), most_ns = (int64_t)(over_ns / MOST_SLEW);

    if (behind_ns > most_ns)
        behind_ns = most_ns;
    if (behind_ns < -most_ns)
        behind_ns = -most_ns;
    *own = (struct line){.ticks = ticks, .ns = own_ns, .slope = anchor->slope};
    if (over_ns)
        own->slope += (int64_t)((i128)anchor->slope * behind_ns / (int64_t)over_ns);
    return behind_ns;
}

struct line calibration_add(struct calibration *c, const struct reading *newest)
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
        return (struct line){.ticks = newest->ticks, .ns = newest->ns};
    return line_through(newest, span_ns, newest->ticks - c->oldest.ticks);
}
