/* Prints `count` I/Os of a sequencer: byte offset, and 1 for a write. */
#include <string.h>

#include "check.h"
#include "sequencer.h"

int main(int count, char **words)
{
    struct sequencer q;

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
