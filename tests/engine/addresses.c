/* Prints `count` I/Os of a sequencer: byte offset, and 1 for a write. `moved`: offsets of a sequential one, whose
 * blocks and range change meanwhile. */
#include <string.h>

#include "check.h"
#include "load/sequencer.h"

static void print_offsets(struct sequencer *q, int count)
{
    while (count-- > 0)
        printf("%llu\n", (unsigned long long)sequencer_offset(q));
}

static int moved(void)
{
    struct sequencer q;

    CHECK(sequencer_init(&q, true, 4096, 0, 65536, 65536, false));
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

int main(int count, char **words)
{
    struct sequencer q;

    if (count == 2 && strcmp(words[1], "moved") == 0)
        return moved();

    CHECK(count == 9); /* sequential|random, blocksize, start, end, size, device, fraction_read, count */
    bool sound = sequencer_init(&q, strcmp(words[1], "sequential") == 0, (uint32_t)atoll(words[2]),
                                strtoull(words[3], NULL, 10), strtoull(words[4], NULL, 10),
                                strtoull(words[5], NULL, 10), atoi(words[6]) != 0);
    if (!sound) {
        printf("no block\n");
        return 0;
    }
    q.random = 42;
    sequencer_set_fraction_read(&q, atof(words[7]));
    for (long n = 0; n < atol(words[8]); n++) {
        bool writes = sequencer_writes(&q);
        printf("%llu %d\n", (unsigned long long)sequencer_offset(&q), writes);
    }
    return 0;
}
