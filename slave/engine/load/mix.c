#include "mix.h"

#include <stdlib.h>
#include <string.h>

#include "alias.h"

_Static_assert((int)MOST_PARTS <= (int)MOST_ALIASES && (int)MOST_ZONES <= (int)MOST_ALIASES, "tables hold them");

enum { MOST_DRAWS = 64 }; /* of places in which an I/O does not fit */

/* Zones, and which comes how often: of reads, and of the others. */
struct zones {
    uint32_t count;
    struct mix_zone list[MOST_ZONES];
    struct alias tables[2][MOST_ZONES];
};

#define NOWHERE UINT64_MAX /* the cursor of random I/Os before the first */

static uint64_t rounded_up(uint64_t at, uint64_t unit)
{
    uint64_t over = at % unit;

    return over ? at + (unit - over) : at;
}

/* Of a part's operation. */
static uint64_t align_of(const struct mix_ways *ways, const struct mix_part *parts, uint32_t count, uint32_t op)
{
    uint64_t least = UINT64_MAX;

    if (ways->align)
        return ways->align;
    for (uint32_t n = 0; n < count; n++)
        if (parts[n].op == op && parts[n].bytes < least)
            least = parts[n].bytes;
    return least;
}

/* Whether an I/O of this part has a place in [first, end). */
static bool has_place(uint64_t first, uint64_t end, uint64_t align, uint32_t bytes)
{
    uint64_t at = rounded_up(first, align);

    return at >= first && at < end && bytes <= end - at;
}

bool mix_range_of(struct mix_range *range, const struct mix_ways *ways, const struct mix_part *parts, uint32_t count,
                  uint64_t start, uint64_t end, uint64_t size, bool device)
{
    uint64_t aligns[MOST_PARTS], align = UINT64_MAX;

    if (start == 0 && end == 0)
        end = size;
    if (end > size || start >= end)
        return false;
    for (uint32_t n = 0; n < count; n++) {
        aligns[n] = align_of(ways, parts, count, parts[n].op);
        if (aligns[n] < align)
            align = aligns[n];
    }
    if (align == 0)
        return false;
    uint64_t first = rounded_up(start, align);
    if (device && first == 0) /* block 0 of each operation */
        first = align;
    if (first < start || first >= end) /* the first: it went round */
        return false;
    uint64_t piece = end - first;
    if (ways->streams > 1)
        piece = piece / ways->streams / align * align;
    *range = (struct mix_range){.first = first, .end = end, .piece = piece};
    for (uint32_t k = 0; k < ways->streams; k++)
        for (uint32_t n = 0; n < count; n++)
            if (!has_place(first + k * piece, first + (k + 1) * piece, aligns[n], parts[n].bytes))
                return false;
    return true;
}

static double share_of(const struct mix_zone *zone, uint32_t op)
{
    return op == OP_READ ? zone->reads : zone->others;
}

/* What of a zone lies in the range. */
static struct mix_range zone_in(const struct mix_range *range, const struct mix_zone *zone)
{
    return (struct mix_range){.first = zone->start > range->first ? zone->start : range->first,
                              .end = zone->end < range->end ? zone->end : range->end};
}

bool mix_zones_have_places(const struct mix_range *range, const struct mix_ways *ways, const struct mix_part *parts,
                           uint32_t count)
{
    for (uint32_t k = 0; k < ways->zones_count; k++) {
        struct mix_range zone = zone_in(range, &ways->zones[k]);
        for (uint32_t n = 0; n < count; n++)
            if (share_of(&ways->zones[k], parts[n].op) > 0.0 &&
                !has_place(zone.first, zone.end, align_of(ways, parts, count, parts[n].op), parts[n].bytes))
                return false;
    }
    return true;
}

struct mix *mix_take(const struct mix_ways *ways)
{
    uint32_t per_stream = ways->by_operation ? OPERATIONS : 1;
    size_t cursors = (size_t)ways->streams * per_stream;
    size_t zones_size = ways->zones_count ? sizeof(struct zones) : 0;
    struct mix *m = calloc(1, sizeof *m + cursors * sizeof *m->cursors + zones_size);

    if (!m)
        return NULL;
    if (ways->zones_count)
        m->zones = (struct zones *)(m->cursors + cursors);
    m->streams = ways->streams;
    m->per_stream = per_stream;
    m->random = ways->random;
    for (uint32_t n = 0; n < m->streams * per_stream; n++)
        m->cursors[n] = NOWHERE;
    if (ways->random && ways->sequential > 0.0)
        m->follows = ways->sequential < 1.0 ? (uint64_t)(ways->sequential * 0x1p64) : UINT64_MAX;
    return m;
}

static void fill_table(struct mix *m, const struct mix_part *parts)
{
    struct alias rows[MOST_PARTS];
    double shares[MOST_PARTS];

    for (uint32_t n = 0; n < m->count; n++)
        shares[n] = parts[n].share;
    alias_fill(rows, shares, m->count);
    for (uint32_t n = 0; n < m->count; n++) {
        m->rows[n].threshold = rows[n].threshold;
        m->rows[n].other = rows[n].other;
    }
}

static uint64_t piece_of(const struct mix *m, uint32_t stream)
{
    return m->range.first + stream * m->range.piece;
}

/* Of cursors of the range that was: what lies in none of the new one begins anew. */
static uint64_t moved(const struct mix *m, uint32_t stream, uint64_t at)
{
    uint64_t first = piece_of(m, stream);

    if (at < first || at > first + m->range.piece)
        return m->random ? NOWHERE : first;
    return at;
}

