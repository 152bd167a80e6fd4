#include "volume.h"

#include "flush.h"

/* What an I/O counts for, of this operation and size. */
static uint32_t worth(const struct instance *i, enum op op, uint32_t bytes)
{
    switch (i->parameters.fixed.until.what) {
    case ENDS_IOS:
        return 1;
    case ENDS_BYTES:
        return op_moves_data(op) ? bytes : 0;
    case ENDS_READ:
        return op == OP_READ ? bytes : 0;
    case ENDS_WRITTEN:
        return op == OP_WRITE ? bytes : 0;
    default:
        return 0;
    }
}

static uint32_t counted(const struct instance *i, const struct tag *tag)
{
    return worth(i, tag->op, tag_bytes(tag));
}

/* The least and the most that its I/Os count for. */
struct worths {
    uint32_t least, most;
};

static struct worths worths_of_parts(const struct instance *i)
{
    struct worths w = {.least = UINT32_MAX};

    for (uint32_t n = 0; n < i->mix->count; n++) {
        uint32_t part = worth(i, i->mix->rows[n].op, i->mix->rows[n].bytes);
        w.least = part < w.least ? part : w.least;
        w.most = part > w.most ? part : w.most;
    }
    return w;
}

static struct worths worths(const struct instance *i)
{
    enum direction direction = i->sequencer.direction;

    if (direction == BY_PARTS)
        return worths_of_parts(i);
    uint32_t read = worth(i, OP_READ, i->sequencer.blocksize), write = worth(i, OP_WRITE, i->sequencer.blocksize);
    if (direction != MIXED)
        return direction == ALL_READ ? (struct worths){read, read} : (struct worths){write, write};
    return read < write ? (struct worths){read, write} : (struct worths){write, read};
}

/* Whether each of its I/Os counts, and for as much: so it is known how many it takes. */
static bool all_count(const struct instance *i)
{
    struct worths w = worths(i);

    return w.least == w.most && w.most > 0;
}

/* How many I/Os it takes at least. */
static uint64_t ios_left(const struct instance *i)
{
    uint64_t left = volume_left(i);
    uint32_t each = worths(i).most;

    if (each == 0) /* an edit is about to have some count */
        each = 1;
    return left / each + (left % each != 0);
}

/* Its thread is the only writer. */
static void set_spent(struct instance *i, uint64_t spent)
{
    atomic_store_explicit(&i->volume.spent, spent, memory_order_relaxed);
    volume_settle(i);
}

void volume_start(struct instance *i, uint64_t start_ns)
{
    i->landed_ns = 0;
    i->expires_ns = volume_is_timed(i) ? start_ns + i->parameters.fixed.until.amount - 1 : UINT64_MAX;
    atomic_store_explicit(&i->volume.ended_ns, 0, memory_order_relaxed);
    set_spent(i, 0);
}

/* Of I/Os, by what is left. */
static uint64_t longest_turn(const struct instance *i)
{
    switch (i->parameters.fixed.until.what) {
    case ENDS_NEVER:
        return INSTANCE_TURN;
    case ENDS_TIME:
        return volume_is_spent(i) ? 0 : INSTANCE_TURN;
    default:
        return ios_left(i);
    }
}

void volume_settle(struct instance *i)
{
    uint64_t most = longest_turn(i);

    if (i->flushing.due) /* which goes first */
        most = 0;
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

static void note_end(struct instance *i, uint64_t at_ns)
{
    bool noted = atomic_load_explicit(&i->volume.ended_ns, memory_order_relaxed) != 0;

    if (!noted && !i->flying.first && volume_is_spent(i) && !flush_is_end(i, at_ns))
        atomic_store_explicit(&i->volume.ended_ns, at_ns, memory_order_relaxed);
}

void volume_note_end(struct instance *i, uint64_t now_ns)
{
    i->landed_ns = now_ns;
    note_end(i, now_ns);
}

void volume_expire(struct instance *i)
{
    uint64_t at_ns = i->expires_ns;

    i->expires_ns = UINT64_MAX;
    set_spent(i, i->parameters.fixed.until.amount);
    note_end(i, at_ns > i->landed_ns ? at_ns : i->landed_ns);
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
    if (i->pacer.ticking || i->parameters.setting.iops <= 0.0 || volume_left(i) == 0 || volume_is_timed(i))
        return false;
    return !all_count(i) || i->pacer.backlog < ios_left(i);
}
