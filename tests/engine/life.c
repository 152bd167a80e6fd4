/* Steps with everything going on at once, on a file, with the backend named: edits, moved boundaries, a slow collector,
 * another thread that renews the lease; each step ends in another way. To be run under sanitizers. */
#include "life.h"

enum { INSTANCES = 6, THREADS = 3, TAGS = 8, CLASSES = 4, MOST_BLOCKSIZE = 32768 };

#define LENGTH_NS (20 * NS_PER_MS)

enum ending { STOP, COOL, HALT, LEASE, ENDINGS };

static struct engine *engine;
static _Atomic int renewing;

static void *renew(void *unused)
{
    struct timespec pause = {.tv_nsec = 500000};

    (void)unused;
    while (atomic_load(&renewing)) {
        engine_set_lease(engine, clock_now() + 10 * NS_PER_S);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static struct parameters parameters_of(uint32_t n, double iops, uint32_t blocksize)
{
    static const enum iosequencer sequencers[] = {RANDOM_STEADY, RANDOM_INDEPENDENT, SEQUENTIAL};

    return (struct parameters){
        .fixed.iosequencer = sequencers[n % 3],
        .fixed.seed = n,
        .fixed.sequential = n == 1 ? 0.3 : 0.0,
        .fixed.cursors = n == 5 ? CURSOR_BY_OPERATION : CURSOR_SHARED,
        .setting = {.iops = iops,
                    .fraction_read = n % 3 == 2 ? 1.0 : 0.7,
                    .maxtags = n % TAGS + 1,
                    .blocksize = blocksize},
    };
}

static double random_iops(uint64_t *random)
{
    static const double choices[] = {-1.0, 0.0, 100.0, 5000.0, 50000.0, 1e9};

    return choices[random_below(random, 6)];
}

/* A mix of sizes, and of what the backend can do: a file in memory can be trimmed, but not zeroed. */
static void mix(struct setting *s, uint64_t *random)
{
    s->parts_count = 1 + (uint32_t)random_below(random, MOST_PARTS);
    for (uint32_t n = 0; n < s->parts_count; n++)
        s->parts[n] = (struct mix_part){
            .share = 1.0 / s->parts_count,
            .bytes = 4096u << random_below(random, 4),
            .op = (uint32_t)random_below(random, engine->backend->abilities.trims ? OP_TRIM + 1 : OP_TRIM),
        };
}

/* Another range, block size, and number of tags, within what was declared. */
static struct parameters random_parameters(uint32_t n, uint64_t *random)
{
    struct parameters p = parameters_of(n, random_iops(random), 4096u << random_below(random, 4));

    p.setting.maxtags = 1 + (uint32_t)random_below(random, TAGS);
    if (random_below(random, 2)) {
        p.setting.range_start = random_below(random, 1 << 20);
        p.setting.range_end = p.setting.range_start + 2 * MOST_BLOCKSIZE + random_below(random, 1 << 20);
    }
    if (random_below(random, 2))
        mix(&p.setting, random);
    return p;
}

static void edit(uint32_t number, uint64_t *random)
{
    struct edit edits[INSTANCES];
    uint32_t count = 1 + (uint32_t)random_below(random, INSTANCES), taken;
    uint64_t taken_ns, discarded;

    for (uint32_t n = 0; n < count; n++)
        edits[n] = (struct edit){.number = n, .parameters = random_parameters(n, random)};
    int result = engine_edit(engine, number, edits, count);
    CHECK(result == 0 || result == -EAGAIN);
    if (engine_edited(engine, &taken, &taken_ns, &discarded))
        CHECK(taken_ns <= clock_now());
}

static void end_by(enum ending ending, uint32_t subinterval)
{
    switch (ending) {
    case STOP:
        engine_stop(engine, subinterval + 1);
        break;
    case COOL:
        engine_cooldown(engine, subinterval + 1);
        engine_stop(engine, subinterval + 5);
        break;
    case HALT:
        engine_halt(engine);
        break;
    default:
        atomic_store(&renewing, 0);
        engine_set_lease(engine, clock_now() + 15 * NS_PER_MS);
        break;
    }
}

static void run(enum ending ending, uint32_t turns)
{
    uint64_t random = 99 + ending;
    struct timespec pause = {.tv_nsec = 7000000};
    struct sums s;
    pthread_t renewer;

    atomic_store(&renewing, 1);
    engine_set_lease(engine, clock_now() + 10 * NS_PER_S);
    CHECK(pthread_create(&renewer, NULL, renew, NULL) == 0);
    go(engine, INSTANCES, CLASSES, LENGTH_NS, &s);
    uint64_t start_ns = s.end_ns;
    while (ending == STOP && s.completed == 0) { /* before edits that may leave little to do: one is at max */
        nanosleep(&pause, NULL);
        collect_all(engine, &s, TAGS, false);
    }
    for (uint32_t turn = 1; turn <= turns; turn++) {
        uint32_t subinterval = (uint32_t)((clock_now() - start_ns) / LENGTH_NS) + 2;
        nanosleep(&pause, NULL);
        edit(turn, &random);
        engine_place_boundary(engine, subinterval,
                              start_ns + (subinterval + 1) * LENGTH_NS - random_below(&random, LENGTH_NS / 20));
        if (turn % 16 < 8) /* else it is slow */
            collect_all(engine, &s, TAGS, false);
    }
    end_by(ending, (uint32_t)((clock_now() - start_ns) / LENGTH_NS) + 1);
    if (ending == LEASE)
        pthread_join(renewer, NULL);
    struct end end = finish(engine, &s, TAGS);
    atomic_store(&renewing, 0);
    if (ending != LEASE)
        pthread_join(renewer, NULL);

    CHECK(s.last);
    CHECK(s.overruns > 0);
    CHECK_EQUAL(end.reason, ending == LEASE ? END_LEASE : END_COMMANDED);
    CHECK_EQUAL(end.sums.caught, s.in_flight);
    CHECK_EQUAL(end.sums.uncaught, 0);
    CHECK_EQUAL(end.sums.dropped, s.backlog);
    if (ending == COOL)
        CHECK_EQUAL(s.backlog, 0);
    printf("%lld I/Os in %u results\n", (long long)s.completed, s.results);
}

int main(int count, char **words)
{
    uint32_t left[ENGINE_THREADS];
    int cpus[THREADS] = {-1, -1, -1};

    CHECK(count == 4); /* backend, path, turns */
    const struct backend *backend = backend_named(words[1]);
    CHECK(engine_open(&engine, backend, cpus, THREADS) == 0);
    int lun = engine_open_lun(engine, words[2], words[2], true, true);
    CHECK(lun >= 0);
    for (uint32_t n = 0; n < INSTANCES; n++) {
        struct parameters parameters = parameters_of(n, n == 0 ? -1.0 : 3000.0, 4096u << n % 2);
        struct ceiling ceiling = {TAGS, MOST_BLOCKSIZE};
        CHECK(engine_create(engine, n, (uint32_t)lun, n % THREADS, ceiling, &everywhere, &parameters) == 0);
    }
    for (enum ending ending = 0; ending < ENDINGS; ending++)
        run(ending, (uint32_t)atoi(words[3]));
    CHECK(engine_delete(engine, 3) == 0);
    CHECK_EQUAL(engine_close(engine, 5.0, left), 0);
    engine_free(engine);
    return 0;
}
