/* One workload instance on its thread, and its tags: the I/Os that it may have in flight.
 *
 * Rule: all memory is taken before a step: what I/O touches by the workload thread itself, so that it lies on that
 * thread's NUMA node (the kernel allocates a page on the node of the core that touches it first). A tag is two cache
 * lines; those in flight are linked in the order of their submission, so that the oldest is always at hand. Between
 * steps the commanding thread owns instances, while a step runs the workload thread does; only oldest_submit_ns is for
 * both.
 */
#ifndef IVYPY_INSTANCE_H
#define IVYPY_INSTANCE_H

#include <linux/aio_abi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "extents.h"
#include "load/ideal_tags.h"
#include "load/mix.h"
#include "load/pacer.h"
#include "load/sequencer.h"
#include "lun.h"

struct instance;
struct share;

/* What becomes of it when it comes back; an orphan is in flight from an earlier step, and counts no more. */
enum filed_as { FILED_AS_IO, FILED_AS_FLUSH, FILED_AS_ORPHAN };

struct tag {
    struct iocb iocb; /* libaio's own form of it; with every backend, place and size of the I/O stand there, and how
                       * much of its write buffer its last write took */
    uint64_t submit_ns;
    uint64_t due_ns;  /* 0: submitted as fast as it goes, without a due time; thinking: when that ends */
    uint64_t late_ns; /* by how much it was submitted later than that and its tag allowed, and reaped late; of a user:
                       * how far it is behind, see think.h; in the batch: since when it is late, 0: it cannot be */
    struct tag *next, *previous; /* in flight: by age; free: next only */
    union {
        struct tag *next_again; /* waiting to be submitted once more, after EAGAIN */
        uint64_t behind_ns;     /* in the batch: how far a user was behind before, else 0 */
    };
    struct instance *instance;
    uint16_t weight; /* requests of the share's queue that it takes */
    uint8_t kind;    /* enum kind */
    uint8_t op;      /* enum op */
    bool nowait;
    bool fresh;       /* its write buffer holds what was never written yet, all of it */
    bool again;       /* being submitted once more: keeps its times */
    uint8_t filed_as; /* enum filed_as */
};

_Static_assert(sizeof(struct tag) == 128, "a tag is two cache lines");

struct tag_list {
    struct tag *first, *last;
};

/* Of a closed loop whose tags think between two I/Os: see think.h. */
struct thinking {
    uint64_t time_ns;         /* 0: none does, and nothing else of this means anything */
    struct tag *first, *last; /* they think; the next to end first */
    struct tag *last_ready;   /* of the free list, where that is not empty */
    struct tag *spare;
    uint32_t users;
};

enum end_flush { END_FLUSH_LATER, END_FLUSH_DUE, END_FLUSH_OVER };

/* See flush.h. */
struct flushing {
    uint64_t writes;    /* acknowledged since the last fell due */
    uint64_t due_ns;    /* since when the first of those that are due is */
    uint32_t due;       /* have fallen due, and are not in the batch: the next I/Os are these */
    uint32_t kept;      /* of `due`: users that would think have left so many their tags */
    uint32_t in_flight; /* in the batch, too */
    bool forbidden;     /* none begins any more */
    bool wrote;         /* any write was acknowledged in this step */
    uint8_t end;        /* enum end_flush */
};

/* What an edit may change. */
struct setting {
    double iops; /* < 0: max; 0: paused */
    double fraction_read;
    double skew; /* its weight among those of the LUN, see skew.h; 0: none */
    uint64_t range_start, range_end;
    uint32_t maxtags, blocksize;
    uint32_t parts_count; /* 0: reads and writes of `blocksize`, by fraction_read */
    struct mix_part parts[MOST_PARTS];
};

/* The most that edits may ask for: buffers are made for it. */
struct ceiling {
    uint32_t tags, blocksize;
};

enum iosequencer { RANDOM_STEADY, RANDOM_INDEPENDENT, SEQUENTIAL };

/* What of an instance's I/Os counts towards its end. */
enum ends { ENDS_NEVER, ENDS_TIME, ENDS_IOS, ENDS_BYTES, ENDS_READ, ENDS_WRITTEN };

struct until {
    uint64_t what;   /* enum ends */
    uint64_t amount; /* ns, I/Os or bytes */
};

enum sync { SYNC_NONE, SYNC_DATA, SYNC_ALL }; /* RWF_DSYNC, RWF_SYNC */

enum cursors { CURSOR_SHARED, CURSOR_BY_OPERATION };

enum flush_kind { FLUSH_ALL, FLUSH_DATA }; /* fsync, fdatasync */

struct flush {
    uint64_t how;   /* enum flush_kind */
    uint64_t every; /* acknowledged writes from one to the next; 0: none */
};

