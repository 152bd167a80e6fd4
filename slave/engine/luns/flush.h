/* The flushes of a workload instance: fsync or fdatasync of its LUN, after so many acknowledged writes (`flush`), and
 * as its end by `until` (`end_fsync`).
 *
 * Rule: flush k falls due when write k * every is acknowledged, unless that is the instance's last I/O: n writes have
 * (n - 1) / every flushes, rounded down, at any depth. A flush covers the writes that were acknowledged before it was
 * submitted. It takes a tag, and goes before any other I/O of its instance, so that flushes slower than the writes
 * between them slow these down; several may be in flight. It has no due time, and is no I/O of a user: one who thinks
 * between two I/Os flushes at once after its write, and thinks then.
 *
 * In a pause none begins: those that are due wait for its end. A cooldown, or the end of the instance's time, cancels
 * them. Those that are due as `until` is spent by volume still go; the one that is the end (`end_fsync`) follows all
 * other I/Os, where any write was acknowledged. One that fails is not repeated. Instances without flushes pay nothing
 * for this: what all of them ask is how long a turn may be, and whether turns and completions are counted.
 */
#ifndef IVYPY_FLUSH_H
#define IVYPY_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

#include "instance.h"

static inline bool flush_is_wanted(const struct fixed *f)
{
    return f->flush.every || f->end_fsync;
}

/* At the start of a step. */
void flush_start(struct instance *i);

/* After a change of what the instance may submit. */
void flush_settle(struct instance *i);

/* A write of it was acknowledged, which still counts as in flight; on a generator that is never late that would have
 * been at `since_ns`. */
void flush_count_write(struct instance *i, uint64_t since_ns);

/* One that is due is in the batch, in this tag. */
void flush_begin(struct instance *i, struct tag *tag);

/* It completed, or failed. */
void flush_land(struct instance *i, struct tag *tag);

/* It was never submitted, or is not submitted again: it is due still. */
void flush_return(struct instance *i, struct tag *tag);

/* What is due is not submitted. */
void flush_cancel(struct instance *i);

/* Nor is any other from now on. */
void flush_forbid(struct instance *i);

/* All its other I/Os have ended: whether flushes are due, or one is its end, which is then due, or never comes. */
bool flush_is_end(struct instance *i, uint64_t now_ns);

/* Whether the tag of a user that would think is kept for a flush that is due: once for each. */
bool flush_keeps_tag(struct instance *i);

#endif
