#include "flush.h"

#include "volume.h"

void flush_start(struct instance *i)
{
    i->flushing = (struct flushing){0};
    flush_settle(i);
}

void flush_settle(struct instance *i)
{
    i->eager = i->closed_loop || (i->flushing.due && !instance_is_paused(i));
    volume_settle(i);
}

static void fall_due(struct instance *i, uint64_t since_ns)
{
    if (i->flushing.due++ == 0)
        i->flushing.due_ns = since_ns;
    flush_settle(i);
}

/* Whether none but the end's may begin, since its time is over. */
static bool time_is_over(const struct instance *i)
{
    return volume_is_timed(i) && volume_is_spent(i);
}

/* Of a write that still counts as in flight: whether no other I/O is, nor will be. */
static bool was_last(const struct instance *i)
{
    return volume_is_spent(i) && i->in_flight - i->flushing.in_flight == 1;
}

void flush_count_write(struct instance *i, uint64_t since_ns)
{
    struct flushing *f = &i->flushing;
    uint64_t every = i->parameters.fixed.flush.every;

    f->wrote = true;
    if (every == 0 || ++f->writes < every || f->forbidden || time_is_over(i) || was_last(i))
        return;
    f->writes = 0;
    fall_due(i, since_ns);
}

/* At the end all metadata, whatever the others are. */
static enum op op_of(const struct instance *i)
{
    bool data = i->parameters.fixed.flush.how == FLUSH_DATA && i->flushing.end != END_FLUSH_DUE;

    return data ? OP_FDATASYNC : OP_FSYNC;
}

void flush_begin(struct instance *i, struct tag *tag)
{
    struct flushing *f = &i->flushing;

    tag->op = (uint8_t)op_of(i);
    tag->filed_as = FILED_AS_FLUSH;
    f->due--;
    if (f->kept)
        f->kept--;
    f->in_flight++;
    flush_settle(i);
}

void flush_land(struct instance *i, struct tag *tag)
{
    struct flushing *f = &i->flushing;

    tag->filed_as = FILED_AS_IO;
    f->in_flight--;
    if (f->end == END_FLUSH_DUE)
        f->end = END_FLUSH_OVER;
}

void flush_return(struct instance *i, struct tag *tag)
{
    struct flushing *f = &i->flushing;

    tag->filed_as = FILED_AS_IO;
    f->in_flight--;
    if (!f->forbidden && (f->end == END_FLUSH_DUE || !time_is_over(i)))
        f->due++;
    flush_settle(i);
}

void flush_cancel(struct instance *i)
{
    i->flushing.due = i->flushing.kept = 0;
    flush_settle(i);
}

void flush_forbid(struct instance *i)
{
    i->flushing.forbidden = true;
    flush_cancel(i);
}

bool flush_is_end(struct instance *i, uint64_t now_ns)
{
    struct flushing *f = &i->flushing;

    if (f->due)
        return true;
    if (!i->parameters.fixed.end_fsync || !f->wrote || f->end == END_FLUSH_OVER)
        return false;
    if (!f->forbidden) {
        f->end = END_FLUSH_DUE;
        fall_due(i, now_ns);
    }
    return true;
}

bool flush_keeps_tag(struct instance *i)
{
    struct flushing *f = &i->flushing;

    if (f->kept >= f->due)
        return false;
    f->kept++;
    return true;
}
