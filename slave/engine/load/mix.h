/* Of a mix of operations, sizes and places: what the next I/O is, and where it goes.
 *
 * Rule: each I/O is one of the mix's parts, by its share of the I/Os issued, whatever came before; so one waits, and
 * all behind it, rather than another of a part that could go. Each lies in the range, and begins at a multiple of
 * `align`, or else of its operation's smallest size. Shares are drawn from an alias table.
 *
 * A cursor is where an I/O ended: the one that follows it begins there, or at the next multiple. Sequential ones
 * follow each other, per stream and, if asked for, per operation; what does not fit before the end of the stream's
 * piece of the range begins at the start of that. Of the random ones a share follows the last, where it fits.
 *
 * Of an uneven mix, the places of all parts are of one grid, that of the finest multiples, so that they have one hot
 * set; an I/O begins at the last of its own multiples that is not behind its place. One that does not fit there gets
 * another place. Or zones have their shares; in its zone, it goes to any place that holds all of it.
 */
#ifndef IVYPY_MIX_H
#define IVYPY_MIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "places.h"
#include "random.h"

enum { MOST_PARTS = 64, MOST_STREAMS = 256, MOST_ZONES = 64 };

/* What an I/O does; the flushes are in no mix. */
enum op { OP_READ, OP_WRITE, OP_TRIM, OP_WRITE_ZEROES, OP_FSYNC, OP_FDATASYNC };

enum { OPERATIONS = OP_FSYNC };

/* The I/Os of a mix that have one operation and one size. */
struct mix_part {
    double share;
    uint32_t bytes;
    uint32_t op; /* enum op */
};

/* A part of the LUN, and how many of the I/Os go there. */
struct mix_zone {
    uint64_t start, end; /* bytes */
    double reads;        /* share of the reads */
    double others;       /* share of all other I/Os */
};

/* What never changes of a mix. */
struct mix_ways {
    uint64_t align;               /* 0: of each operation the least size */
    double sequential;            /* of random ones: the share that follows the last */
    uint32_t streams;             /* of sequential ones; at least 1 */
    bool random;                  /* else sequential */
    bool by_operation;            /* an I/O follows the last of its operation, else the last */
    struct uneven uneven;         /* of a random one */
    const struct mix_zone *zones; /* instead of that */
    uint32_t zones_count;
};

/* Where it goes. */
struct mix_range {
    uint64_t first, end; /* bytes: no I/O begins before, or ends behind */
    uint64_t piece;      /* bytes of a stream's; what then is left at the end of the range is of none */
};

/* A part, and a row of the table. */
struct mix_row {
    uint64_t threshold;   /* low bits up to this one are of this part, those above of `other` */
    uint64_t align;       /* it begins at multiples of it */
    uint64_t first;       /* ... the first of these in the range */
    uint64_t places;      /* random: so many */
    uint64_t last;        /* ... and the last of these, bytes */
    uint64_t writes_span; /* the owner's, as are weight and kind */
    uint32_t bytes;
    uint16_t weight;
    uint8_t kind, op;
    uint8_t other; /* row */
};

struct mix {
    struct mix_range range;
    uint64_t follows; /* share of I/Os that follow another, in 2**-64 */
    uint32_t count, streams, per_stream, stream;
    bool random;
    uint64_t grid;       /* of places */
    struct zones *zones; /* NULL: none */
    struct places places;
    struct mix_row rows[MOST_PARTS];
    uint64_t cursors[]; /* of the first stream: per operation; of the second ... */
};

/* The range [start, end) in bytes, (0, 0) for all of `size`; `device`: block 0 is left out. False if it does not lie
 * in `size`, or a stream's piece of it has no place for the largest of the parts. */
bool mix_range_of(struct mix_range *range, const struct mix_ways *ways, const struct mix_part *parts, uint32_t count,
                  uint64_t start, uint64_t end, uint64_t size, bool device);

/* Whether each zone that has a share of an operation's I/Os has a place for the largest of them, in a range that is the
 * mix's. */
bool mix_zones_have_places(const struct mix_range *range, const struct mix_ways *ways, const struct mix_part *parts,
                           uint32_t count);

/* Memory for any mix of these ways; NULL: there is none. To be freed. */
struct mix *mix_take(const struct mix_ways *ways);

/* Other parts and another range, which were checked, between two I/Os. Cursors stay where they still can. */
void mix_set(struct mix *m, const struct mix_ways *ways, const struct mix_part *parts, uint32_t count,
             const struct mix_range *range);

/* The next I/O of all streams and operations is to follow one that ended at `at`. */
void mix_seek(struct mix *m, uint64_t at);

/* Where the next I/O of the first stream would begin. */
uint64_t mix_cursor(const struct mix *m);

/* The next I/O: its part, and the byte offset where it begins. */
const struct mix_row *mix_next(struct mix *m, uint64_t *random, uint64_t *offset);

/* Likewise where it is uneven, or has zones. */
const struct mix_row *mix_next_uneven(struct mix *m, uint64_t *random, uint64_t *offset);

/* Its part alone, where its place is no matter of the mix. */
const struct mix_row *mix_draw(const struct mix *m, uint64_t *random);

/* Of the places in a file or device alone: what is read or written there moves data, the others do not. */
static inline bool op_moves_data(uint32_t op)
{
    return op <= OP_WRITE;
}

#endif
