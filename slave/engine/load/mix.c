#include "mix.h"

#include <stdlib.h>

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

struct mix *mix_take(const struct mix_ways *ways)
{
    uint32_t per_stream = ways->by_operation ? OPERATIONS : 1;
    struct mix *m = calloc(1, sizeof *m + (size_t)ways->streams * per_stream * sizeof *m->cursors);

    if (!m)
        return NULL;
    m->streams = ways->streams;
    m->per_stream = per_stream;
    m->random = ways->random;
    for (uint32_t n = 0; n < m->streams * per_stream; n++)
        m->cursors[n] = NOWHERE;
    if (ways->random && ways->sequential > 0.0)
        m->follows = ways->sequential < 1.0 ? (uint64_t)(ways->sequential * 0x1p64) : UINT64_MAX;
    return m;
}

static uint64_t as_threshold(double probability)
{
    return probability < 1.0 ? (uint64_t)(probability * 0x1p64) : UINT64_MAX;
}

/* Vose's method: a row whose part has less than a row's room gets the rest of it from one that has more. */
static void fill_table(struct mix *m, const struct mix_part *parts)
{
    double room[MOST_PARTS], sum = 0.0;
    uint8_t less[MOST_PARTS], more[MOST_PARTS];
    uint32_t less_count = 0, more_count = 0;

    for (uint32_t n = 0; n < m->count; n++)
        sum += parts[n].share;
    for (uint32_t n = 0; n < m->count; n++) {
        room[n] = parts[n].share * m->count / sum;
        m->rows[n].threshold = UINT64_MAX;
        m->rows[n].other = (uint8_t)n;
        if (room[n] < 1.0)
            less[less_count++] = (uint8_t)n;
        else
            more[more_count++] = (uint8_t)n;
    }
    while (less_count && more_count) {
        uint8_t small = less[--less_count], large = more[more_count - 1];
        m->rows[small].threshold = as_threshold(room[small]);
        m->rows[small].other = large;
        room[large] -= 1.0 - room[small];
        if (room[large] < 1.0) {
            more_count--;
            less[less_count++] = large;
        }
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

static inline uint64_t next_random(struct mix *m, const struct mix_row *row, uint64_t *random)
{
    uint64_t *cursor = &m->cursors[m->per_stream > 1 ? row->op : 0], at = *cursor;
    bool follows = m->follows && random_next(random) <= m->follows;

    if (follows && at != NOWHERE)
        at = rounded_up(at, row->align);
    if (!follows || at < row->first || at > row->last)
        at = row->first + random_below(random, row->places) * row->align;
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

    *offset = m->random ? next_random(m, row, random) : next_sequential(m, row);
    return row;
}
