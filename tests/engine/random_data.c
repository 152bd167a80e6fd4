/* random_fill: no word twice, every byte value as often as chance has it, and nothing beyond its size. */
#include "check.h"
#include "load/random.h"

#include <stdlib.h>
#include <string.h>

enum { STREAMS = 64, SIZE = 4096, WORDS = STREAMS * SIZE / 8 };

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void nothing_occurs_twice(void)
{
    uint64_t *data = aligned_alloc(64, STREAMS * SIZE);
    uint64_t values[256] = {0};

    for (uint32_t n = 0; n < STREAMS; n++)
        random_fill((char *)data + n * SIZE, SIZE, n);
    for (uint32_t n = 0; n < STREAMS * SIZE; n++)
        values[((unsigned char *)data)[n]]++;
    for (uint32_t n = 0; n < 256; n++) /* 1,024 each, within 6 standard deviations */
        CHECK(values[n] > 832 && values[n] < 1216);
    qsort(data, WORDS, sizeof *data, by_value);
    for (uint32_t n = 1; n < WORDS; n++)
        CHECK(data[n] != data[n - 1]);
    free(data);
}

static void it_ends_where_it_is_to(void)
{
    char *data = aligned_alloc(64, 1024);

    memset(data, 7, 1024);
    random_fill(data, 512, 1);
    for (uint32_t n = 512; n < 1024; n++)
        CHECK(data[n] == 7);
    free(data);
}

int main(void)
{
    nothing_occurs_twice();
    it_ends_where_it_is_to();
    return 0;
}
