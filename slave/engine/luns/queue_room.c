#include "queue_room.h"

#include <stddef.h>

enum { MOST_IN_LOT = 16 };

static uint64_t load(const _Atomic uint64_t *figure)
{
    return atomic_load_explicit(figure, memory_order_relaxed);
}

static uint32_t load_32(const _Atomic uint32_t *figure)
{
    return atomic_load_explicit(figure, memory_order_relaxed);
}

/* At most an eighth of the room is held and not used: two lots by each thread. */
void queue_room_init(struct queue_room *r, uint32_t limit, uint32_t threads, bool whole)
{
    uint32_t lot = limit / (16 * (threads ? threads : 1));

    *r = (struct queue_room){.limit = limit, .lot = lot > MOST_IN_LOT ? MOST_IN_LOT : lot ? lot : 1, .whole = whole};
    atomic_store(&r->free, limit);
}

/* What it may hold while others are hungry: room for its one I/O, and of the rest in proportion to what is wanted. */
static uint32_t part(const struct holding *h)
{
    uint64_t all = load(&h->room->wanted), reserved = load_32(&h->room->reserved);
    uint64_t rest = h->room->limit > reserved ? h->room->limit - reserved : 0;

    return h->reserve + (all ? (uint32_t)((double)rest * ((double)h->wanted / (double)all)) : 0u);
}

static bool others_are_hungry(const struct holding *h)
{
    return load_32(&h->room->hungry) > h->hungry;
}

static void hold(struct holding *h, uint32_t held)
{
    atomic_fetch_sub_explicit(&h->room->free, (int64_t)held - (int64_t)h->held, memory_order_relaxed);
    h->held = held;
}

void holding_cover(struct holding *h, uint32_t in_flight)
{
    if (h->room && in_flight > h->held)
        hold(h, in_flight);
}

void holding_demand(struct holding *h, int64_t wanted, uint32_t weight, int blocking)
{
    struct queue_room *r = h->room;

    h->wanted += (uint64_t)wanted;
    if (!r)
        return;
    atomic_fetch_add_explicit(&r->wanted, (uint64_t)wanted, memory_order_relaxed);
    atomic_fetch_add_explicit(&r->blocking, (uint32_t)blocking, memory_order_relaxed);
    if (weight <= h->reserve)
        return;
    atomic_fetch_add_explicit(&r->reserved, weight - h->reserve, memory_order_relaxed);
    h->reserve = weight;
    holding_cover(h, weight);
}

void holding_init(struct holding *h, struct queue_room *room)
{
    *h = (struct holding){.room = room, .held = room ? 0 : UINT32_MAX};
    holding_demand(h, 0, 1, 0);
}

void holding_calm(struct holding *h)
{
    if (!h->hungry)
        return;
    h->hungry = false;
    atomic_fetch_sub_explicit(&h->room->hungry, 1, memory_order_relaxed);
}

/* Takes between `least` and `most` of what nobody holds: how much; 0: there is less. */
static uint32_t take_free(struct queue_room *r, uint32_t least, uint32_t most)
{
    int64_t free = atomic_load_explicit(&r->free, memory_order_relaxed);

    while (free >= least) {
        uint32_t taken = free < most ? (uint32_t)free : most;
        if (atomic_compare_exchange_weak_explicit(&r->free, &free, free - taken, memory_order_relaxed,
                                                  memory_order_relaxed))
            return taken;
    }
    return 0;
}

bool holding_take(struct holding *h, uint32_t in_flight, uint32_t weight)
{
    struct queue_room *r = h->room;
    uint32_t after = in_flight + weight;

    if (!r || after <= h->held)
        return true;
    uint32_t least = after - h->held, most = least > r->lot ? least : r->lot;
    if (load_32(&r->blocking) == 0) {
        hold(h, h->held + most);
    } else if (others_are_hungry(h)) {
        uint32_t taken = after <= part(h) ? take_free(r, least, least) : 0;
        if (!taken)
            return false;
        h->held += taken;
    } else {
        uint32_t taken = take_free(r, least, most);
        if (!taken)
            return false;
        h->held += taken;
    }
    holding_calm(h);
    return true;
}

void holding_wait(struct holding *h, uint32_t in_flight, uint32_t weight)
{
    if (!h->room)
        return;
    bool hungry = in_flight + weight <= part(h);
    if (!hungry)
        holding_calm(h);
    else if (!h->hungry)
        atomic_fetch_add_explicit(&h->room->hungry, 1, memory_order_relaxed);
    h->hungry = hungry;
}

void holding_release(struct holding *h, uint32_t in_flight)
{
    struct queue_room *r = h->room;

    if (!r || h->held <= h->reserve)
        return;
    uint32_t held = h->held;
    if (in_flight == 0)
        held = 0;
    else if (held > in_flight + 2 * r->lot)
        held = in_flight + r->lot;
    if (others_are_hungry(h) && held > part(h))
        held = in_flight > part(h) ? in_flight : part(h);
    if (held < h->reserve)
        held = h->reserve;
    if (held < h->held)
        hold(h, held);
}

bool holding_device_is_full(const struct holding *h, uint32_t in_flight, uint32_t weight)
{
    const struct queue_room *r = h->room;

    return r && r->whole && load_32(&r->blocking) > 0 &&
           (int64_t)in_flight + weight - h->held > atomic_load_explicit(&r->free, memory_order_relaxed);
}
