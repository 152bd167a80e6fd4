/* Which cores submit to the same hardware queues, by a folder `mq`: how many sets, then that of each core asked for. */
#include "luns/hw_queues.h"
#include "check.h"

int main(int count, char **words)
{
    struct hw_queues h;

    CHECK(count >= 2); /* folder, cores */
    if (!hw_queues_read(&h, words[1]))
        printf("no folder\n");
    printf("%u\n", h.sets);
    for (int n = 2; n < count; n++)
        printf("%u\n", hw_queues_set(&h, atoi(words[n])));
    hw_queues_free(&h);
    return 0;
}
