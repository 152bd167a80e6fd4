/* What the I/Os of mixes are.
 *
 *   table        each line of standard input is the shares of a mix: of each part, the row's threshold and other part
 *   next         the words say its ways, each line its range, its parts, and of how many I/Os to print operation,
 *                offset and size; from one line to the next it is edited
 *   run          the same of an engine, which submits them; the words say what of an instance never changes, each line
 *                its setting once so many I/Os, and the batches under way, went. Prints what reached the backend
 *   places       of instances on several threads, in several steps: instance, step, and where each I/O goes
 *
 * Where they go: zipf pareto normal working_set scattered scatter_seed zones, and of each zone start end reads others.
 */
#include "life.h"

#include "load/mix.h"

enum { LINE = 4096, MOST_IOS = 1 << 20, MOST_LINES = 16 };

static struct mix_part parts[MOST_PARTS];

/* The shares, sizes and operations that are left of a line. */
static uint32_t read_parts(char *text)
{
    uint32_t count = 0;

    for (char *word = strtok(text, " \n"); word; word = strtok(NULL, " \n"), count++) {
        CHECK(count < MOST_PARTS);
        parts[count].share = atof(word);
        parts[count].bytes = (uint32_t)atoll(strtok(NULL, " \n"));
        parts[count].op = (uint32_t)atoi(strtok(NULL, " \n"));
    }
    return count;
}

static void table(void)
{
    const struct mix_ways ways = {.random = true, .streams = 1};
    char line[LINE];

    while (fgets(line, sizeof line, stdin)) {
        struct mix_range range;
        struct mix *m = mix_take(&ways);
        uint32_t count = 0;
        for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n"))
            parts[count++] = (struct mix_part){.share = atof(word), .bytes = 512};
        CHECK(mix_range_of(&range, &ways, parts, count, 0, 0, 1 << 20, false));
        mix_set(m, &ways, parts, count, &range);
        for (uint32_t n = 0; n < count; n++)
            printf("%llu %u ", (unsigned long long)m->rows[n].threshold, m->rows[n].other);
        printf("\n");
        free(m);
    }
}

enum { WHERE_WORDS = 7 };

/* Into what is all zero so far; the words behind it. */
static char **read_where(struct fixed *f, char **words)
{
    f->zipf = atof(words[0]);
    f->pareto = atof(words[1]);
    f->normal = atof(words[2]);
    f->working_set = strtoull(words[3], NULL, 10);
    f->scattered = strtoull(words[4], NULL, 10);
    f->scatter_seed = strtoull(words[5], NULL, 10);
    f->zones_count = strtoull(words[6], NULL, 10);
    words += WHERE_WORDS;
    for (uint32_t n = 0; n < f->zones_count; n++, words += 4)
        f->zones[n] = (struct mix_zone){.start = strtoull(words[0], NULL, 10),
                                        .end = strtoull(words[1], NULL, 10),
                                        .reads = atof(words[2]),
                                        .others = atof(words[3])};
    return words;
}

static struct mix_ways ways_of(char **words)
{
    static struct fixed f; /* its zones are pointed to */

    read_where(&f, words + 5);
    return (struct mix_ways){.random = strcmp(words[0], "random") == 0,
                             .align = strtoull(words[1], NULL, 10),
                             .sequential = atof(words[2]),
                             .streams = (uint32_t)atoi(words[3]),
                             .by_operation = atoi(words[4]) != 0,
                             .uneven = {.zipf = f.zipf,
                                        .pareto = f.pareto,
                                        .normal = f.normal,
                                        .working_set = f.working_set,
                                        .key = f.scatter_seed,
                                        .scattered = f.scattered},
                             .zones = f.zones,
                             .zones_count = (uint32_t)f.zones_count};
}

static bool is_uneven(const struct mix_ways *ways)
{
    return ways->zones_count || uneven_is(&ways->uneven);
}

static void print_ios(struct mix *m, bool uneven, uint64_t *random, long count)
{
    for (; count > 0; count--) {
        uint64_t offset;
        const struct mix_row *row = (uneven ? mix_next_uneven : mix_next)(m, random, &offset);
        printf("%u %llu %u\n", row->op, (unsigned long long)offset, row->bytes);
    }
}

/* size device random|sequential align sequential streams by_operation, where they go; lines: count start end parts */
static void next(char **words)
{
    struct mix_ways ways = ways_of(words + 2);
    struct mix *m = mix_take(&ways);
    uint64_t random = 4711;
    char line[LINE];

    while (fgets(line, sizeof line, stdin)) {
        long count;
        unsigned long long start, end;
        int behind;
        struct mix_range range;
        CHECK(sscanf(line, "%ld %llu %llu%n", &count, &start, &end, &behind) == 3);
        uint32_t many = read_parts(line + behind);
        if (!mix_range_of(&range, &ways, parts, many, start, end, strtoull(words[0], NULL, 10), atoi(words[1]) != 0)) {
            printf("no place\n");
            continue;
        }
        if (!mix_zones_have_places(&range, &ways, parts, many)) {
            printf("no place in a zone\n");
            continue;
        }
        mix_set(m, &ways, parts, many, &range);
        print_ios(m, is_uneven(&ways), &random, count);
    }
    free(m);
}

