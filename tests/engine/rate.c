/* One instance as fast as it goes on the null backend, for `lengths` of 100 ms: prints how many I/Os it did. To be run
 * under callgrind, which counts the instructions. */
#include "life.h"

int main(int count, char **words)
{
    struct engine *e;
    struct sums s;
    uint32_t left[ENGINE_THREADS];
    int cpu = -1;

    CHECK(count == 4); /* path, depth, lengths */
    uint32_t tags = (uint32_t)atoi(words[2]);
    struct parameters p = {.setting = {.iops = -1.0, .fraction_read = 1.0, .maxtags = tags, .blocksize = 4096}};
    CHECK_EQUAL(engine_open(&e, &backend_null, &cpu, 1), 0);
    int lun = engine_open_lun(e, words[1], words[1], false);
    CHECK(lun >= 0);
    CHECK_EQUAL(engine_create(e, 0, (uint32_t)lun, 0, (struct ceiling){tags, 4096}, &everywhere, &p), 0);
    engine_set_lease(e, clock_now() + 1000 * NS_PER_S);
    go(e, 1, 1, 100 * NS_PER_MS, &s);
    engine_stop(e, (uint32_t)atoi(words[3]) - 1);
    finish(e, &s, tags);
    CHECK_EQUAL(engine_close(e, 5.0, left), 0);
    engine_free(e);
    printf("%lld\n", (long long)s.completed);
    return 0;
}
