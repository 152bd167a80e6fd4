#include "sequencer.h"

bool sequencer_init(struct sequencer *q, enum order order, uint32_t blocksize, uint64_t start, uint64_t end,
                    uint64_t size, bool device)
{
    if (start == 0 && end == 0)
        end = size;
    if (end > size || start >= end)
        return false;
    uint64_t first = start / blocksize + (start % blocksize != 0), behind = end / blocksize;

    if (device && first == 0)
        first = 1;
    if (first >= behind)
        return false;
    *q = (struct sequencer){.first = first,
                            .blocks = behind - first,
                            .blocksize = blocksize,
                            .order = order,
                            .permutation = permutation_of(behind - first)};
    return true;
}

static void begin_pass(struct sequencer *q)
{
    q->next = 0;
    q->pass = random_next(&q->passes);
}

void sequencer_start_passes(struct sequencer *q, uint64_t passes)
{
    q->passes = passes;
    if (q->order == PERMUTED)
        begin_pass(q);
}

__attribute__((noinline)) uint64_t sequencer_permuted(struct sequencer *q)
{
    uint64_t block = permutation_at(&q->permutation, q->pass, q->next);

    if (++q->next == q->blocks)
        begin_pass(q);
    return block;
}

void sequencer_seek(struct sequencer *q, uint64_t at, uint32_t blocksize, uint64_t start, uint64_t end, uint64_t size,
                    bool device)
{
    uint64_t block = at / blocksize + (at % blocksize != 0);
    struct sequencer moved;

    if (!sequencer_init(&moved, q->order, blocksize, start, end, size, device))
        return;
    if (block >= moved.first && block - moved.first < moved.blocks)
        moved.next = block - moved.first;
    sequencer_start_passes(&moved, q->passes);
    moved.random = q->random;
    moved.reads = q->reads;
    moved.direction = q->direction;
    *q = moved;
}

void sequencer_move(struct sequencer *q, uint32_t blocksize, uint64_t start, uint64_t end, uint64_t size, bool device)
{
    sequencer_seek(q, sequencer_place(q), blocksize, start, end, size, device);
}

void sequencer_set_fraction_read(struct sequencer *q, double fraction_read)
{
    q->direction = fraction_read >= 1.0 ? ALL_READ : fraction_read <= 0.0 ? ALL_WRITE : MIXED;
    if (q->direction == MIXED)
        q->reads = (uint64_t)(fraction_read * 0x1p64);
}
