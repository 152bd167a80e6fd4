/* A device's queue by its folder in sysfs and the kernel's release: how many requests it takes at once (0: no limit),
 * and how many one I/O of each given size is, from ordinary pages and from huge ones. */
#include "luns/queue.h"
#include "check.h"

#include <sys/sysmacros.h>

int main(int count, char **words)
{
    struct queue q;

    CHECK(count >= 3); /* folder, release, sizes */
    queue_read(&q, words[1], words[2]);
    printf("%u:%u %u\n", major(q.device), minor(q.device), q.nr_requests);
    for (int n = 3; n < count; n++)
        printf("%u %u\n", queue_requests_per_io(&q, (uint32_t)strtoul(words[n], NULL, 10), false),
               queue_requests_per_io(&q, (uint32_t)strtoul(words[n], NULL, 10), true));
    queue_free(&q);
    return 0;
}
