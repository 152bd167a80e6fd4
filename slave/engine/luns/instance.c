#define _GNU_SOURCE
#include "instance.h"

#include <errno.h>
#include <math.h>
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

#define SHARES_WITHIN 1e-6 /* of their sum */
#define MOST_ZIPF 16.0
#define MOST_PARETO 0.99
#define MOST_NORMAL 10.0
#define MOST_SKEW 1e6

/* By enum sync. */
static const uint32_t write_flags[] = {0, RWF_DSYNC, RWF_SYNC};

/* Purposes of random streams. */
enum { ADDRESSES, GAPS, PASSES, SCATTER };

static struct uneven uneven_of(const struct fixed *f)
{
    return (struct uneven){.zipf = f->zipf,
                           .pareto = f->pareto,
                           .normal = f->normal,
                           .working_set = f->working_set,
                           .key = random_stream(f->scatter_seed, 0, 0, SCATTER),
                           .scattered = f->scattered};
}

static enum order order_of(const struct fixed *f)
{
    struct uneven uneven = uneven_of(f);

    if (f->iosequencer == SEQUENTIAL)
        return SEQUENTIAL_ORDER;
    if (f->zones_count || uneven_is(&uneven))
        return UNEVEN;
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

/* As a mix; of a fraction_read, what of it there is. */
static uint32_t parts_of(const struct setting *s, struct mix_part *parts)
{
    uint32_t count = s->parts_count;

    memcpy(parts, s->parts, count * sizeof *parts);
    if (count)
        return count;
    if (s->fraction_read > 0.0)
        parts[count++] = (struct mix_part){.share = s->fraction_read, .bytes = s->blocksize, .op = OP_READ};
    if (s->fraction_read < 1.0)
        parts[count++] = (struct mix_part){.share = 1.0 - s->fraction_read, .bytes = s->blocksize, .op = OP_WRITE};
    return count;
}

uint32_t setting_largest(const struct setting *s, enum op op)
{
    struct mix_part parts[MOST_PARTS];
    uint32_t largest = 0;

    for (uint32_t n = 0, count = parts_of(s, parts); n < count; n++)
        if (parts[n].op == op && parts[n].bytes > largest)
            largest = parts[n].bytes;
    return largest;
}

bool setting_has(const struct setting *s, enum op op)
{
    return setting_largest(s, op) > 0;
}

static bool setting_changes(const struct setting *s)
{
    return setting_has(s, OP_WRITE) || setting_has(s, OP_TRIM) || setting_has(s, OP_WRITE_ZEROES);
}

static struct mix_ways ways_of(const struct fixed *f)
{
    return (struct mix_ways){.align = f->align,
                             .sequential = f->sequential,
                             .streams = f->streams > 1 ? (uint32_t)f->streams : 1,
                             .random = f->iosequencer != SEQUENTIAL,
                             .by_operation = f->cursors == CURSOR_BY_OPERATION,
                             .uneven = uneven_of(f),
                             .zones = f->zones,
                             .zones_count = (uint32_t)f->zones_count};
}

/* Whether the sequencer alone says what its I/Os are: all of one size, at multiples of that, with one cursor. */
static bool is_plain(const struct fixed *f, const struct setting *s)
{
    bool own_cursors = f->iosequencer == SEQUENTIAL && f->cursors == CURSOR_BY_OPERATION;

    return s->parts_count == 0 && (f->align == 0 || f->align == s->blocksize) && f->sequential <= 0.0 &&
           f->streams <= 1 && !own_cursors && order_of(f) != UNEVEN;
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
static int check_until(const struct fixed *f, const struct setting *s, const char **why)
{
    bool reads = setting_has(s, OP_READ), writes = setting_has(s, OP_WRITE);

    if (f->until.what > ENDS_WRITTEN || (f->until.what == ENDS_NEVER) != (f->until.amount == 0))
        return refuse(why, EINVAL, "until has no amount, or counts nothing");
    if (f->until.what != ENDS_NEVER && f->drop_after_ns)
        return refuse(why, EINVAL, "drop_after and until exclude each other: a discarded I/O counts for no end");
    if (f->end_fsync && f->until.what == ENDS_NEVER)
        return refuse(why, EINVAL, "end_fsync is for a workload that ends by `until`");
    if (f->until.what == ENDS_READ && !reads)
        return refuse(why, EINVAL, "until counts what is read, and nothing is (fraction_read, operations)");
    if (f->until.what == ENDS_WRITTEN && !writes)
        return refuse(why, EINVAL, "until counts what is written, and nothing is (fraction_read, operations)");
    if (f->until.what == ENDS_BYTES && !reads && !writes)
        return refuse(why, EINVAL, "until counts bytes, and trims and zeroes move none");
    return 0;
}

static int check_part(const struct lun *lun, struct ceiling ceiling, const struct mix_part *part, const char **why)
{
    if (part->op >= OPERATIONS || !(part->share > 0.0 && part->share <= 1.0)) /* nor is NaN */
        return refuse(why, EINVAL, "operations has an unknown one, or a share that is not above 0 and at most 1");
    if (part->bytes == 0 || part->bytes % lun->block != 0)
        return refuse(why, EINVAL, "a size in operations is not a multiple of the LUN's logical block size");
    if (op_moves_data(part->op) && part->bytes > ceiling.blocksize)
        return refuse(why, EINVAL, "a size in operations is above the ceiling that buffers are made for");
    return 0;
}

static int check_parts(const struct lun *lun, struct ceiling ceiling, const struct setting *s, const char **why)
{
    double sum = 0.0;
    int result = 0;

    if (s->parts_count > MOST_PARTS)
        return refuse(why, EINVAL, "operations has more than 64 parts");
    for (uint32_t n = 0; n < s->parts_count && result == 0; n++) {
        result = check_part(lun, ceiling, &s->parts[n], why);
        sum += s->parts[n].share;
    }
    if (result == 0 && !(sum > 1.0 - SHARES_WITHIN && sum < 1.0 + SHARES_WITHIN))
        return refuse(why, EINVAL, "the shares of operations do not add up to 1");
    return result;
}

static int check_sizes(const struct lun *lun, struct ceiling ceiling, const struct setting *s, const char **why)
{
    if (s->parts_count)
        return check_parts(lun, ceiling, s, why);
    if (s->blocksize == 0 || s->blocksize % lun->block != 0)
        return refuse(why, EINVAL, "blocksize is not a multiple of the LUN's logical block size");
    if (s->blocksize > ceiling.blocksize)
        return refuse(why, EINVAL, "blocksize is above the ceiling that buffers are made for");
    return 0;
}

/* How its I/Os follow each other. */
static int check_ways(const struct lun *lun, const struct fixed *f, const char **why)
{
    bool sequential = f->iosequencer == SEQUENTIAL;

    if (f->align % lun->block != 0)
        return refuse(why, EINVAL, "align is not a multiple of the LUN's logical block size");
    if (!(f->sequential >= 0.0 && f->sequential <= 1.0))
        return refuse(why, EINVAL, "sequential is not in 0 to 1");
    if (f->streams > MOST_STREAMS || f->cursors > CURSOR_BY_OPERATION)
        return refuse(why, EINVAL, "there are more than 256 streams, or cursors is neither shared nor by_operation");
    if (f->sequential > 0.0 && (sequential || f->random_map))
        return refuse(why, EINVAL, "sequential is for a random workload without random_map");
    if (f->streams > 1 && !sequential)
        return refuse(why, EINVAL, "streams is for a sequential workload");
    return 0;
}

static bool is_within(double value, double most)
{
    return value >= 0.0 && value <= most; /* NaN is not */
}

/* How often a place of a random workload comes. */
static int check_places(const struct fixed *f, const char **why)
{
    int ways = (f->zipf > 0.0) + (f->pareto > 0.0) + (f->normal > 0.0) + (f->zones_count > 0);

    if (!is_within(f->zipf, MOST_ZIPF) || !is_within(f->pareto, MOST_PARETO) || !is_within(f->normal, MOST_NORMAL))
        return refuse(why, EINVAL, "zipf is not in 0 to 16, pareto not in 0 to 0.99, or normal not in 0 to 10");
    if (ways > 1)
        return refuse(why, EINVAL, "zipf, pareto, normal and hot_zones exclude each other");
    if (f->working_set && (f->normal > 0.0 || f->zones_count))
        return refuse(why, EINVAL, "working_set does not go with normal and hot_zones");
    if ((ways || f->working_set) && (f->iosequencer == SEQUENTIAL || f->random_map))
        return refuse(why, EINVAL,
                      "zipf, pareto, normal, hot_zones and working_set are for a random workload without random_map");
    if (f->start && f->iosequencer != SEQUENTIAL)
        return refuse(why, EINVAL, "start is for a sequential workload");
    if (f->start && f->streams > 1)
        return refuse(why, EINVAL, "start does not go with several streams");
    return 0;
}

static int check_zones(const struct fixed *f, struct extent range, const char **why)
{
    double reads = 0.0, others = 0.0;
    uint64_t behind = range.start;

    if (f->zones_count > MOST_ZONES)
        return refuse(why, EINVAL, "there are more than 64 hot_zones");
    for (uint32_t n = 0; n < f->zones_count; n++) {
        const struct mix_zone *zone = &f->zones[n];
        if (zone->start >= zone->end || zone->start < behind || zone->end > range.end)
            return refuse(why, EINVAL, "hot_zones are not ascending and apart, or one does not lie in the range");
        if (!is_within(zone->reads, 1.0 + SHARES_WITHIN) || !is_within(zone->others, 1.0 + SHARES_WITHIN))
            return refuse(why, EINVAL, "a share of hot_zones is not in 0 to 1");
        behind = zone->end;
        reads += zone->reads;
        others += zone->others;
    }
    if (f->zones_count && (fabs(reads - 1.0) > SHARES_WITHIN || fabs(others - 1.0) > SHARES_WITHIN))
        return refuse(why, EINVAL, "the shares of hot_zones do not add up to 1");
    return 0;
}

/* Of one that is to be created: an edit may leave where it began. */
static int check_start(const struct lun *lun, const struct parameters *p, const char **why)
{
    struct extent range = range_of(lun, &p->setting);

    if (p->fixed.start && (p->fixed.start < range.start || p->fixed.start >= range.end))
        return refuse(why, EINVAL, "start does not lie in the range");
    return 0;
}

static int check_plain_range(const struct lun *lun, const struct parameters *p, const char **why)
{
    const struct setting *s = &p->setting;
    struct sequencer unused;

    if (sequencer_init(&unused, order_of(&p->fixed), s->blocksize, s->range_start, s->range_end, lun->size,
                       lun->device))
        return 0;
    return refuse(why, EINVAL,
                  "the range does not lie in the LUN, or holds no whole block (block 0 of a device is never used)");
}

/* All that is permuted is of one size, at multiples of that. */
static bool can_permute(const struct fixed *f, const struct mix_part *parts, uint32_t count)
{
    for (uint32_t n = 0; n < count; n++)
        if (parts[n].bytes != parts[0].bytes)
            return false;
    return f->align == 0 || f->align == parts[0].bytes;
}

static int check_mix_range(const struct lun *lun, const struct parameters *p, const char **why)
{
    const struct setting *s = &p->setting;
    struct mix_ways ways = ways_of(&p->fixed);
    struct mix_part parts[MOST_PARTS];
    struct mix_range range;
    uint32_t count = parts_of(s, parts);

    if (order_of(&p->fixed) == PERMUTED && !can_permute(&p->fixed, parts, count))
        return refuse(why, EINVAL, "random_map is for I/Os of one size, at multiples of that");
    if (mix_range_of(&range, &ways, parts, count, s->range_start, s->range_end, lun->size, lun->device)) {
        if (mix_zones_have_places(&range, &ways, parts, count))
            return 0;
        return refuse(why, EINVAL, "a hot zone has no place for the largest I/O");
    }
    if (ways.streams > 1)
        return refuse(why, EINVAL,
                      "the range does not lie in the LUN, or a stream's part of it has no place for the largest I/O");
    return refuse(
        why, EINVAL,
        "the range does not lie in the LUN, or has no place for the largest I/O at a multiple of align (block "
        "0 of a device is never used)");
}

int instance_check(const struct lun *lun, struct ceiling ceiling, const struct extents *agreed,
                   const struct parameters *p, const char **why)
{
    const struct setting *s = &p->setting;
    int result;

    if (!(s->fraction_read >= 0.0 && s->fraction_read <= 1.0)) /* nor is NaN */
        return refuse(why, EINVAL, "fraction_read is not in 0 to 1");
    result = check_sizes(lun, ceiling, s, why);
    if (result != 0)
        return result;
    if (s->maxtags == 0 || s->maxtags > ceiling.tags)
        return refuse(why, EINVAL, "maxtags is not in 1 to the ceiling that buffers are made for");
    if (p->fixed.sync > SYNC_ALL)
        return refuse(why, EINVAL, "sync is not none, dsync or sync");
    if (setting_changes(s))
        result = check_writes(lun, agreed, s, why);
    if (result == 0)
        result = check_until(&p->fixed, s, why);
    if (result == 0)
        result = check_ways(lun, &p->fixed, why);
    if (result == 0)
        result = check_places(&p->fixed, why);
    if (result == 0)
        result = check_zones(&p->fixed, range_of(lun, s), why);
    if (result == 0 && !is_within(s->skew, MOST_SKEW))
        result = refuse(why, EINVAL, "skew is not in 0 to 1000000");
    if (result != 0)
        return result;
    return (is_plain(&p->fixed, s) ? check_plain_range : check_mix_range)(lun, p, why);
}

/* No write buffer is fresh: the next write of each tag makes all of it anew. */
static void forget_data(struct instance *i)
{
    uint32_t all = setting_largest(&i->parameters.setting, OP_WRITE);

    for (uint32_t n = 0; n < i->ceiling.tags; n++) {
        i->tags[n].fresh = false;
        tag_set_stale(&i->tags[n], all);
    }
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
    forget_data(i);
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
    uint32_t blocksize = ceiling.blocksize > 1 ? ceiling.blocksize : 1; /* none, where nothing but trims is wanted */

    return (blocksize + PAGE - 1) / PAGE * PAGE;
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
    size_t from = setting_has(&i->parameters.setting, OP_READ) ? 0 : half;
    touch(i->data + from, i->data_size - from, progress);
    if (getrandom(&i->write_stream, sizeof i->write_stream, 0) != (ssize_t)sizeof i->write_stream)
        return -EIO;
    return 0;
}

static uint32_t largest_of(const struct instance *i, const struct setting *s)
{
    uint32_t largest = i->sequencer.direction == BY_PARTS ? 0 : s->blocksize;

    for (uint32_t n = 0; i->sequencer.direction == BY_PARTS && n < i->mix->count; n++)
        if (i->mix->rows[n].bytes > largest)
            largest = i->mix->rows[n].bytes;
    return largest;
}

/* Where its writes may begin, of the size that its sequencer makes them, or the parts of its mix have; no write begins
 * at UINT64_MAX. */
static void bound_writes(struct instance *i, const struct extents *agreed, const struct setting *s)
{
    struct extent extent = extents_around(agreed, range_of(i->lun, s));
    uint64_t length = extent.end - extent.start;
    bool any = length >= largest_of(i, s);

    i->writes_from = any ? extent.start : UINT64_MAX;
    i->writes_span = any ? length - s->blocksize : 0;
    if (i->sequencer.direction != BY_PARTS)
        return;
    i->writes_span = 0;
    for (uint32_t n = 0; n < i->mix->count; n++)
        i->mix->rows[n].writes_span = any ? length - i->mix->rows[n].bytes : 0;
}

static uint16_t requests_per_io(const struct lun *lun, struct ceiling ceiling, uint32_t blocksize)
{
    return queue_requests_per_io(&lun->queue, blocksize, (size_t)stride_of(ceiling) * ceiling.tags >= HUGE_PAGE);
}

/* In the way that the kernel has of it, a trim is one request. */
static uint16_t weight_of(const struct instance *i, const struct mix_row *row)
{
    return op_moves_data(row->op) ? requests_per_io(i->lun, i->ceiling, row->bytes) : 1;
}

static uint8_t kind_of(const struct instance *i, enum op op)
{
    return op == OP_TRIM ? KIND_TRIM : op == OP_WRITE_ZEROES ? KIND_WRITE_ZEROES : (uint8_t)(i->kind + op);
}

/* What of its mix is the instance's own. */
static void weigh_parts(struct instance *i)
{
    i->weight = 1;
    for (uint32_t n = 0; n < i->mix->count; n++) {
        struct mix_row *row = &i->mix->rows[n];
        row->weight = weight_of(i, row);
        row->kind = kind_of(i, row->op);
        if (row->weight > i->weight)
            i->weight = row->weight;
    }
}

/* Where each block comes once before any again, the sequencer says where the I/Os of a mix go, too: all of one size. */
static void permute(struct instance *i, const struct setting *s, uint32_t bytes, const struct mix_range *range)
{
    const struct mix_range *before = &i->mix->range;

    if (i->sequencer.order != PERMUTED)
        return;
    if (i->sequencer.blocksize != bytes || before->first != range->first || before->end != range->end)
        sequencer_seek(&i->sequencer, 0, bytes, s->range_start, s->range_end, i->lun->size, i->lun->device);
}

/* From now on its I/Os are of these parts, and follow those before. */
static void set_parts(struct instance *i, const struct setting *s)
{
    struct mix_ways ways = ways_of(&i->parameters.fixed);
    struct mix_part parts[MOST_PARTS];
    struct mix_range range;
    uint32_t count = parts_of(s, parts);
    bool was_plain = i->sequencer.direction != BY_PARTS;

    if (!mix_range_of(&range, &ways, parts, count, s->range_start, s->range_end, i->lun->size, i->lun->device))
        return;
    permute(i, s, parts[0].bytes, &range);
    mix_set(i->mix, &ways, parts, count, &range);
    if (was_plain && !i->mix->random)
        mix_seek(i->mix, sequencer_place(&i->sequencer));
    i->sequencer.direction = BY_PARTS;
    weigh_parts(i);
}

/* From now on its I/Os are those of its sequencer, likewise. */
static void set_plain(struct instance *i, const struct setting *s)
{
    uint64_t at = i->sequencer.direction == BY_PARTS ? mix_cursor(i->mix) : sequencer_place(&i->sequencer);

    sequencer_seek(&i->sequencer, at, s->blocksize, s->range_start, s->range_end, i->lun->size, i->lun->device);
    sequencer_set_fraction_read(&i->sequencer, s->fraction_read);
    i->weight = requests_per_io(i->lun, i->ceiling, s->blocksize);
}

/* Where a sequential one begins, as created. */
static void begin_at(struct instance *i, uint64_t at)
{
    const struct setting *s = &i->parameters.setting;

    if (at == 0)
        return;
    if (i->sequencer.direction == BY_PARTS)
        mix_seek(i->mix, at);
    else
        sequencer_seek(&i->sequencer, at, s->blocksize, s->range_start, s->range_end, i->lun->size, i->lun->device);
}

int instance_make_mix(struct instance *i, const struct parameters *p)
{
    struct mix_ways ways = ways_of(&p->fixed);

    if (i->mix || is_plain(&p->fixed, &p->setting))
        return 0;
    i->mix = mix_take(&ways);
    return i->mix ? 0 : -ENOMEM;
}

static bool counts_turns(const struct parameters *p)
{
    return p->fixed.drop_after_ns || p->fixed.until.what > ENDS_TIME || flush_is_wanted(&p->fixed) ||
           p->setting.skew > 0.0;
}

static bool counts_done(const struct parameters *p)
{
    return p->fixed.drop_after_ns || flush_is_wanted(&p->fixed);
}

void instance_set_sections(struct instance *i, uint32_t sections)
{
    i->sections = sections;
    i->counts_done = counts_done(&i->parameters) || sections;
}

int instance_create(struct instance *i, struct lun *lun, struct ceiling ceiling, const struct extents *agreed,
                    const struct parameters *parameters, const char **why)
{
    const struct parameters *p = parameters;
    const struct setting *s = &p->setting;
    int result = instance_check(lun, ceiling, agreed, p, why);

    if (result == 0)
        result = check_start(lun, p, why);
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
                           .counts_turns = counts_turns(p),
                           .counts_done = counts_done(p),
                           .sequencer.order = order_of(&p->fixed)};
    lun->users++;
    if (!extents_copy(&i->agreed, agreed) || instance_make_mix(i, p) != 0) {
        instance_destroy(i);
        return refuse(why, ENOMEM, "no memory for what may be written, or for a mix of I/Os");
    }
    (is_plain(&p->fixed, s) ? set_plain : set_parts)(i, s);
    begin_at(i, p->fixed.start);
    bound_writes(i, agreed, s);
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
    const struct fixed *f = &i->parameters.fixed;

    pacer_init(&i->pacer, f->iosequencer == RANDOM_INDEPENDENT, f->drop_after_ns, f->on_ns, f->off_ns);
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
    free(i->mix);
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

/* Whether its I/Os have other sizes or another range. */
static bool differs(const struct setting *old, const struct setting *s)
{
    return s->blocksize != old->blocksize || s->range_start != old->range_start || s->range_end != old->range_end ||
           s->parts_count != old->parts_count || memcmp(s->parts, old->parts, sizeof s->parts) != 0;
}

/* What was made for smaller writes is not fresh behind them. */
static bool may_be_stale(const struct setting *old, const struct setting *s)
{
    return differs(old, s) || setting_has(s, OP_WRITE) != setting_has(old, OP_WRITE);
}

/* The next I/O follows the last one where it still can. What must be split never goes without waiting. */
void instance_set(struct instance *i, const struct setting *s)
{
    const struct setting old = i->parameters.setting;
    bool plain = is_plain(&i->parameters.fixed, s), other = differs(&old, s);

    i->parameters.setting = *s;
    i->counts_turns = counts_turns(&i->parameters);
    if (!plain)
        set_parts(i, s);
    else if (other)
        set_plain(i, s);
    else
        sequencer_set_fraction_read(&i->sequencer, s->fraction_read);
    if (other)
        i->nowait = i->lun->nowait && i->weight == 1;
    if (i->populated && may_be_stale(&old, s))
        forget_data(i);
    bound_writes(i, &i->agreed, s);
    volume_settle(i);
}

void instance_reset(struct instance *i, uint64_t step, uint64_t start_ns)
{
    const struct setting *setting = &i->parameters.setting;
    uint64_t seed = i->parameters.fixed.seed, begins_ns = start_ns + i->parameters.fixed.start_ns;

    i->begins_ns = begins_ns;
    free_tags(i);
    i->in_flight = 0;
    i->flying = (struct tag_list){0};
    i->waiting = NOT_WAITING;
    i->tag_since_ns = i->found_ns = begins_ns;
    ideal_tags_start(&i->ideal, setting->maxtags);
    atomic_store_explicit(&i->oldest_submit_ns, 0, memory_order_relaxed);
    i->maxtags = setting->maxtags;
    i->closed_loop = setting->iops < 0.0;
    i->resting = true; /* until the start */
    i->rest_until_ns = begins_ns;
    i->failures = 0;
    i->burst_ends_ns = i->pacer.bursts.on_ns ? begins_ns + i->pacer.bursts.on_ns : UINT64_MAX;
    volume_start(i, begins_ns);
    i->nowait = i->lun->nowait && i->weight == 1; /* what must be split never goes without waiting */
    i->sequencer.random = random_stream(seed, i->number, step, ADDRESSES);
    sequencer_start_passes(&i->sequencer, random_stream(seed, i->number, step, PASSES));
    if (i->sequencer.direction != BY_PARTS)
        sequencer_set_fraction_read(&i->sequencer, setting->fraction_read);
    pacer_start(&i->pacer, random_stream(seed, i->number, step, GAPS), setting->iops, begins_ns);
    flush_start(i);
    i->thinking = (struct thinking){0};
    i->skewed = (struct skewed){0};
    if (i->closed_loop)
        think_begin(i, begins_ns);
}

void instance_renew(struct tag *tag)
{
    struct instance *i = tag->instance;

    random_fill(tag_buffer(tag, true), tag_stale(tag), random_next(&i->write_stream));
    tag->fresh = true;
}
