#define _GNU_SOURCE
#include "instance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>

#include "flush.h"
#include "io_buffers.h"
#include "stats/columns.h"
#include "think.h"
#include "volume.h"

enum { PAGE = 4096 };

/* By enum sync. */
static const uint32_t write_flags[] = {0, RWF_DSYNC, RWF_SYNC};

/* Purposes of random streams. */
enum { ADDRESSES, GAPS, PASSES };

static enum order order_of(const struct fixed *f)
{
    if (f->iosequencer == SEQUENTIAL)
        return SEQUENTIAL_ORDER;
    return f->random_map ? PERMUTED : UNIFORM;
}

static int refuse(const char **why, int error, const char *words)
{
    *why = words;
    return -error;
}

/* Where a setting has it read and write, (0, 0) being all of the LUN. */
static struct extent range_of(const struct lun *lun, const struct setting *s)
{
    bool all = s->range_start == 0 && s->range_end == 0;

    return (struct extent){.start = s->range_start, .end = all ? lun->size : s->range_end};
}

/* Whether what it would write was agreed to, all of it. */
static int check_writes(const struct lun *lun, const struct extents *agreed, const struct setting *s, const char **why)
{
    if (!lun->writable)
        return refuse(why, EROFS, "fraction_read below 1 writes, but the LUN was opened read-only, without consent");
    if (!extents_are_ordered(agreed))
        return refuse(why, EINVAL, "the extents that were agreed to are not ascending and apart");
    if (extents_around(agreed, range_of(lun, s)).end == 0)
        return refuse(why, EPERM, "fraction_read below 1 writes, and the range does not lie within what was agreed to");
    return 0;
}

/* Whether it can end so. */
static int check_until(const struct fixed *f, double fraction_read, const char **why)
{
    if (f->until.what > ENDS_WRITTEN || (f->until.what == ENDS_NEVER) != (f->until.amount == 0))
        return refuse(why, EINVAL, "until has no amount, or counts nothing");
    if (f->until.what != ENDS_NEVER && f->drop_after_ns)
        return refuse(why, EINVAL, "drop_after and until exclude each other: a discarded I/O counts for no end");
    if (f->end_fsync && f->until.what == ENDS_NEVER)
        return refuse(why, EINVAL, "end_fsync is for a workload that ends by `until`");
    if (f->until.what == ENDS_READ && fraction_read <= 0.0)
        return refuse(why, EINVAL, "until counts what is read, and with fraction_read 0 nothing is");
    if (f->until.what == ENDS_WRITTEN && fraction_read >= 1.0)
        return refuse(why, EINVAL, "until counts what is written, and with fraction_read 1 nothing is");
    return 0;
}

int instance_check(const struct lun *lun, struct ceiling ceiling, const struct extents *agreed,
                   const struct parameters *p, const char **why)
{
    const struct setting *s = &p->setting;
    struct sequencer unused;
    int result = 0;

    if (s->blocksize == 0 || s->blocksize % lun->block != 0)
        return refuse(why, EINVAL, "blocksize is not a multiple of the LUN's logical block size");
    if (s->blocksize > ceiling.blocksize)
        return refuse(why, EINVAL, "blocksize is above the ceiling that buffers are made for");
    if (s->maxtags == 0 || s->maxtags > ceiling.tags)
        return refuse(why, EINVAL, "maxtags is not in 1 to the ceiling that buffers are made for");
    if (!(s->fraction_read >= 0.0 && s->fraction_read <= 1.0)) /* nor is NaN */
        return refuse(why, EINVAL, "fraction_read is not in 0 to 1");
    if (p->fixed.sync > SYNC_ALL)
        return refuse(why, EINVAL, "sync is not none, dsync or sync");
    if (s->fraction_read < 1.0)
        result = check_writes(lun, agreed, s, why);
    if (result == 0)
        result = check_until(&p->fixed, s->fraction_read, why);
    if (result != 0)
        return result;
    if (!sequencer_init(&unused, order_of(&p->fixed), s->blocksize, s->range_start, s->range_end, lun->size,
                        lun->device))
        return refuse(why, EINVAL,
                      "the range does not lie in the LUN, or holds no whole block (block 0 of a device is never used)");
    return 0;
}

