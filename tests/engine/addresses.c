/* Prints `count` I/Os of a sequencer: byte offset, and 1 for a write. `moved`, `moved_permuted`: offsets of one, whose
 * blocks and range change meanwhile. `permutation`, `once`, `all`: of permutations alone. */
#include <string.h>

#include "check.h"
#include "load/sequencer.h"

static void print_offsets(struct sequencer *q, int count)
{
    while (count-- > 0)
        printf("%llu\n", (unsigned long long)sequencer_offset(q));
}

static enum order order_of(const char *word)
{
    return strcmp(word, "sequential") == 0 ? SEQUENTIAL_ORDER : strcmp(word, "permuted") == 0 ? PERMUTED : UNIFORM;
}

/* Each line of standard input is a key, a number of blocks, a place and a count: the blocks from that place on. */
static int permuted(void)
{
    unsigned long long key, blocks, place, count;

    while (scanf("%llu %llu %llu %llu", &key, &blocks, &place, &count) == 4) {
        struct permutation p = permutation_of(blocks);
        for (; count > 0; count--)
            printf("%llu ", (unsigned long long)permutation_at(&p, key, place++));
        printf("\n");
    }
    return 0;
}

/* Whether each of `blocks` comes once, in each of two passes; says in how many places the two agree. */
static int once(uint64_t key, uint64_t blocks)
{
    struct permutation p = permutation_of(blocks);
    uint8_t *seen = calloc(blocks, 1);
    uint64_t same = 0;

    CHECK(seen);
    for (uint64_t place = 0; place < blocks; place++) {
        uint64_t first = permutation_at(&p, key, place), second = permutation_at(&p, key + 1, place);
        CHECK(first < blocks && second < blocks);
        CHECK(!(seen[first] & 1));
        seen[first] |= 1;
        CHECK(!(seen[second] & 2));
        seen[second] |= 2;
        same += first == second;
    }
    free(seen);
    printf("%llu\n", (unsigned long long)same);
    return 0;
}

static int once_for_all(uint64_t most)
{
    for (uint64_t blocks = 1; blocks <= most; blocks++)
        once(blocks * 7, blocks);
    return 0;
}

static int moved(void)
{
    struct sequencer q;

    CHECK(sequencer_init(&q, SEQUENTIAL_ORDER, 4096, 0, 65536, 65536, false));
    print_offsets(&q, 3);
    sequencer_move(&q, 8192, 0, 65536, 65536, false);
    print_offsets(&q, 3);
    sequencer_move(&q, 512, 0, 65536, 65536, false);
    print_offsets(&q, 2);
    sequencer_move(&q, 8192, 49152, 65536, 65536, false);
    print_offsets(&q, 3);
    sequencer_move(&q, 16384, 49152, 65536, 65536, false);
    sequencer_move(&q, 65536, 49152, 65536, 65536, false); /* holds no whole block: refused earlier, ignored here */
    print_offsets(&q, 1);
    return 0;
}

static int moved_permuted(void)
{
    struct sequencer q;

    CHECK(sequencer_init(&q, PERMUTED, 4096, 0, 65536, 65536, false));
    sequencer_start_passes(&q, 5);
    print_offsets(&q, 5);
    sequencer_move(&q, 8192, 0, 65536, 65536, false);
    print_offsets(&q, 16);
    return 0;
}

int main(int count, char **words)
{
    struct sequencer q;

    if (count == 2 && strcmp(words[1], "moved") == 0)
        return moved();

    if (count == 2 && strcmp(words[1], "moved_permuted") == 0)
        return moved_permuted();
    if (count == 2 && strcmp(words[1], "permutation") == 0)
        return permuted();
    if (count == 3 && strcmp(words[1], "all") == 0)
        return once_for_all(strtoull(words[2], NULL, 10));
    if (count == 4 && strcmp(words[1], "once") == 0)
        return once(strtoull(words[2], NULL, 10), strtoull(words[3], NULL, 10));

    CHECK(count == 9); /* sequential|permuted|random, blocksize, start, end, size, device, fraction_read, count */
    bool sound = sequencer_init(&q, order_of(words[1]), (uint32_t)atoll(words[2]), strtoull(words[3], NULL, 10),
                                strtoull(words[4], NULL, 10), strtoull(words[5], NULL, 10), atoi(words[6]) != 0);
    if (!sound) {
        printf("no block\n");
        return 0;
    }
    q.random = 42;
    sequencer_start_passes(&q, 43);
    sequencer_set_fraction_read(&q, atof(words[7]));
    for (long n = 0; n < atol(words[8]); n++) {
        bool writes = sequencer_writes(&q);
        printf("%llu %d\n", (unsigned long long)sequencer_offset(&q), writes);
    }
    return 0;
}