static void set_zones(struct mix *m, const struct mix_ways *ways)
{
    double shares[MOST_ZONES];

    if (!m->zones)
        return;
    m->zones->count = ways->zones_count;
    memcpy(m->zones->list, ways->zones, ways->zones_count * sizeof *ways->zones);
    for (uint32_t others = 0; others < 2; others++) {
        for (uint32_t k = 0; k < ways->zones_count; k++)
            shares[k] = others ? ways->zones[k].others : ways->zones[k].reads;
        alias_fill(m->zones->tables[others], shares, ways->zones_count);
    }
}

/* The grid is that of all parts, so that they have one hot set: of whole places in the range. */
static void set_places(struct mix *m, const struct mix_ways *ways)
{
    uint64_t count;

    m->grid = UINT64_MAX;
    for (uint32_t n = 0; n < m->count; n++)
        if (m->rows[n].align < m->grid)
            m->grid = m->rows[n].align;
    count = (m->range.end - m->range.first) / m->grid;
    if (uneven_is(&ways->uneven))
        places_set(&m->places, &ways->uneven, count ? count : 1, m->grid);
}

void mix_set(struct mix *m, const struct mix_ways *ways, const struct mix_part *parts, uint32_t count,
             const struct mix_range *range)
{
    m->range = *range;
    m->count = count;
    for (uint32_t n = 0; n < count; n++) {
        uint64_t align = align_of(ways, parts, count, parts[n].op), first = rounded_up(range->first, align);
        uint64_t most = range->end - first - parts[n].bytes;
        m->rows[n] = (struct mix_row){
            .align = align,
            .first = first,
            .places = most / align + 1,
            .last = first + most / align * align,
            .bytes = parts[n].bytes,
            .op = (uint8_t)parts[n].op,
        };
    }
    fill_table(m, parts);
    set_zones(m, ways);
    set_places(m, ways);
    for (uint32_t n = 0; n < m->streams * m->per_stream; n++)
        m->cursors[n] = moved(m, n / m->per_stream, m->cursors[n]);
}

void mix_seek(struct mix *m, uint64_t at)
{
    for (uint32_t n = 0; n < m->streams * m->per_stream; n++)
        m->cursors[n] = moved(m, n / m->per_stream, at);
}

uint64_t mix_cursor(const struct mix *m)
{
    return m->cursors[0];
}

static inline const struct mix_row *draw(const struct mix *m, uint64_t *random)
{
    u128 product = (u128)random_next(random) * m->count;
    const struct mix_row *row = &m->rows[(uint64_t)(product >> 64)];

    return (uint64_t)product < row->threshold ? row : &m->rows[row->other];
}

static uint64_t anywhere(const struct mix_row *row, uint64_t *random)
{
    return row->first + random_below(random, row->places) * row->align;
}

static uint64_t in_a_zone(const struct mix *m, const struct mix_row *row, uint64_t *random)
{
    const struct zones *z = m->zones;
    struct mix_range zone = zone_in(&m->range, &z->list[alias_draw(z->tables[row->op != OP_READ], z->count, random)]);
    uint64_t first = rounded_up(zone.first, row->align);

    if (!has_place(zone.first, zone.end, row->align, row->bytes)) /* never: it was checked */
        return anywhere(row, random);
    return first + random_below(random, (zone.end - first - row->bytes) / row->align + 1) * row->align;
}

static __attribute__((noinline)) uint64_t unevenly(const struct mix *m, const struct mix_row *row, uint64_t *random)
{
    if (m->zones)
        return in_a_zone(m, row, random);
    for (int n = 0; n < MOST_DRAWS; n++) {
        uint64_t at = m->range.first + places_next(&m->places, random) * m->grid;
        if (row->align != m->grid)
            at -= at % row->align;
        if (at >= row->first && at <= row->last)
            return at;
    }
    return anywhere(row, random);
}

static inline uint64_t next_random(struct mix *m, const struct mix_row *row, uint64_t *random, bool uneven)
{
    uint64_t *cursor = &m->cursors[m->per_stream > 1 ? row->op : 0], at = *cursor;
    bool follows = m->follows && random_next(random) <= m->follows;

    if (follows && at != NOWHERE)
        at = rounded_up(at, row->align);
    if (!follows || at < row->first || at > row->last)
        at = uneven ? unevenly(m, row, random) : anywhere(row, random);
    *cursor = at + row->bytes;
    return at;
}

static inline uint64_t next_sequential(struct mix *m, const struct mix_row *row)
{
    uint64_t first = piece_of(m, m->stream), behind = first + m->range.piece;
    uint64_t *cursor = &m->cursors[m->stream * m->per_stream + (m->per_stream > 1 ? row->op : 0)];
    uint64_t at = rounded_up(*cursor, row->align);

    if (at > behind - row->bytes)
        at = rounded_up(first, row->align);
    *cursor = at + row->bytes;
    if (++m->stream == m->streams)
        m->stream = 0;
    return at;
}

const struct mix_row *mix_next(struct mix *m, uint64_t *random, uint64_t *offset)
{
    const struct mix_row *row = draw(m, random);

    *offset = m->random ? next_random(m, row, random, false) : next_sequential(m, row);
    return row;
}

const struct mix_row *mix_draw(const struct mix *m, uint64_t *random)
{
    return draw(m, random);
}

const struct mix_row *mix_next_uneven(struct mix *m, uint64_t *random, uint64_t *offset)
{
    const struct mix_row *row = draw(m, random);

    *offset = next_random(m, row, random, true);
    return row;
}
