/* One instance as fast as it goes on a device, for a second of its time: prints the device's limit, the most in flight
 * by the device's own count, the I/Os that completed, errors, waits for room, and EAGAINs. */
#include "life.h"

#include "backends/backend.h"

/* `inflight` of the device's folder: reads and writes. */
static uint32_t in_flight_by_sysfs(const char *name)
{
    char path[256], text[64] = "";
    unsigned reads = 0, writes = 0;

    snprintf(path, sizeof path, "/sys/block/%s/inflight", name);
    FILE *file = fopen(path, "r");
    CHECK(file);
    CHECK(fgets(text, sizeof text, file));
    fclose(file);
    CHECK_EQUAL(sscanf(text, "%u %u", &reads, &writes), 2);
    return reads + writes;
}

int main(int count, char **words)
{
    struct engine *e;
    struct sums s = {0};
    struct result r;
    struct end end;
    int64_t limited = 0, again = 0;
    uint32_t most = 0, left[ENGINE_THREADS];
    int cpu = -1;

    CHECK(count == 5); /* backend, path, its name in /sys/block, maxtags */
    uint32_t tags = (uint32_t)atoi(words[4]);
    struct parameters p = {.setting = {.iops = -1.0, .fraction_read = 1.0, .maxtags = tags, .blocksize = 4096}};
    const struct backend *backend = backend_named(words[1]);
    CHECK(backend);
    CHECK_EQUAL(engine_open(&e, backend, &cpu, 1), 0);
    int lun = engine_open_lun(e, words[2], words[2], false, true);
    CHECK(lun >= 0);
    CHECK_EQUAL(engine_create(e, 0, (uint32_t)lun, 0, (struct ceiling){tags, 4096}, &everywhere, &p), 0);
    engine_set_lease(e, clock_now() + 1000 * NS_PER_S);
    go(e, 1, 1, 500 * NS_PER_MS, &s);
    engine_stop(e, 3);
    while (!engine_ended(e, &end)) {
        while (engine_collect(e, false, &r) == 1) {
            limited += r.counts[COUNT_QUEUE_LIMITED];
            again += r.counts[COUNT_EAGAIN];
            add_result(&s, &r, tags);
            result_free(&r);
        }
        uint32_t now = in_flight_by_sysfs(words[3]);
        most = now > most ? now : most;
        wait_for_news(e, 20);
    }
    printf("limit %u most %u completed %lld errors %lld waits %lld again %lld\n", e->luns[lun]->queue.nr_requests, most,
           (long long)s.completed, (long long)s.errors, (long long)limited, (long long)again);
    CHECK_EQUAL(engine_close(e, 5.0, left), 0);
    engine_free(e);
    return 0;
}