struct io {
    uint64_t offset;
    uint32_t bytes, op;
    uint32_t instance, step;
};

static struct io *ios;
static _Atomic uint32_t ios_count, gate; /* nothing is taken from so many on */
static struct backend logging;

static int submit(void *context, struct tag *const *tags, uint32_t count)
{
    while (atomic_load(&ios_count) >= atomic_load(&gate))
        usleep(10);
    for (uint32_t n = 0; n < count; n++) {
        uint32_t at = atomic_load(&ios_count);
        CHECK(at < MOST_IOS);
        ios[at] = (struct io){.offset = tag_offset(tags[n]), .bytes = tag_bytes(tags[n]), .op = tags[n]->op};
        atomic_store(&ios_count, at + 1);
    }
    return backend_null.submit(context, tags, count);
}

static bool read_setting(struct setting *s, uint32_t *from)
{
    char line[LINE];
    unsigned long long start, end;
    int behind;

    if (!fgets(line, sizeof line, stdin))
        return false;
    *s = (struct setting){.iops = -1.0};
    CHECK(sscanf(line, "%u %llu %llu %lf %u %u%n", from, &start, &end, &s->fraction_read, &s->blocksize, &s->maxtags,
                 &behind) == 6);
    s->range_start = start;
    s->range_end = end;
    s->parts_count = read_parts(line + behind);
    memcpy(s->parts, parts, s->parts_count * sizeof *parts);
    return true;
}

static void wait_and_collect(struct engine *e, struct sums *s, uint32_t tags)
{
    collect_all(e, s, tags, false);
    wait_for_news(e, 1);
}

/* The next is due from `next` I/Os on. */
static void edit(struct engine *e, uint32_t number, const struct edit *edit, uint32_t next, struct sums *s,
                 uint32_t tags)
{
    uint64_t taken_ns, discarded;
    uint32_t taken;
    int result = engine_edit(e, number, edit, 1);

    atomic_store(&gate, next);
    if (result == -EINVAL || result == -EPERM) {
        printf("refused %u\n", number);
        return;
    }
    CHECK_EQUAL(result, 0);
    while (!engine_edited(e, &taken, &taken_ns, &discarded))
        wait_and_collect(e, s, tags);
}

/* All that it submits, edited on the way. */
static void follow(struct engine *e, const struct edit *edits, const uint32_t *from, uint32_t lines, uint32_t tags)
{
    struct sums s;

    atomic_store(&gate, from[1]);
    engine_set_lease(e, clock_now() + 1000 * NS_PER_S);
    go(e, 1, 1, 20 * NS_PER_MS, &s);
    for (uint32_t n = 1; n < lines; n++) {
        while (atomic_load(&ios_count) < from[n] && !s.ended_ns_of[0])
            wait_and_collect(e, &s, tags);
        edit(e, n, &edits[n], from[n + 1], &s, tags);
    }
    while (!s.ended_ns_of[0])
        wait_and_collect(e, &s, tags);
    engine_halt(e);
    CHECK_EQUAL(finish(e, &s, tags).reason, END_COMMANDED);
    CHECK_EQUAL(s.completed, atomic_load(&ios_count));
    CHECK_EQUAL(s.due, s.completed);
    for (uint32_t n = 0; n < ios_count; n++)
        printf("%u %llu %u\n", ios[n].op, (unsigned long long)ios[n].offset, ios[n].bytes);
}

/* path iosequencer align sequential streams cursors ios tags ceiling start, where they go, agreed...; lines: from start
 * end fraction_read blocksize maxtags parts */
