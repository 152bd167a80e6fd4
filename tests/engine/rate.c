/* One instance as fast as it goes, for `lengths` of 100 ms: prints how many I/Os it did. To be run under callgrind,
 * which counts the instructions.
 *
 *   null   every I/O has completed when the ring is polled after its submission
 *   late   it completes while the next batch is submitted, as on a device: so each has waited to be found, and its
 *          reap delay is recorded (under callgrind a pass takes long enough for that)
 *   mix    as null, of several sizes
 */
#include "life.h"

static struct {
    struct tag *tags[THREAD_BATCH * 4];
    uint32_t head, ready, tail; /* to be reaped: up to `ready`; at the next poll: up to `tail` */
} ring;

static int late_submit(void *context, struct tag *const *tags, uint32_t count)
{
    (void)context;
    for (uint32_t n = 0; n < count; n++)
        ring.tags[ring.tail++ % (THREAD_BATCH * 4)] = tags[n];
    return (int)count;
}

static int late_reap(void *context, struct completion *completions, uint32_t room)
{
    uint32_t count = 0;

    (void)context;
    while (count < room && ring.head != ring.ready) {
        struct tag *tag = ring.tags[ring.head++ % (THREAD_BATCH * 4)];
        completions[count++] = (struct completion){.tag = tag, .result = tag_bytes(tag)};
    }
    ring.ready = ring.tail;
    return (int)count;
}

static int late_wait(void *context, uint64_t timeout_ns, struct completion *completions, uint32_t room)
{
    (void)timeout_ns;
    return late_reap(context, completions, room);
}

static const struct setting mix = {
    .parts_count = 3,
    .parts = {{.share = 0.6, .bytes = 4096}, {.share = 0.3, .bytes = 8192}, {.share = 0.1, .bytes = 65536}},
};

static struct parameters parameters(uint32_t tags, bool mixed)
{
    struct parameters p = {.setting = mixed ? mix : (struct setting){0}};

    p.setting.iops = -1.0;
    p.setting.fraction_read = 1.0;
    p.setting.maxtags = tags;
    p.setting.blocksize = mixed ? 65536 : 4096;
    return p;
}

int main(int count, char **words)
{
    struct engine *e;
    struct sums s;
    uint32_t left[ENGINE_THREADS];
    int cpu = -1;
    struct backend late = backend_null;

    late.submit = late_submit;
    late.reap = late_reap;
    late.wait = late_wait;
    CHECK(count == 5); /* null, late or mix, path, depth, lengths */
    uint32_t tags = (uint32_t)atoi(words[3]);
    struct parameters p = parameters(tags, strcmp(words[1], "mix") == 0);
    CHECK_EQUAL(engine_open(&e, strcmp(words[1], "late") ? &backend_null : &late, &cpu, 1), 0);
    int lun = engine_open_lun(e, words[2], words[2], false, true);
    CHECK(lun >= 0);
    CHECK_EQUAL(engine_create(e, 0, (uint32_t)lun, 0, (struct ceiling){tags, p.setting.blocksize}, &everywhere, &p), 0);
    engine_set_lease(e, clock_now() + 1000 * NS_PER_S);
    go(e, 1, 1, 100 * NS_PER_MS, &s);
    engine_stop(e, (uint32_t)atoi(words[4]) - 1);
    finish(e, &s, tags);
    CHECK_EQUAL(engine_close(e, 5.0, left), 0);
    engine_free(e);
    printf("%lld\n", (long long)s.completed);
    return 0;
}
