/* Where the next I/O goes, and whether it reads or writes: of all instances whose I/Os are of one size and begin at
 * multiples of it. Of the others mix.h says that, with the random numbers of this.
 *
 * Rule: whole blocks only, aligned to the block size, every block of the range including the last; block 0 of a
 * block device is never in a range (it holds the label).
 */
#ifndef IVYPY_SEQUENCER_H
#define IVYPY_SEQUENCER_H

#include <stdbool.h>
#include <stdint.h>

#include "permutation.h"
#include "random.h"

/* Of addresses. PERMUTED: at random, each block of the range once before any again. UNEVEN: at random, as only a mix
 * says it. */
enum order { SEQUENTIAL_ORDER, UNIFORM, PERMUTED, UNEVEN };

/* The first two are operations (mix.h). BY_PARTS: a mix says it. */
enum direction { ALL_READ, ALL_WRITE, MIXED, BY_PARTS };

struct sequencer {
    uint64_t first, blocks; /* the range, in blocks */
    uint64_t next;          /* sequential: the block after the last one; permuted: the place of the next in its pass */
    uint64_t random;        /* stream of addresses and directions */
    uint64_t reads;         /* share of reads, in 2**-64 (MIXED) */
    uint32_t blocksize;
    enum direction direction;
    enum order order;
    struct permutation permutation;
    uint64_t pass, passes; /* the key of this pass; stream of keys */
};

/* The range [start, end) in bytes, (0, 0) for all of `size`; `device`: block 0 is left out. False if it holds no
 * whole block. */
bool sequencer_init(struct sequencer *q, enum order order, uint32_t blocksize, uint64_t start, uint64_t end,
                    uint64_t size, bool device);

/* Permuted: begins the first pass of a stream of them. */
void sequencer_start_passes(struct sequencer *q, uint64_t passes);

/* Another block size and range, between two I/Os: permuted, a new pass begins. A sequential one goes on behind the last
 * I/O, at the next whole block; from the range's beginning where that is not in it. Without effect if the range holds
 * no whole block. */
void sequencer_move(struct sequencer *q, uint32_t blocksize, uint64_t start, uint64_t end, uint64_t size, bool device);

/* The same, but goes on at the first whole block that is not below `at`, a byte offset. */
void sequencer_seek(struct sequencer *q, uint64_t at, uint32_t blocksize, uint64_t start, uint64_t end, uint64_t size,
                    bool device);

/* Behind the last I/O, where it is sequential. */
static inline uint64_t sequencer_place(const struct sequencer *q)
{
    return (q->first + q->next) * q->blocksize;
}

void sequencer_set_fraction_read(struct sequencer *q, double fraction_read);

/* The block of the range that is next in a pass. */
uint64_t sequencer_permuted(struct sequencer *q);

/* The byte offset of the next I/O, where it is permuted. */
static inline uint64_t sequencer_permuted_offset(struct sequencer *q)
{
    return (q->first + sequencer_permuted(q)) * q->blocksize;
}

/* The byte offset of the next I/O. */
static inline uint64_t sequencer_offset(struct sequencer *q)
{
    uint64_t block;

    if (__builtin_expect(q->order == UNIFORM, true)) {
        block = random_below(&q->random, q->blocks);
    } else if (q->order == PERMUTED) {
        block = sequencer_permuted(q);
    } else {
        block = q->next;
        if (++q->next == q->blocks)
            q->next = 0;
    }
    return (q->first + block) * q->blocksize;
}

static inline bool sequencer_writes(struct sequencer *q)
{
    if (q->direction == MIXED)
        return random_next(&q->random) >= q->reads;
    return q->direction == ALL_WRITE;
}

#endif