/* What no edit changes: compared byte by byte, so each is of 64 bits. */
struct fixed {
    uint64_t iosequencer; /* enum iosequencer */
    uint64_t seed;
    uint64_t drop_after_ns; /* how long an I/O that is due may wait for its submission; 0: for as long as it takes */
    uint64_t start_ns;      /* from a step's start to its own */
    uint64_t on_ns, off_ns; /* of bursts; both 0: it has none */
    uint64_t think_ns;      /* between the end of an I/O and its tag's next one, in a closed loop */
    struct until until;
    uint64_t random_map; /* 0 or 1 */
    uint64_t sync;       /* enum sync: what of a write is durable once it is acknowledged */
    struct flush flush;
    uint64_t end_fsync; /* 0 or 1: whether the end by `until` is an fsync of what it wrote */
    uint64_t align;     /* I/Os begin at multiples of it; 0: of their size, of several the least */
    double sequential;  /* share of a random workload's I/Os that begin where its last one ended */
    uint64_t streams;   /* of a sequential workload, in turns, each in its own part of the range; 0 is 1 */
    uint64_t cursors;   /* enum cursors */
    double zipf, pareto, normal;
    uint64_t working_set;  /* bytes; 0: all */
    uint64_t scattered;    /* 0 or 1 */
    uint64_t scatter_seed; /* alone: so that all instances with it have one hot set, in all steps */
    uint64_t start;        /* of a sequential workload, a byte of the LUN; 0: the range's first */
    uint64_t zones_count;
    struct mix_zone zones[MOST_ZONES]; /* those that are none are zero */
};

/* How far it is with `until`: see volume.h. Its thread writes, others read. */
struct volume {
    _Atomic uint64_t spent;    /* of the amount */
    _Atomic uint64_t ended_ns; /* when the last of its I/Os completed, or failed; 0: it has not ended */
};

/* I/Os that an instance submits at most before it is another's turn. */
enum { INSTANCE_TURN = 8 };

/* The parameters of create. */
struct parameters {
    struct fixed fixed;
    struct setting setting;
};

enum membership { OUT_OF_STEP, IN_STEP, IN_STEP_UNTIL }; /* the last: by `until` it may end before the step does */

/* In no list: the first two. The second: an instance that it is ahead of, see skew.h. */
enum waiting { NOT_WAITING, WAITING_FOR_OTHERS, WAITING_TO_SUBMIT, WAITING_FOR_QUEUE };

/* Its part in what is held in proportion: see skew.h. */
struct skewed {
    struct instance *next;       /* of its LUN, round; NULL: it has no part in this step */
    struct instance *next_group; /* of another LUN */
    double from, weight;         /* progress as it began to count, by this skew */
    uint64_t issued;             /* since then */
    bool counts;
};

struct instance {
    /* What the hot loop asks of it first. */
    struct tag *free;
    uint32_t in_flight, maxtags; /* in flight or thinking */
    struct share *share;
    uint16_t weight;  /* requests of the share's queue that its next I/O takes, at most */
    uint32_t slot;    /* its place in the thread's arrays */
    bool closed_loop; /* iops: max */
    bool eager;       /* it has something to submit without a backlog, too: in a closed loop, or a flush */
    bool resting;     /* submits nothing before rest_until_ns */
    bool nowait;
    uint8_t waiting;    /* enum waiting: for what, and in which list next_waiting links it */
    bool blocks;        /* counted as such in its share, with `wanted` */
    bool counts_turns;  /* what it submits in a turn matters: to `drop_after`, `until`, flushes or skew */
    bool counts_done;   /* what completes does: to `drop_after`, flushes or sections */
    uint8_t kind;       /* enum kind of its reads; a write's is the next */
    uint8_t turn;       /* I/Os of its next turn, at most */
    uint64_t wanted;    /* requests of its settings in force */
    uint8_t long_calls; /* how often of late its I/Os were in a long submit call */
    uint32_t series;    /* first series of its merge class in the thread's buffers */
    struct instance *next_waiting;
    struct tag_list flying;
    struct thinking thinking;
    uint64_t rest_until_ns;
    uint64_t begins_ns;      /* in this step */
    uint64_t burst_ends_ns;  /* in a closed loop in bursts: the next end; UINT64_MAX: it has none */
    uint64_t tag_since_ns;   /* since when a tag is free, or would be if its last I/O had gone and been found in time */
    uint64_t found_ns;       /* when its last completion was there to be found */
    struct ideal_tags ideal; /* with drop_after only */
    _Atomic uint64_t oldest_submit_ns; /* of the oldest in flight, 0 if none: for other threads */
    struct sequencer sequencer;
    struct mix *mix; /* where the sequencer leaves it to its parts; NULL: it never was to be */
    struct pacer pacer;
    struct volume volume;
    uint32_t sections;   /* of the LUN, equal, by which it is counted what is done; 0: it is not */
    uint64_t expires_ns; /* when it is spent by time; UINT64_MAX: never, or it is */
    uint64_t landed_ns;  /* when some of its I/Os last landed, with `until` */
    struct flushing flushing;
    struct skewed skewed;
    /* A write of `blocksize` begins so far behind `writes_from` at most: it lies in its extent. Of a mix, each of whose
     * parts has a span of its own, the first alone counts. */
    uint64_t writes_from, writes_span;