static int make_tags(struct instance *i)
{
    i->tags = aligned_alloc(64, i->ceiling.tags * sizeof *i->tags);
    if (!i->tags)
        return -ENOMEM;
    memset(i->tags, 0, i->ceiling.tags * sizeof *i->tags);
    for (uint32_t n = 0; n < i->ceiling.tags; n++) {
        struct tag *tag = &i->tags[n];
        tag->instance = i;
        tag->iocb.aio_data = (uint64_t)(uintptr_t)tag;
        tag->iocb.aio_fildes = (uint32_t)i->lun->fd;
    }
    return 0;
}

/* Touched now, so that no I/O waits for a page; with ones, so that a buffer that nothing was read to is not zeros. */
static void touch(char *data, size_t size, _Atomic uint64_t *progress)
{
    for (size_t at = 0; at < size; at += PAGE) {
        ((volatile char *)data)[at] = 1;
        if (at % HUGE_PAGE == 0)
            atomic_fetch_add_explicit(progress, 1, memory_order_relaxed);
    }
}

static uint32_t stride_of(struct ceiling ceiling)
{
    return (ceiling.blocksize + PAGE - 1) / PAGE * PAGE;
}

static int make_data(struct instance *i, _Atomic uint64_t *progress)
{
    size_t half;

    i->stride = stride_of(i->ceiling);
    half = (size_t)i->stride * i->ceiling.tags;
    i->data_size = i->lun->writable ? 2 * half : half;
    i->data = io_buffers_take(&i->data_size, i->reserved);
    if (!i->data)
        return -ENOMEM;
    size_t from = i->parameters.setting.fraction_read > 0.0 ? 0 : half;
    touch(i->data + from, i->data_size - from, progress);
    if (getrandom(&i->write_stream, sizeof i->write_stream, 0) != (ssize_t)sizeof i->write_stream)
        return -EIO;
    return 0;
}

/* Where its writes may begin, of the size that its sequencer makes them; no write begins at UINT64_MAX. */
static void bound_writes(struct instance *i, const struct extents *agreed, const struct setting *s)
{
    struct extent extent = extents_around(agreed, range_of(i->lun, s));
    bool any = extent.end - extent.start >= i->sequencer.blocksize;

    i->writes_from = any ? extent.start : UINT64_MAX;
    i->writes_span = any ? extent.end - extent.start - i->sequencer.blocksize : 0;
}

static uint16_t requests_per_io(const struct lun *lun, struct ceiling ceiling, uint32_t blocksize)
{
    return queue_requests_per_io(&lun->queue, blocksize, (size_t)stride_of(ceiling) * ceiling.tags >= HUGE_PAGE);
}

int instance_create(struct instance *i, struct lun *lun, struct ceiling ceiling, const struct extents *agreed,
                    const struct parameters *parameters, const char **why)
{
    const struct parameters *p = parameters;
    const struct setting *s = &p->setting;
    int result = instance_check(lun, ceiling, agreed, p, why);

    if (result != 0)
        return result;
    *i = (struct instance){.number = i->number,
                           .thread = i->thread,
                           .slot = i->slot,
                           .reserved = i->reserved,
                           .lun = lun,
                           .ceiling = ceiling,
                           .parameters = *p,
                           .kind = p->fixed.iosequencer == SEQUENTIAL ? KIND_SEQUENTIAL_READ : KIND_RANDOM_READ,
                           .maxtags = s->maxtags,
                           .write_flags = write_flags[p->fixed.sync],
                           .counts_turns = p->fixed.drop_after_ns || p->fixed.until.what > ENDS_TIME ||
                                           flush_is_wanted(&p->fixed),
                           .counts_done = p->fixed.drop_after_ns || flush_is_wanted(&p->fixed),
                           .weight = requests_per_io(lun, ceiling, s->blocksize)};
    lun->users++;
    sequencer_init(&i->sequencer, order_of(&p->fixed), s->blocksize, s->range_start, s->range_end, lun->size,
                   lun->device);
    bound_writes(i, agreed, s);
    if (!extents_copy(&i->agreed, agreed)) {
        instance_destroy(i);
        return refuse(why, ENOMEM, "no memory for what may be written");
    }
    return 0;
}