static void run(char **words, int count)
{
    static struct edit edits[MOST_LINES];
    static struct extent extents[MOST_LINES];
    struct engine *e;
    struct extents agreed = {.list = extents};
    uint32_t from[MOST_LINES + 1] = {0}, lines = 0, left[ENGINE_THREADS];
    struct ceiling ceiling = {(uint32_t)atoi(words[7]), (uint32_t)atoll(words[8])};
    int cpu = -1;
    struct fixed fixed = {.iosequencer = strtoull(words[1], NULL, 10),
                          .align = strtoull(words[2], NULL, 10),
                          .sequential = atof(words[3]),
                          .streams = strtoull(words[4], NULL, 10),
                          .cursors = strtoull(words[5], NULL, 10),
                          .start = strtoull(words[9], NULL, 10),
                          .seed = 4711,
                          .until = {ENDS_IOS, strtoull(words[6], NULL, 10)}};

    for (char **word = read_where(&fixed, words + 10); word + 1 < words + count; word += 2)
        extents[agreed.count++] = (struct extent){strtoull(word[0], NULL, 10), strtoull(word[1], NULL, 10)};
    while (lines < MOST_LINES && read_setting(&edits[lines].parameters.setting, &from[lines]))
        edits[lines++].parameters.fixed = fixed;
    from[lines] = UINT32_MAX;
    ios = calloc(MOST_IOS, sizeof *ios);
    logging = backend_null;
    logging.submit = submit;
    CHECK_EQUAL(engine_open(&e, &logging, &cpu, 1), 0);
    int lun = engine_open_lun(e, words[0], words[0], agreed.count > 0, true);
    CHECK(lun >= 0);
    if (engine_create(e, 0, (uint32_t)lun, 0, ceiling, &agreed, &edits[0].parameters) == 0)
        follow(e, edits, from, lines, ceiling.tags);
    else
        printf("refused: %s\n", engine_why(e));
    CHECK_EQUAL(engine_close(e, 5.0, left), 0);
    engine_free(e);
    free(ios);
}

static _Atomic uint32_t step_now;

static int submit_any(void *context, struct tag *const *tags, uint32_t count)
{
    for (uint32_t n = 0; n < count; n++) {
        uint32_t at = atomic_fetch_add(&ios_count, 1);
        CHECK(at < MOST_IOS);
        ios[at] = (struct io){.offset = tag_offset(tags[n]),
                              .bytes = tag_bytes(tags[n]),
                              .instance = tags[n]->instance->number,
                              .step = atomic_load(&step_now)};
    }
    return backend_null.submit(context, tags, count);
}

static bool all_ended(const struct sums *s, uint32_t instances)
{
    for (uint32_t n = 0; n < instances; n++)
        if (!s->ended_ns_of[n])
            return false;
    return true;
}

/* path threads instances steps ios iosequencer start blocksize, where they go */
static void places(char **words)
{
    const int cpus[] = {-1, -1, -1, -1};
    uint32_t threads = (uint32_t)atoi(words[1]), instances = (uint32_t)atoi(words[2]), left[ENGINE_THREADS];
    struct engine *e;
    struct sums s;
    struct parameters p = {
        .fixed = {.until = {ENDS_IOS, strtoull(words[4], NULL, 10)},
                  .iosequencer = strtoull(words[5], NULL, 10),
                  .start = strtoull(words[6], NULL, 10)},
        .setting = {.iops = -1.0, .fraction_read = 1.0, .maxtags = 4, .blocksize = (uint32_t)atoi(words[7])}};

    read_where(&p.fixed, words + 8);
    ios = calloc(MOST_IOS, sizeof *ios);
    logging = backend_null;
    logging.submit = submit_any;
    CHECK_EQUAL(engine_open(&e, &logging, cpus, threads), 0);
    int lun = engine_open_lun(e, words[0], words[0], false, true);
    CHECK(lun >= 0);
    for (uint32_t n = 0; n < instances; n++) {
        p.fixed.seed = n / 2; /* some have the same */
        int result = engine_create(e, n, (uint32_t)lun, n % threads, (struct ceiling){4, p.setting.blocksize},
                                   &everywhere, &p);
        if (result != 0)
            printf("refused: %s\n", engine_why(e));
        if (result != 0)
            instances = n;
    }
    engine_set_lease(e, clock_now() + 1000 * NS_PER_S);
    for (; instances && atomic_load(&step_now) < (uint32_t)atoi(words[3]); atomic_fetch_add(&step_now, 1)) {
        go(e, instances, 1, 20 * NS_PER_MS, &s);
        while (!all_ended(&s, instances))
            wait_and_collect(e, &s, 4);
        engine_halt(e);
        CHECK_EQUAL(finish(e, &s, 4).reason, END_COMMANDED);
    }
    CHECK_EQUAL(engine_close(e, 5.0, left), 0);
    engine_free(e);
    for (uint32_t n = 0; n < ios_count; n++)
        printf("%u %u %llu\n", ios[n].instance, ios[n].step, (unsigned long long)ios[n].offset);
    free(ios);
}

int main(int count, char **words)
{
    CHECK(count >= 2);
    if (strcmp(words[1], "table") == 0)
        table();
    else if (strcmp(words[1], "next") == 0)
        next(words + 2);
    else if (strcmp(words[1], "places") == 0)
        places(words + 2);
    else
        run(words + 2, count - 2);
    return 0;
}