    /* What is settled at create. */
    struct parameters parameters;
    struct extents agreed; /* what may be written, its own copy */
    struct lun *lun;
    struct tag *tags;
    char *data; /* a read buffer for each tag, then a write buffer for each if the LUN is writable */
    size_t data_size;
    uint32_t stride; /* distance of buffers, bytes */
    struct ceiling ceiling;
    uint64_t write_stream; /* a number for the data of each write; its start is random */
    uint32_t number, thread;
    uint32_t write_flags; /* RWF_* that each write has */
    bool reserved;        /* its buffers may take huge pages that the administrator reserved */
    bool populated;       /* its thread has allocated its ring, tags and buffers */
    uint64_t created;     /* differs from that of any other instance that ever was in its slot; 0: none is */
    uint32_t failures;    /* one after the other */
    uint32_t orphans;     /* tags in flight from earlier steps */
    uint32_t edit;        /* number of the edit in force, 0 as created */
    uint32_t class;       /* merge class of this step */
    uint32_t order;       /* row in this step's counts */
    uint8_t in_step;      /* enum membership */
};

/* Fills `i`, whose number, thread, slot and `reserved` are set, but for its ring, tags and buffers. 0 or -errno; `*why`
 * then says what, in words. `agreed` is copied. */
int instance_create(struct instance *i, struct lun *lun, struct ceiling ceiling, const struct extents *agreed,
                    const struct parameters *parameters, const char **why);
void instance_destroy(struct instance *i);

/* By its workload thread, before its first step: the ring, tags and buffers. `progress` grows as it advances.
 * 0 or -errno. */
int instance_populate(struct instance *i, _Atomic uint64_t *progress);

/* Whether it may have these parameters. It looks only at what never changes, so that any thread may ask. */
int instance_check(const struct lun *lun, struct ceiling ceiling, const struct extents *agreed,
                   const struct parameters *p, const char **why);

/* Memory for a mix, where these parameters are one; none is given back before the end. By the commanding thread, before
 * an edit is posted. 0 or -ENOMEM. */
int instance_make_mix(struct instance *i, const struct parameters *p);

/* Whether a setting has I/Os of this operation. */
bool setting_has(const struct setting *s, enum op op);

/* The size of the largest of these, 0 where there are none. */
uint32_t setting_largest(const struct setting *s, enum op op);

/* Takes a setting that was checked: what is issued from now on follows it. What is in flight keeps its size. */
void instance_set(struct instance *i, const struct setting *setting);

/* What it does from now on is counted by so many sections of its LUN, 0: not by address. Between steps. */
void instance_set_sections(struct instance *i, uint32_t sections);

/* Back to the state in which a step begins: nothing in flight but orphans, no backlog. */
void instance_reset(struct instance *i, uint64_t step, uint64_t start_ns);

/* It submits nothing before that time, at least. */
static inline void instance_rest(struct instance *i, uint64_t until_ns)
{
    if (!i->resting || i->rest_until_ns < until_ns)
        i->rest_until_ns = until_ns;
    i->resting = true;
}

/* Makes the data of a tag's next write: incompressible, also together with all others that any instance ever wrote. */
void instance_renew(struct tag *tag);

static inline char *tag_buffer(const struct tag *tag, bool write)
{
    const struct instance *i = tag->instance;

    return i->data + (size_t)i->stride * ((size_t)(tag - i->tags) + (write ? i->ceiling.tags : 0u));
}

static inline uint64_t tag_offset(const struct tag *tag)
{
    return (uint64_t)tag->iocb.aio_offset;
}

static inline uint32_t tag_bytes(const struct tag *tag)
{
    return (uint32_t)tag->iocb.aio_nbytes;
}

/* Since when a completed I/O's tag, and its room in the queue, would be free, had the generator been in time. */
static inline uint64_t tag_free_since(const struct tag *tag, uint64_t now_ns)
{
    return now_ns - tag->late_ns;
}

/* Whether it came back as one that did what it was to do: what moves no data answers 0. */
static inline bool tag_is_done(const struct tag *tag, int64_t result)
{
    return result == tag_bytes(tag) || (result == 0 && !op_moves_data(tag->op));
}

/* How much of its write buffer was written, where that is not fresh: all at first. libaio reads that field only with a
 * flag that no I/O has (IOCB_FLAG_RESFD). */
static inline uint32_t tag_stale(const struct tag *tag)
{
    return tag->iocb.aio_resfd;
}

static inline void tag_set_stale(struct tag *tag, uint32_t bytes)
{
    tag->iocb.aio_resfd = bytes;
}

/* Whether what this tag is about to write was agreed to; `span`: of its size. */
static inline bool instance_may_write(const struct instance *i, const struct tag *tag, uint64_t span)
{
    return tag_offset(tag) - i->writes_from <= span; /* huge where it lies before */
}

/* Nothing of it is submitted, not even what the kernel gave back. */
static inline bool instance_is_paused(const struct instance *i)
{
    return i->parameters.setting.iops == 0.0;
}

static inline bool instance_has_work(const struct instance *i)
{
    return i->free && i->in_flight < i->maxtags && (i->eager || i->pacer.backlog) && !i->resting;
}

#endif