static void free_memory(struct instance *i)
{
    io_buffers_free(i->data, i->data_size);
    free(i->tags);
    i->data = NULL;
    i->tags = NULL;
}

int instance_populate(struct instance *i, _Atomic uint64_t *progress)
{
    pacer_init(&i->pacer, i->parameters.fixed.iosequencer == RANDOM_INDEPENDENT, i->parameters.fixed.drop_after_ns);
    int result = make_tags(i);

    if (result == 0)
        result = make_data(i, progress);
    if (result != 0)
        free_memory(i);
    i->populated = result == 0;
    atomic_fetch_add_explicit(progress, 1, memory_order_relaxed);
    return result;
}

void instance_destroy(struct instance *i)
{
    free_memory(i);
    i->lun->users--;
    free(i->agreed.list);
    *i = (struct instance){.slot = i->slot};
}

static void free_tags(struct instance *i)
{
    i->free = NULL;
    for (uint32_t n = i->ceiling.tags; n-- > 0;) {
        if (i->tags[n].filed_as == FILED_AS_ORPHAN)
            continue;
        i->tags[n].filed_as = FILED_AS_IO;
        i->tags[n].next = i->free;
        i->free = &i->tags[n];
    }
}

/* What was made for smaller writes is not fresh behind them. */
static void forget_data(struct instance *i)
{
    for (uint32_t n = 0; n < i->ceiling.tags && i->populated; n++)
        i->tags[n].fresh = false;
}

/* The next I/O follows the last one where it still can. What must be split never goes without waiting. */
static void resize(struct instance *i, const struct setting *s)
{
    sequencer_move(&i->sequencer, s->blocksize, s->range_start, s->range_end, i->lun->size, i->lun->device);
    i->weight = requests_per_io(i->lun, i->ceiling, s->blocksize);
    i->nowait = i->lun->nowait && i->weight == 1;
    if (s->blocksize > i->parameters.setting.blocksize)
        forget_data(i);
}

void instance_set(struct instance *i, const struct setting *s)
{
    const struct setting *old = &i->parameters.setting;

    if (s->blocksize != old->blocksize || s->range_start != old->range_start || s->range_end != old->range_end)
        resize(i, s);
    bound_writes(i, &i->agreed, s);
    sequencer_set_fraction_read(&i->sequencer, s->fraction_read);
    i->parameters.setting = *s;
    volume_settle(i);
}

void instance_reset(struct instance *i, uint64_t step, uint64_t start_ns)
{
    const struct setting *setting = &i->parameters.setting;
    uint64_t seed = i->parameters.fixed.seed;

    free_tags(i);
    i->in_flight = 0;
    i->flying = (struct tag_list){0};
    i->waiting = NOT_WAITING;
    i->tag_since_ns = i->found_ns = start_ns;
    ideal_tags_start(&i->ideal, setting->maxtags);
    atomic_store_explicit(&i->oldest_submit_ns, 0, memory_order_relaxed);
    i->maxtags = setting->maxtags;
    i->closed_loop = setting->iops < 0.0;
    i->resting = true; /* until the start */
    i->rest_until_ns = start_ns;
    i->failures = 0;
    volume_start(i, start_ns);
    i->nowait = i->lun->nowait && i->weight == 1; /* what must be split never goes without waiting */
    i->sequencer.random = random_stream(seed, i->number, step, ADDRESSES);
    sequencer_start_passes(&i->sequencer, random_stream(seed, i->number, step, PASSES));
    sequencer_set_fraction_read(&i->sequencer, setting->fraction_read);
    pacer_start(&i->pacer, random_stream(seed, i->number, step, GAPS), setting->iops, start_ns);
    flush_start(i);
    i->thinking = (struct thinking){0};
    if (i->closed_loop)
        think_begin(i, start_ns);
}

void instance_renew(struct tag *tag)
{
    struct instance *i = tag->instance;

    random_fill(tag_buffer(tag, true), i->parameters.setting.blocksize, random_next(&i->write_stream));
    tag->fresh = true;
}
