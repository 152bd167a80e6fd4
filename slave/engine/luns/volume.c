#include "volume.h"

/* What of it is counted, of one I/O. */
static uint64_t counted(const struct instance *i, const struct tag *tag)
{
    switch (i->parameters.fixed.until.what) {
    case ENDS_IOS:
        return 1;
    case ENDS_BYTES:
        return tag_bytes(tag);
    case ENDS_READ:
        return tag->write ? 0 : tag_bytes(tag);
    case ENDS_WRITTEN:
        return tag->write ? tag_bytes(tag) : 0;
    default:
        return 0;
    }
}

/* Whether each of its I/Os counts. */
static bool all_count(const struct instance *i)
{
    switch (i->parameters.fixed.until.what) {
    case ENDS_READ:
        return i->sequencer.direction == ALL_READ;
    case ENDS_WRITTEN:
        return i->sequencer.direction == ALL_WRITE;
    default:
        return i->parameters.fixed.until.what != ENDS_NEVER;
    }
}

/* How many I/Os it takes at least. */
static uint64_t ios_left(const struct instance *i)
{
    uint64_t left = volume_left(i), each = i->parameters.fixed.until.what == ENDS_IOS ? 1 : i->sequencer.blocksize;

    return left / each + (left % each != 0);
}

/* Its thread is the only writer. */
static void set_spent(struct instance *i, uint64_t spent)
{
    atomic_store_explicit(&i->volume.spent, spent, memory_order_relaxed);
    volume_settle(i);
}

void volume_start(struct instance *i)
{
    atomic_store_explicit(&i->volume.ended_ns, 0, memory_order_relaxed);
    set_spent(i, 0);
}

void volume_settle(struct instance *i)
{
    uint64_t most = i->parameters.fixed.until.what == ENDS_NEVER ? INSTANCE_TURN : ios_left(i);

    i->turn = most < INSTANCE_TURN ? (uint8_t)most : INSTANCE_TURN;
}

void volume_spend(struct instance *i, const struct tag *first)
{
    uint64_t spent = atomic_load_explicit(&i->volume.spent, memory_order_relaxed);

    for (const struct tag *tag = first; tag; tag = tag->next)
        spent += counted(i, tag);
    set_spent(i, spent);
}

void volume_return(struct instance *i, const struct tag *tag)
{
    set_spent(i, atomic_load_explicit(&i->volume.spent, memory_order_relaxed) - counted(i, tag));
}

void volume_note_end(struct instance *i, uint64_t now_ns)
{
    bool noted = atomic_load_explicit(&i->volume.ended_ns, memory_order_relaxed) != 0;

    if (!noted && !i->flying.first && volume_is_spent(i))
        atomic_store_explicit(&i->volume.ended_ns, now_ns, memory_order_relaxed);
}

uint64_t volume_bound(struct instance *i, uint64_t fallen)
{
    uint64_t wanted = ios_left(i), excess;

    if (!all_count(i) || i->pacer.backlog < wanted)
        return fallen;
    excess = i->pacer.backlog - wanted;
    if (excess > fallen) /* those before were due already */
        excess = fallen;
    pacer_end(&i->pacer, excess);
    return fallen - excess;
}

bool volume_lacks(const struct instance *i)
{
    if (i->pacer.ticking || i->parameters.setting.iops <= 0.0 || volume_left(i) == 0)
        return false;
    return !all_count(i) || i->pacer.backlog < ios_left(i);
}
