/* The engine on a backend that misbehaves as it is told: each scenario is one way in which storage or kernel fail.
 *
 * On the simulated machine (simulation.c) figures are exact. Those scenarios in which threads meet also run on the real
 * one, under a sanitizer; they check there what holds however long things take.
 */
#include "life.h"
#include "luns/flush.h"
#include "simulation.h"
#include "thread/ready_queue.h"

#include <math.h>
#include <sys/prctl.h>

enum { DEPTH = 4096, MOST_BLOCKSIZE = 32768 };

/* So often a wait looks at what it is told. */
enum { LOOK_NS = 100000 };

/* What the simulated machine takes to submit a batch, and to poll. */
enum { BATCH_NS = 1000, POLL_NS = 100 };

enum { SKEWED = 8 }; /* instances that have a skew, at most: by number */

/* What the backend is told, and what it saw. One workload thread or two; guarded by nothing but atomics. */
static struct {
    _Atomic int64_t result;                   /* of every I/O, if not 0 */
    _Atomic int64_t flush_result;             /* of every flush, if not 0 */
    _Atomic uint64_t flush_delay_ns;          /* and how much longer it takes */
    _Atomic uint32_t flushing, most_flushing; /* of instance 0, in flight; and the most that ever were */
    _Atomic uint32_t room;                    /* EAGAIN for a nowait I/O above this many in flight */
    _Atomic int refuse;                       /* what submit says, if not 0 */
    _Atomic int take;                         /* at most so many in one call, if not 0 */
    _Atomic uint64_t delay_ns;                /* of every completion */
    _Atomic uint64_t delay_of[SKEWED];        /* and of each that has a skew */
    _Atomic uint64_t issued_of[SKEWED];       /* by it, in this step */
    _Atomic bool fails_of[SKEWED];            /* and whether its I/Os fail */
    _Atomic uint64_t spread_ns;               /* and up to so much more, at random */
    _Atomic(struct lun *) hung;               /* a LUN that completes nothing */
    _Atomic(struct lun *) blocks;             /* a LUN whose submit call takes so long: */
    _Atomic uint64_t block_ns;
    _Atomic uint64_t each_ns;           /* of each I/O in the submit call */
    _Atomic uint64_t together_ns;       /* completions come together, so long apart */
    _Atomic uint32_t stuck_thread;      /* context number whose submit hangs, + 1, */
    _Atomic bool is_stuck;              /* and now does */
    _Atomic uint64_t deaf_until_ns;     /* wait does not return before */
    _Atomic int64_t turn_ns;            /* the submit call turns the thread's clock by so much, once */
    _Atomic uint64_t suspend_ns;        /* and seems to the thread to suspend the machine for so long, once */
    _Atomic uint64_t prepare_ns;        /* to prepare a batch, once */
    _Atomic uint64_t written, data[64]; /* so many writes were submitted; how each of the first ones begins */
    _Atomic bool renew;                 /* the lease is renewed when the ring is polled after its end */
    _Atomic uint64_t submitted, completed, most_in_flight, most_requests, calls;
    _Atomic uint64_t hung_since_ns; /* when the first I/O of the hung LUN was submitted */
    _Atomic uint64_t waited_ns;     /* by how much polls found completions of other LUNs than that after their time */
    _Atomic uint64_t before_ns;     /* of a submit call, before each of its I/Os was taken, by each_ns */
    _Atomic uint64_t beside;        /* I/Os that were submitted in one call with one that blocks */
    _Atomic uint64_t looked_ns;     /* when the ring was last looked at, */
    _Atomic uint64_t oldest_ns;     /* and how long the I/Os of the next submit call had then been due at most */
    _Atomic uint64_t in_room[64], most_in_one_room; /* by the room of an I/O: requests in flight */
} told;

struct kept {
    struct tag *tag;
    uint64_t at_ns;
    int64_t result;
};

struct context {
    uint32_t number, count; /* the thread's number */
    struct kept kept[DEPTH];
};

static struct engine *engine;

static int open_context(void **context, uint32_t depth, uint32_t options)
{
    struct context *c = calloc(1, sizeof *c);
    char name[16];

    (void)options;
    CHECK(depth <= DEPTH);
    CHECK(prctl(PR_GET_NAME, name) == 0 && sscanf(name, "ivypy-%u", &c->number) == 1);
    *context = c;
    return 0;
}

static int probe(uint32_t options)
{
    (void)options;
    return 0;
}

static void sleep_until(uint64_t ns)
{
    struct timespec at = clock_timespec(ns);

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
}

static void spend(uint64_t ns)
{
    if (ns)
        sleep_until(clock_now() + ns);
}

static void prepare(void *context, struct tag *const *tags, uint32_t count)
{
    (void)context, (void)tags, (void)count;
    spend(atomic_exchange(&told.prepare_ns, 0));
}

/* As long as a LUN of these keeps the call. */
static void block(struct tag *const *tags, uint32_t count)
{
    uint32_t blocking = 0;

    for (uint32_t n = 0; n < count; n++)
        blocking += tags[n]->instance->lun == atomic_load(&told.blocks);
    if (blocking == 0)
        return;
    atomic_fetch_add(&told.beside, count - blocking);
    spend(blocking * atomic_load(&told.block_ns));
}

/* So many requests more, or less, in the room that an I/O's share has a part of. */
static void count_in_room(const struct tag *tag, int64_t requests)
{
    if (!tag->instance->in_step) /* its share is of an earlier one */
        return;
    const struct queue_room *room = tag->instance->share->holding.room;
    if (!room)
        return;
    uint64_t now = atomic_fetch_add(&told.in_room[room - engine->rooms], (uint64_t)requests) + (uint64_t)requests;
    uint64_t most = atomic_load(&told.most_in_one_room);
    while (now > most && !atomic_compare_exchange_weak(&told.most_in_one_room, &most, now))
        ;
}

/* On the workload thread itself, whose clock it is. */
static void upset_clock(struct thread *t)
{
    if (t->boundary.clock.slope) /* else it is the kernel's so far */
        t->boundary.clock.ns += (uint64_t)atomic_exchange(&told.turn_ns, 0);
    t->clock_guard.asleep_ns -= atomic_exchange(&told.suspend_ns, 0);
}

static void note_data(const struct tag *tag)
{
    uint64_t n, data;

    if (tag->op != OP_WRITE || (n = atomic_fetch_add(&told.written, 1)) >= sizeof told.data / sizeof *told.data)
        return;
    memcpy(&data, tag_buffer(tag, true), sizeof data);
    atomic_store(&told.data[n], data);
}

/* What comes of an I/O that the storage takes. */
static int64_t result_of(const struct tag *tag)
{
    bool flush = tag->filed_as == FILED_AS_FLUSH;
    int64_t result = flush && atomic_load(&told.flush_result) ? atomic_load(&told.flush_result)
                                                              : atomic_load(&told.result);

    if (tag->instance->number < SKEWED && atomic_load(&told.fails_of[tag->instance->number]))
        return -EIO;
    return result ? result : tag_bytes(tag);
}

static uint64_t delay_of(const struct tag *tag)
{
    static uint64_t random = 4711;
    bool flush = tag->filed_as == FILED_AS_FLUSH;
    uint64_t spread_ns = atomic_load(&told.spread_ns);

    return atomic_load(&told.delay_ns) +
           (tag->instance->number < SKEWED ? atomic_load(&told.delay_of[tag->instance->number]) : 0) +
           (flush ? atomic_load(&told.flush_delay_ns) : 0) + (spread_ns ? random_below(&random, spread_ns) : 0);
}

static void count_flush(const struct tag *tag, uint32_t more)
{
    if (tag->instance->number != 0 || tag->op < OP_FSYNC)
        return;
    uint32_t now = atomic_fetch_add(&told.flushing, more) + more;
    if (now > atomic_load(&told.most_flushing))
        atomic_store(&told.most_flushing, now);
}

static double skews[SKEWED];     /* 0: none; else no edit changes what counts in the step, but the end by so many: */
static uint64_t ends_of[SKEWED]; /* 0: none */

/* None of those that count is ahead of another by more than one I/O of its own. */
static void count_skewed(const struct tag *tag)
{
    uint32_t number = tag->instance->number;

    if (number >= SKEWED)
        return;
    double issued = (double)(atomic_fetch_add(&told.issued_of[number], 1) + 1);
    for (uint32_t n = 0; n < SKEWED && skews[number] > 0.0; n++) {
        uint64_t other = atomic_load(&told.issued_of[n]);
        if (skews[n] > 0.0 && !(ends_of[n] && other >= ends_of[n]))
            CHECK((issued - 1.0) / skews[number] <= (double)other / skews[n] * (1.0 + 1e-9));
    }
}

static int submit(void *context, struct tag *const *tags, uint32_t count)
{
    struct context *c = context;
    struct timespec pause = {.tv_nsec = 1000000};
    uint32_t take = (uint32_t)atomic_load(&told.take);

    atomic_fetch_add(&told.calls, 1);
    while (atomic_load(&told.stuck_thread) == c->number + 1) {
        atomic_store(&told.is_stuck, true);
        nanosleep(&pause, NULL);
    }
    if (atomic_load(&told.refuse))
        return atomic_load(&told.refuse);
    if (take && count > take)
        count = take;
    block(tags, count);
    atomic_fetch_add(&told.before_ns, (uint64_t)count * (count - 1) / 2 * atomic_load(&told.each_ns));
    upset_clock(&engine->threads[c->number]);
    for (uint32_t n = 0; n < count; n++) {
        uint64_t due_ns = tags[n]->due_ns, looked_ns = atomic_load(&told.looked_ns);
        if (due_ns && looked_ns > due_ns + atomic_load(&told.oldest_ns))
            atomic_store(&told.oldest_ns, looked_ns - due_ns);
        note_data(tags[n]);
        spend(atomic_load(&told.each_ns));
        if (tags[n]->instance->lun == atomic_load(&told.hung) && !atomic_load(&told.hung_since_ns))
            atomic_store(&told.hung_since_ns, clock_now());
        uint32_t room = atomic_load(&told.room);
        bool again = room && tags[n]->nowait && c->count >= room;
        c->kept[c->count++] = (struct kept){
            .tag = tags[n],
            .at_ns = clock_now() + (again ? 0 : delay_of(tags[n])),
            .result = again ? -EAGAIN : result_of(tags[n]),
        };
        if (atomic_load(&told.together_ns))
            c->kept[c->count - 1].at_ns += -c->kept[c->count - 1].at_ns % atomic_load(&told.together_ns);
        count_in_room(tags[n], tags[n]->weight);
        count_flush(tags[n], 1);
        count_skewed(tags[n]);
        if (!again && c->count > atomic_load(&told.most_in_flight))
            atomic_store(&told.most_in_flight, c->count);
    }
    uint64_t requests = 0;
    for (uint32_t n = 0; n < c->count; n++)
        requests += c->kept[n].tag->weight;
    if (requests > atomic_load(&told.most_requests))
        atomic_store(&told.most_requests, requests);
    atomic_fetch_add(&told.submitted, count);
    return (int)count;
}

static int take(void *context, struct completion *completions, uint32_t room, _Atomic uint64_t *waited_ns)
{
    struct context *c = context;
    uint64_t now_ns = clock_now();
    uint32_t found = 0, left = 0;

    if (atomic_load(&told.renew) && now_ns >= atomic_load(&engine->step.lease_ns)) {
        atomic_store(&told.renew, false);
        engine_set_lease(engine, now_ns + 60 * NS_PER_S);
    }
    for (uint32_t n = 0; n < c->count; n++) {
        struct kept *k = &c->kept[n];
        bool hung = k->tag->instance->lun == atomic_load(&told.hung);
        if (found == room || k->at_ns > now_ns || hung) {
            c->kept[left++] = *k;
            continue;
        }
        count_in_room(k->tag, -(int64_t)k->tag->weight);
        count_flush(k->tag, (uint32_t)-1);
        completions[found++] = (struct completion){.tag = k->tag, .result = k->result};
        atomic_fetch_add(&told.completed, k->result != -EAGAIN);
        if (k->tag->instance->lun != atomic_load(&told.blocks))
            atomic_fetch_add(waited_ns, now_ns - k->at_ns);
    }
    c->count = left;
    atomic_store(&told.looked_ns, clock_now());
    return (int)found;
}

static int reap(void *context, struct completion *completions, uint32_t room)
{
    return take(context, completions, room, &told.waited_ns);
}

/* When the first completes that does; at most so long from now that what is told meanwhile counts soon. */
static uint64_t next_ns(const struct context *c, uint64_t until_ns)
{
    uint64_t first_ns = earlier(until_ns, clock_now() + LOOK_NS);

    for (uint32_t n = 0; n < c->count; n++)
        if (c->kept[n].tag->instance->lun != atomic_load(&told.hung))
            first_ns = earlier(first_ns, c->kept[n].at_ns);
    return first_ns;
}

static int wait(void *context, uint64_t timeout_ns, struct completion *completions, uint32_t room)
{
    uint64_t until_ns = clock_now() + timeout_ns;
    _Atomic uint64_t asleep_ns = 0;

    for (;;) {
        if (clock_now() < atomic_load(&told.deaf_until_ns)) {
            sleep_until(atomic_load(&told.deaf_until_ns));
            continue;
        }
        int found = take(context, completions, room, &asleep_ns);
        if (found || clock_now() >= until_ns)
            return found;
        sleep_until(next_ns(context, until_ns));
    }
}

static const struct backend faulty = {
    .name = "faulty",
    .abilities = {.trims = true},
    .probe = probe,
    .open = open_context,
    .close = free,
    .prepare = prepare,
    .submit = submit,
    .reap = reap,
    .wait = wait,
};

static const char *path;
static char **words; /* that follow */

#define LENGTH_NS (50 * NS_PER_MS)

static struct lun *open_lun(uint32_t *handle)
{
    int result = engine_open_lun(engine, path, path, true, true);

    CHECK(result >= 0);
    *handle = (uint32_t)result;
    queue_free(&engine->luns[result]->queue);
    engine->luns[result]->queue = (struct queue){0};
    return engine->luns[result];
}

static void create(uint32_t number, uint32_t lun, uint32_t thread, double iops, uint32_t tags)
{
    struct parameters p = {.setting = {.iops = iops, .fraction_read = 0.5, .maxtags = tags, .blocksize = 4096}};

    CHECK_EQUAL(engine_create(engine, number, lun, thread, (struct ceiling){tags, MOST_BLOCKSIZE}, &everywhere, &p), 0);
}

static void start(uint32_t instances, struct sums *s)
{
    engine_set_lease(engine, clock_now() + 60 * NS_PER_S);
    go(engine, instances, 1, LENGTH_NS, s);
}

static struct end stop_after(uint32_t last, struct sums *s, uint32_t tags)
{
    engine_stop(engine, last);
    return finish(engine, s, tags);
}

/* Collects until a figure of the backend is above this, however long a busy machine takes. */
static void collect_until_above(_Atomic uint64_t *figure, uint64_t least, struct sums *s, uint32_t tags)
{
    while (atomic_load(figure) <= least) {
        collect_all(engine, s, tags, false);
        wait_for_news(engine, 1);
    }
}

static void errors(void)
{
    struct sums s;
    uint32_t lun;

    open_lun(&lun);
    create(0, lun, 0, -1.0, 4);
    create(1, lun, 0, 500.0, 4);
    create(2, lun, 0, 1e6, 4);
    atomic_store(&told.result, -EIO);
    start(3, &s);
    stop_after(3, &s, 4);
    CHECK_EQUAL(s.completed, 0);
    CHECK_EQUAL(s.errors_of[1], 100); /* the slow one's, each once; */
    /* of the others, once there is no doubt, all tags once in a millisecond */
    for (uint32_t n = 0; n < 3; n += 2)
        CHECK(s.errors_of[n] > 4 * 198 && s.errors_of[n] <= 16 + 4 * 200);
    atomic_store(&told.result, 512);
    start(2, &s);
    stop_after(1, &s, 4);
    CHECK_EQUAL(s.completed, 0);
    CHECK_EQUAL(s.errors_of[1], 50);
    atomic_store(&told.result, 0); /* it comes back */
    start(2, &s);
    stop_after(1, &s, 4);
    CHECK_EQUAL(s.completed_of[1], 50);
    CHECK(s.completed_of[0] > 300000); /* 4 in 1.1 us */
    CHECK_EQUAL(s.errors, 0);
}

static void refused(void)
{
    struct sums s;
    uint32_t lun;

    open_lun(&lun);
    create(0, lun, 0, 2000.0, 4);
    atomic_store(&told.refuse, -EINVAL);
    start(1, &s);
    collect_until_above(&told.calls, 50, &s, 4);
    stop_after(0, &s, 4);
    CHECK_EQUAL(s.completed, 0);
    CHECK_EQUAL(s.errors, s.submitted);
    CHECK_EQUAL(s.errors, 100); /* one subinterval's */
}

static void taken_in_parts(void)
{
    struct sums s;
    uint32_t lun;

    open_lun(&lun);
    create(0, lun, 0, -1.0, 64);
    atomic_store(&told.take, 3);
    atomic_store(&told.delay_ns, 100000);
    start(1, &s);
    struct end end = stop_after(2, &s, 64);
    CHECK_EQUAL((uint64_t)s.submitted, atomic_load(&told.submitted));
    CHECK_EQUAL(end.sums.uncaught, 0);
}

/* A step whose first two results see every submit call refused for now. */
static void refused_at_first(struct sums *s)
{
    atomic_store(&told.refuse, -EAGAIN);
    start(1, s);
    wait_for_news(engine, 1000);
    wait_for_news(engine, 1000);
    atomic_store(&told.refuse, 0);
    collect_until_above(&told.completed, 50, s, 8);
    stop_after(0, s, 8);
}

static void again_from_the_call(void)
{
    struct sums s;
    uint32_t lun;

    open_lun(&lun);
    create(0, lun, 0, 500.0, 8);
    refused_at_first(&s);
    CHECK_EQUAL(s.errors, 0);
}

static void again(void)
{
    struct sums s = {0};
    struct result r;
    uint32_t lun;
    int64_t given_back = 0;

    open_lun(&lun)->nowait = true;
    create(0, lun, 0, 4000.0, 32);
    atomic_store(&told.room, 4);
    atomic_store(&told.delay_ns, 2 * NS_PER_MS);
    start(1, &s);
    engine_stop(engine, 7);
    for (;;) {
        struct end end;
        while (engine_collect(engine, false, &r) == 1) {
            given_back += r.counts[COUNT_EAGAIN];
            add_result(&s, &r, 32);
            result_free(&r);
        }
        if (engine_ended(engine, &end)) {
            CHECK_EQUAL(end.sums.caught + (uint64_t)s.completed + end.sums.dropped,
                        (uint64_t)s.submitted + (uint64_t)s.backlog);
            break;
        }
        wait_for_news(engine, 1000);
    }
    CHECK(given_back > 0);
    CHECK(given_back <= 800 / 20); /* the cap came down: few I/Os are refused, and not again and again */
    CHECK_EQUAL(s.errors, 0);
    CHECK_EQUAL(s.completed, 4 * 199); /* 4 in each 2 ms of 400 ms; the last are in flight */
}

static void always_again(void)
{
    struct sums s;
    uint32_t lun;

    open_lun(&lun)->nowait = true;
    create(0, lun, 0, 2000.0, 8);
    atomic_store(&told.room, 1);
    engine->luns[lun]->nowait = true;
    atomic_store(&told.delay_ns, 100000);
    start(1, &s);
    collect_until_above(&told.completed, 100, &s, 8);
    stop_after(0, &s, 8);
    CHECK_EQUAL(s.errors, 0);
}

static void full_queue(void)
{
    struct sums s;
    uint32_t lun;
    struct lun *l = open_lun(&lun);

    l->queue = (struct queue){.nr_requests = 6};
    create(0, lun, 0, -1.0, 16);
    create(1, lun, 0, 5000.0, 16);
    atomic_store(&told.delay_ns, NS_PER_MS);
    start(2, &s);
    collect_until_above(&told.completed, 100, &s, 16);
    stop_after(0, &s, 16);
    CHECK_EQUAL(atomic_load(&told.most_in_flight), 6);
}

/* A device whose hardware queues list the cores so: 0 and 1 the first, 2 the second, none of them 3. Each takes 12
 * requests. */
static struct lun *open_with_queues(uint32_t *handle)
{
    static const uint16_t set_of[] = {1, 1, 2, 0};
    struct lun *l = open_lun(handle);

    l->queue = (struct queue){.nr_requests = 12};
    l->queue.hw_queues = (struct hw_queues){.set_of = malloc(sizeof set_of), .cores = 4, .sets = 2};
    CHECK(l->queue.hw_queues.set_of);
    memcpy(l->queue.hw_queues.set_of, set_of, sizeof set_of);
    return l;
}

/* An instance of `tags` tags on each thread, the thread being on core `cores[n]`. Between them they fill so many
 * hardware queues, each time for a millisecond and the two calls. */
static void on_cores(const int *cores, uint32_t threads, uint32_t tags, int64_t queues)
{
    struct sums s;
    uint32_t lun;

    open_with_queues(&lun);
    for (uint32_t n = 0; n < threads; n++) {
        engine->threads[n].cpu = cores[n];
        create(n, lun, n, -1.0, tags);
    }
    atomic_store(&told.delay_ns, NS_PER_MS);
    start(threads, &s);
    collect_until_above(&told.completed, 0, &s, tags);
    stop_after(2, &s, tags);
    CHECK(s.completed > 0);
    CHECK_EXACT(s.completed, queues * 12 * (3 * LENGTH_NS / (NS_PER_MS + BATCH_NS + POLL_NS)));
}

/* What all threads that may meet in one hardware queue have in flight at most. */
static uint64_t most_there(void)
{
    return atomic_load(&told.most_in_one_room);
}

static void other_queues(void)
{
    on_cores((const int[]){1, 2}, 2, 16, 2);
    CHECK_EQUAL(atomic_load(&told.most_in_flight), 12); /* each */
}

static void same_queue(void)
{
    on_cores((const int[]){0, 1, 2}, 3, 16, 2);
    CHECK(engine->threads[0].shares[0].holding.room == engine->threads[1].shares[0].holding.room);
    CHECK(engine->threads[0].shares[0].holding.room != engine->threads[2].shares[0].holding.room);
    CHECK(most_there() <= 12);
    CHECK_EXACT(most_there(), 12);
    CHECK_EXACT(atomic_load(&told.most_in_flight), 12); /* of the third, which shares with nobody */
}

static void not_pinned(void)
{
    on_cores((const int[]){-1, -1}, 2, 16, 1);
    CHECK(most_there() <= 12);
}

/* Whoever may submit to any queue may meet each of the others there: all share what one takes. */
static void one_not_pinned(void)
{
    on_cores((const int[]){0, 1, 2, 3}, 4, 16, 1);
    CHECK(most_there() <= 12);
}

/* Hardware queues may share their tags, and others may have them all: who gets EAGAIN with nothing in flight still asks
 * without waiting afterwards. */
static void filled_by_others(void)
{
    struct sums s;
    uint32_t lun;

    open_with_queues(&lun)->nowait = true;
    create(0, lun, 0, 500.0, 8);
    refused_at_first(&s);
    CHECK(engine->by_number[0]->nowait);
}

/* I/Os that are in flight while the block size changes keep their own: none is short, and the queue, which takes 4 KiB
 * at once, is never over-full. */
static void resized(void)
{
    struct parameters p = {.setting = {.iops = -1.0, .fraction_read = 0.5, .maxtags = 16}};
    struct sums s;
    uint32_t lun;
    struct lun *l = open_lun(&lun);

    l->queue = (struct queue){.nr_requests = 24, .max_bytes = 4096};
    create(0, lun, 0, -1.0, 16);
    atomic_store(&told.delay_ns, 3 * NS_PER_MS);
    start(1, &s);
    collect_until_above(&told.completed, 0, &s, 16);
    engine_stop(engine, 7);
    for (uint32_t turn = 1; turn < 40; turn++) {
        struct timespec pause = {.tv_nsec = 7000000};
        struct edit edit = {.number = 0, .parameters = p};
        edit.parameters.setting.blocksize = 4096u << turn % 4;
        edit.parameters.setting.range_start = turn % 3 * MOST_BLOCKSIZE;
        edit.parameters.setting.range_end = turn % 3 ? 1 << 20 : 0;
        int result = engine_edit(engine, turn, &edit, 1);
        CHECK(result == 0 || result == -EAGAIN);
        nanosleep(&pause, NULL);
        collect_all(engine, &s, 16, false);
    }
    finish(engine, &s, 16);
    CHECK_EQUAL(s.errors, 0);
    CHECK(s.completed > 0);
    CHECK_SIMULATED(s.completed > 900); /* of the 2,133 of 4 KiB that 16 tags could do, and a quarter of 32 KiB */
    CHECK_SIMULATED(s.bytes > 3 * 4096 * s.completed);
    CHECK(atomic_load(&told.most_requests) <= 24);
    CHECK_EXACT(atomic_load(&told.most_requests), 24);
}

enum { HUNG_IOPS = 20000, GOOD_IOPS = 2000 };

/* A step of the two, until so many I/Os have completed. */
static struct end beside_the_hung_one(uint64_t completed, struct sums *s)
{
    uint64_t before = atomic_load(&told.completed);

    start(2, s);
    collect_until_above(&told.completed, before + completed, s, 256);
    return stop_after(0, s, 256);
}

static void hung(void)
{
    struct sums s;
    uint32_t bad, good;
    struct lun *lun = open_lun(&bad);

    open_lun(&good);
    engine->step.catch_ns = 100 * NS_PER_MS;
    create(0, bad, 0, HUNG_IOPS, 256);
    create(1, good, 0, GOOD_IOPS, 16);
    atomic_store(&told.hung, lun);
    struct end end = beside_the_hung_one(800, &s);
    uint64_t length_ns = s.end_ns - engine->step.start_ns;
    CHECK_EQUAL(s.completed, length_ns * GOOD_IOPS / NS_PER_S);
    CHECK_EQUAL(s.in_flight - (int64_t)end.sums.caught, 256);
    CHECK_EQUAL(end.sums.uncaught, 256);
    uint64_t until_the_end_ns = s.end_ns - atomic_load(&told.hung_since_ns);
    CHECK_EQUAL(end.sums.oldest_uncaught_ns, until_the_end_ns + engine->step.catch_ns + BATCH_NS);
    CHECK_EQUAL((uint64_t)s.backlog + 256, length_ns * HUNG_IOPS / NS_PER_S);
    CHECK_EQUAL(engine_delete(engine, 0), -EBUSY);

    beside_the_hung_one(100, &s); /* its tags are in the kernel still; nothing of it counts in this step */
    length_ns = s.end_ns - engine->step.start_ns;
    CHECK_EQUAL(s.completed, length_ns * GOOD_IOPS / NS_PER_S);
    atomic_store(&told.hung, NULL); /* it comes back */
    end = beside_the_hung_one(300, &s);
    CHECK_EQUAL(end.sums.uncaught, 0);
    CHECK_EQUAL(engine_delete(engine, 0), 0);
}

/* More than one look finds, all of them back before anybody asks: none is missing. */
static void came_back(void)
{
    struct sums s;
    uint32_t lun;

    engine->step.catch_ns = 50 * NS_PER_MS;
    atomic_store(&told.hung, open_lun(&lun));
    create(0, lun, 0, -1.0, 256);
    start(1, &s);
    CHECK_EQUAL(stop_after(0, &s, 256).sums.uncaught, 256);
    atomic_store(&told.hung, NULL);
    CHECK_EQUAL(engine_delete(engine, 0), 0);
}

/* What was in flight at the end of a step may have been written: its tag never sends that data again. */
static void new_data(void)
{
    struct sums s;
    uint32_t lun;

    engine->step.catch_ns = NS_PER_MS;
    atomic_store(&told.hung, open_lun(&lun));
    create(0, lun, 0, -1.0, 16);
    start(1, &s);
    CHECK_EQUAL(stop_after(0, &s, 16).sums.uncaught, 16);
    start(1, &s);
    atomic_store(&told.hung, NULL);
    atomic_store(&told.delay_ns, NS_PER_MS);
    stop_after(1, &s, 16);
    CHECK(atomic_load(&told.written) >= 64);
    for (uint32_t n = 0; n < 64; n++)
        for (uint32_t before = 0; before < n; before++)
            CHECK(atomic_load(&told.data[n]) != atomic_load(&told.data[before]));
}

static void died(void)
{
    struct sums s;
    uint32_t lun, thread;
    char words[64];

    open_lun(&lun);
    create(0, lun, 0, 1000.0, 4);
    create(1, lun, 1, 0.0, 4);
    start(2, &s);
    wait_for_news(engine, 1000);
    atomic_store(&told.refuse, -EFAULT);
    struct end end = finish(engine, &s, 4);
    CHECK_EQUAL(end.reason, END_DIED);
    CHECK(s.last);
    CHECK(engine_dying_words(engine, &thread, words, sizeof words));
    CHECK_EQUAL(thread, 0);
    CHECK(strstr(words, "submission"));
    CHECK(!engine_dying_words(engine, &thread, words, sizeof words));
    CHECK_EQUAL(engine_delete(engine, 1), -ESRCH);
}

enum { BLOCK = 4096, FROM = 16, BEHIND = 48 }; /* bytes; blocks */

static struct extent parts[] = {{0, 8 * BLOCK}, {FROM * BLOCK, BEHIND * BLOCK}};
static const struct extents agreed = {.list = parts, .count = 2};

/* Writes of an instance whose addresses are not what its setting says, as if the engine were wrong. `first`, `blocks`:
 * where they really lie. How many I/Os were submitted before the thread died. */
static int64_t stray_writes(uint64_t first, uint64_t blocks)
{
    struct parameters p = {.fixed.iosequencer = SEQUENTIAL,
                           .setting = {.iops = -1.0,
                                       .fraction_read = 0.0,
                                       .maxtags = 4,
                                       .blocksize = BLOCK,
                                       .range_start = FROM * BLOCK,
                                       .range_end = BEHIND * BLOCK}};
    struct sums s;
    uint32_t lun, thread;
    char words[160];

    open_lun(&lun);
    CHECK_EQUAL(engine_create(engine, 0, lun, 0, (struct ceiling){4, BLOCK}, &agreed, &p), 0);
    engine->by_number[0]->sequencer.first = first;
    engine->by_number[0]->sequencer.blocks = blocks;
    start(1, &s);
    struct end end = finish(engine, &s, 4);
    CHECK_EQUAL(end.reason, END_DIED);
    CHECK(engine_dying_words(engine, &thread, words, sizeof words));
    CHECK(strstr(words, "workload instance 0 would have written 4096 bytes at"));
    CHECK(strstr(words, "outside of what was agreed to"));
    CHECK_EQUAL(s.submitted, (long long)atomic_load(&told.submitted));
    return s.submitted;
}

/* Whatever the engine does wrong, a write outside of its extent is not submitted: not behind it, */
static void stray_behind(void)
{
    int64_t submitted = stray_writes(FROM, BEHIND - FROM + 1);

    CHECK_EQUAL(submitted, BEHIND - FROM); /* what shares a batch with the wrong one does not go either */
}

/* not before it, */
static void stray_before(void)
{
    CHECK_EQUAL(stray_writes(FROM - 1, 2), 0);
}

/* nor in another extent, which is agreed to, but not this range's; */
static void stray_elsewhere(void)
{
    CHECK_EQUAL(stray_writes(0, 8), 0);
}

/* nor where an address is beyond all bounds; */
static void stray_far(void)
{
    CHECK_EQUAL(stray_writes((UINT64_MAX / BLOCK) - 1, 1), 0);
}

/* nor of a mix, whatever its part would do there; */
static void stray_in_a_mix(enum op op)
{
    struct parameters p = {
        .fixed.iosequencer = SEQUENTIAL,
        .setting = {.iops = -1.0, .maxtags = 4, .range_start = FROM * BLOCK, .range_end = BEHIND * BLOCK},
    };
    struct sums s;
    uint32_t lun;

    p.setting.parts_count = 2;
    p.setting.parts[0] = (struct mix_part){.share = 0.5, .bytes = 2 * BLOCK, .op = OP_READ};
    p.setting.parts[1] = (struct mix_part){.share = 0.5, .bytes = BLOCK, .op = op};
    open_lun(&lun);
    CHECK_EQUAL(engine_create(engine, 0, lun, 0, (struct ceiling){4, 2 * BLOCK}, &agreed, &p), 0);
    engine->by_number[0]->mix->range.piece = UINT64_MAX / 2;
    start(1, &s);
    CHECK_EQUAL(finish(engine, &s, 4).reason, END_DIED);
    CHECK_EQUAL(s.submitted, (long long)atomic_load(&told.submitted));
    CHECK(s.submitted >= (BEHIND - FROM) / 2 - 4); /* reads go on, wherever they are sent */
}

static void stray_write(void)
{
    stray_in_a_mix(OP_WRITE);
}

static void stray_trim(void)
{
    stray_in_a_mix(OP_TRIM);
}

static void stray_zeroes(void)
{
    stray_in_a_mix(OP_WRITE_ZEROES);
}

/* nor at all where nothing was agreed to. Reads go wherever they are sent. */
static void stray_direction(void)
{
    struct parameters p = {.setting = {.iops = -1.0, .fraction_read = 1.0, .maxtags = 4, .blocksize = BLOCK}};
    static const struct extents nothing = {0};
    struct sums s;
    uint32_t lun, thread;
    char words[160];

    open_lun(&lun);
    CHECK_EQUAL(engine_create(engine, 0, lun, 0, (struct ceiling){4, BLOCK}, &nothing, &p), 0);
    start(1, &s);
    engine_stop(engine, 0);
    CHECK_EQUAL(finish(engine, &s, 4).reason, END_COMMANDED);
    CHECK_EQUAL(s.completed, 4 * (LENGTH_NS / (BATCH_NS + POLL_NS)));
    engine->by_number[0]->parameters.setting.fraction_read = 0.0;
    int64_t before = (int64_t)atomic_load(&told.submitted);
    start(1, &s);
    CHECK_EQUAL(finish(engine, &s, 4).reason, END_DIED);
    CHECK(engine_dying_words(engine, &thread, words, sizeof words));
    CHECK_EQUAL(atomic_load(&told.submitted), before);
}

/* A thread that is asleep, or frozen with the whole process, when the lease ends submits nothing afterwards. */
static void lease_while_deaf(void)
{
    struct sums s;
    uint32_t lun;

    CHECK_EQUAL(engine_spin(engine, SPIN_OFF), 0);
    open_lun(&lun);
    create(0, lun, 0, 10000.0, 4);
    create(1, lun, 0, -1.0, 4);
    atomic_store(&told.delay_ns, NS_PER_MS);
    start(2, &s);
    wait_for_news(engine, 1000);
    uint64_t lease_ns = clock_now() + 20 * NS_PER_MS;
    engine_set_lease(engine, lease_ns);
    struct timespec pause = {.tv_nsec = 10000000};
    nanosleep(&pause, NULL);
    atomic_store(&told.deaf_until_ns, lease_ns + 300 * NS_PER_MS);
    atomic_store(&told.delay_ns, 5 * NS_PER_MS);
    nanosleep(&pause, NULL);
    uint64_t before = atomic_load(&told.submitted);
    struct end end = finish(engine, &s, 4);
    CHECK_EQUAL(end.reason, END_LEASE);
    CHECK_EQUAL(atomic_load(&told.submitted), before);
    CHECK_EQUAL(s.end_ns, lease_ns);
}

/* One thread hangs in a submit call for several lengths: the other goes on, and nothing is lost. */
static void stuck_thread(void)
{
    struct sums s;
    struct result r;
    uint32_t lun, forced = 0;

    open_lun(&lun);
    create(0, lun, 0, 2000.0, 4);
    create(1, lun, 1, 2000.0, 4);
    start(2, &s);
    wait_for_news(engine, 1000);
    atomic_store(&told.stuck_thread, 1);
    while (!atomic_load(&told.is_stuck))
        wait_for_news(engine, 1);
    for (int turn = 0; turn < 200; turn++) {
        if (turn == 100)
            atomic_store(&told.stuck_thread, 0);
        if (engine_collect(engine, turn < 100, &r) == 1) {
            CHECK_SIMULATED(r.missing_count <= 1);
            forced += r.missing_count;
            add_result(&s, &r, 4);
            result_free(&r);
        }
        wait_for_news(engine, 4);
    }
    struct end end = stop_after(0, &s, 4);
    CHECK(forced > 0);
    CHECK_EXACT(forced, 8); /* 400 ms */
    CHECK_EQUAL(end.sums.caught, s.in_flight);
    CHECK_EQUAL((uint64_t)s.submitted, atomic_load(&told.submitted));
}

/* A thread that never comes back: the step ends all the same, and what it holds is told. */
static void held_thread(void)
{
    struct sums s;
    uint32_t lun;

    engine->step.catch_ns = 50 * NS_PER_MS;
    open_lun(&lun);
    create(0, lun, 0, 2000.0, 4);
    create(1, lun, 1, 2000.0, 4);
    start(2, &s);
    wait_for_news(engine, 1000);
    atomic_store(&told.stuck_thread, 1);
    while (!atomic_load(&told.is_stuck))
        wait_for_news(engine, 1);
    engine_halt(engine);
    wait_for_news(engine, 1000);
    struct end end = finish(engine, &s, 4);
    CHECK(end.sums.uncaught >= 1);
    CHECK_EXACT(end.sums.uncaught, 1);
    CHECK(end.sums.oldest_uncaught_ns > NS_PER_S); /* as long as a thread may take (HELD_NS) */
    CHECK_EQUAL(engine_delete(engine, 0), -EBUSY);
    atomic_store(&told.stuck_thread, 0);
}

/* The commanding thread is put aside from the end on, for longer than that may take: what the others handed over
 * meanwhile counts. So does a machine that stands still just then. */
static void stalled_at_the_end(void)
{
    struct sums s;
    struct end end;
    uint32_t lun;

    engine->step.catch_ns = 50 * NS_PER_MS;
    open_lun(&lun);
    create(0, lun, 0, 2000.0, 4);
    start(1, &s);
    wait_for_news(engine, 1000);
    engine_halt(engine);
    sleep_until(clock_now() + 3 * NS_PER_S);
    CHECK(!engine_ended(engine, &end));
    end = finish(engine, &s, 4);
    CHECK(s.last);
    CHECK_EQUAL(end.sums.uncaught, 0);
}

static void collect_one(struct sums *s, bool force, struct result *r, uint32_t maxtags)
{
    while (engine_collect(engine, force, r) != 1)
        wait_for_news(engine, 1);
    add_result(s, r, maxtags);
}

/* Two threads are late by turns, so that at the second boundary the one has no free buffer and the other is not there:
 * the result is of its subinterval all the same. */
static void late_by_turns(void)
{
    struct sums s;
    struct result r;
    uint32_t lun;

    open_lun(&lun);
    create(0, lun, 0, 2000.0, 4);
    create(1, lun, 1, 2000.0, 4);
    start(2, &s);
    uint64_t start_ns = engine->step.start_ns;
    for (uint32_t k = 0; k < 2; k++) {
        sleep_until(start_ns + k * LENGTH_NS + LENGTH_NS / 2);
        atomic_store(&told.stuck_thread, k + 1);
        sleep_until(start_ns + (k + 1) * LENGTH_NS + LENGTH_NS / 4);
        collect_one(&s, true, &r, 4);
        CHECK_EQUAL(r.subinterval, k);
        CHECK_EQUAL(r.length_ns, LENGTH_NS);
        CHECK(r.missing_count >= 1);
        result_free(&r);
        atomic_store(&told.stuck_thread, 0);
    }
    struct end end = stop_after(4, &s, 4);
    CHECK_EQUAL(s.end_ns, start_ns + 5 * LENGTH_NS);
    CHECK_EQUAL(s.due, 2 * 2000 / 4);
    CHECK_EQUAL(end.sums.uncaught, 0);
}

static struct parameters often(enum iosequencer iosequencer)
{
    struct setting setting = {.iops = 100000.0, .fraction_read = 1.0, .maxtags = 64, .blocksize = 4096};

    return (struct parameters){.fixed.iosequencer = iosequencer, .setting = setting};
}

/* A thread is put aside for longer than it can count due times in one pass: all of them are counted, each in the
 * subinterval in which it fell due. */
static void stalled(enum iosequencer iosequencer, int64_t tolerance)
{
    struct sums s;
    struct result r;
    uint32_t lun;
    struct parameters p = often(iosequencer);
    uint64_t length_ns = 10 * LENGTH_NS;

    open_lun(&lun);
    CHECK_EQUAL(engine_create(engine, 0, lun, 0, (struct ceiling){64, 4096}, &everywhere, &p), 0);
    engine_set_lease(engine, clock_now() + 60 * NS_PER_S);
    go(engine, 1, 1, length_ns, &s);
    engine_stop(engine, 1);
    uint64_t start_ns = engine->step.start_ns;
    sleep_until(start_ns + length_ns / 2);
    atomic_store(&told.stuck_thread, 1);
    sleep_until(start_ns + 2 * length_ns + length_ns / 10);
    atomic_store(&told.stuck_thread, 0);
    for (uint32_t k = 0; k < 2; k++) {
        collect_one(&s, false, &r, 64);
        CHECK(llabs(r.counts[COUNT_DUE] - 50000) <= tolerance);
        result_free(&r);
    }
    finish(engine, &s, 64);
}

static void stalled_even(void)
{
    stalled(RANDOM_STEADY, 0);
}

static void stalled_exponential(void)
{
    stalled(RANDOM_INDEPENDENT, 5 * 224); /* standard deviations */
}

/* What fell due while a thread was put aside is owed, although an edit was made meanwhile. */
static void edited_while_stalled(void)
{
    struct sums s;
    uint32_t lun;
    struct edit edit = {.number = 0, .parameters = often(RANDOM_INDEPENDENT)};

    open_lun(&lun);
    CHECK_EQUAL(engine_create(engine, 0, lun, 0, (struct ceiling){64, 4096}, &everywhere, &edit.parameters), 0);
    engine_set_lease(engine, clock_now() + 60 * NS_PER_S);
    go(engine, 1, 1, 20 * LENGTH_NS, &s);
    engine_stop(engine, 0);
    uint64_t start_ns = engine->step.start_ns;
    sleep_until(start_ns + LENGTH_NS);
    atomic_store(&told.stuck_thread, 1);
    sleep_until(start_ns + 16 * LENGTH_NS);
    edit.parameters.setting.iops = 0.0;
    CHECK_EQUAL(engine_edit(engine, 1, &edit, 1), 0);
    atomic_store(&told.stuck_thread, 0);
    finish(engine, &s, 64);
    CHECK(s.due > 0);
    CHECK_SIMULATED(llabs(s.due - 80000) < 5 * 283); /* standard deviations; of 100,000 without the edit */
}

/* Posts a rate for instance 0, and waits until the thread has it: how many I/Os were discarded. */
static uint64_t set_rate(uint32_t number, struct parameters p, double iops, struct sums *s)
{
    struct edit edit = {.number = 0, .parameters = p};
    uint64_t taken_ns, discarded;

    edit.parameters.setting.iops = iops;
    while (engine_edit(engine, number, &edit, 1) == -EAGAIN)
        wait_for_news(engine, 1);
    while (!engine_edited(engine, &number, &taken_ns, &discarded)) {
        collect_all(engine, s, 64, false);
        wait_for_news(engine, 1);
    }
    return discarded;
}

/* Collects until then: a thread has two buffers. */
static void collect_until(uint64_t at_ns, struct sums *s)
{
    while (clock_now() < at_ns) {
        collect_all(engine, s, 64, false);
        wait_for_news(engine, 1);
    }
}

/* Nothing goes to a paused LUN: neither what is overdue nor what the kernel gave back, whenever it does. What it gave
 * back counts as submitted in a subinterval before. */
static void paused(void)
{
    struct sums s;
    uint32_t lun;

    open_with_queues(&lun)->nowait = true;
    create(0, lun, 0, 1e6, 32);
    struct parameters p = engine->by_number[0]->parameters;
    atomic_store(&told.room, 4);
    atomic_store(&told.delay_ns, 6 * LENGTH_NS); /* what was not given back is still there when the pause comes */
    start(1, &s);
    collect_until_above(&told.submitted, 4, &s, 64);
    collect_until(clock_now() + 2 * LENGTH_NS, &s);
    uint64_t discarded = set_rate(1, p, 0.0, &s);
    uint64_t submitted = atomic_load(&told.submitted);
    while (s.withdrawn == 0 || s.in_flight > 0)
        collect_until(clock_now() + LENGTH_NS, &s);
    CHECK(s.withdrawn <= 32);
    CHECK_EQUAL(atomic_load(&told.submitted), submitted);
    CHECK_EQUAL(s.backlog, 0);
    CHECK_EQUAL(s.errors, 0);
    CHECK_SIMULATED(discarded > 2 * 50000); /* of two lengths */
    CHECK_EQUAL(s.expired, 0);
    CHECK_EQUAL(s.dropped, (int64_t)discarded + s.withdrawn);
    CHECK_EQUAL(set_rate(2, p, 100.0, &s), 0);
    collect_until_above(&told.submitted, submitted, &s, 64);
    uint64_t halted_ns = clock_now();
    engine_halt(engine);
    finish(engine, &s, 64);
    CHECK_SIMULATED(clock_now() < halted_ns + 7 * LENGTH_NS); /* nothing that was given back is waited for */
}

/* A mix of all operations and of four sizes, or none. */
static void set_parts(struct setting *s, uint64_t random)
{
    s->parts_count = random % 4 ? 2 + (uint32_t)(random >> 32) % (MOST_PARTS - 1) : 0;
    memset(s->parts, 0, sizeof s->parts);
    for (uint32_t n = 0; n < s->parts_count; n++)
        s->parts[n] = (struct mix_part){
            .share = 1.0 / s->parts_count,
            .bytes = 4096u << (random >> n % 32) % 4,
            .op = n < 2 ? n : (uint32_t)(random >> 2 * (n % 32)) % OPERATIONS,
        };
}

static void create_skewed(uint32_t number, uint32_t lun, struct fixed fixed, double iops, uint32_t tags, double skew)
{
    struct parameters p = {
        .fixed = fixed,
        .setting = {.iops = iops, .fraction_read = 0.5, .maxtags = tags, .blocksize = 4096, .skew = skew},
    };

    CHECK_EQUAL(engine_create(engine, number, lun, 0, (struct ceiling){tags, MOST_BLOCKSIZE}, &everywhere, &p), 0);
}

/* Once nothing fails any more, each of two that are held in proportion goes on, unless it has ended. */
static int64_t go_on(uint32_t number, struct parameters p, struct sums *s)
{
    p.setting.skew = 2.0;
    atomic_store(&told.result, 0);
    atomic_store(&told.refuse, 0);
    atomic_store(&told.room, 0);
    atomic_store(&told.delay_ns, 100000);
    int64_t discarded = (int64_t)set_rate(number, p, -1.0, s);
    uint64_t first = atomic_load(&told.issued_of[0]), second = atomic_load(&told.issued_of[1]);
    uint64_t until_ns = clock_now() + NS_PER_S;
    while (atomic_load(&told.issued_of[1]) < second + 100 ||
           (atomic_load(&told.issued_of[0]) < first + 60 && p.fixed.until.what == ENDS_NEVER)) {
        CHECK(clock_now() < until_ns);
        collect_all(engine, s, 64, false);
        wait_for_news(engine, 1);
    }
    return discarded;
}

/* due = completed + failed + discarded + backlog + in flight, whatever is edited and whatever fails: at the end what
 * the thread itself finds waiting and in flight must be what the results say. */
static void conserve_in(struct fixed fixed, double highest_iops, bool mixes, bool skewed)
{
    const double rates[] = {-1.0, 0.0, 50.0, 5000.0, 1e6, highest_iops};
    int64_t expired = 0, ended = 0, flushes = 0;
    static const int64_t results[] = {0, 0, 0, -EIO, 512};
    static const int refusals[] = {0, 0, 0, -EAGAIN, -EINVAL};
    uint64_t random = 4711;
    uint32_t lun, number = 0;

    open_lun(&lun)->nowait = true;
    struct parameters p = {
        .fixed = fixed,
        .setting = {.iops = 1e6, .fraction_read = 0.5, .maxtags = 32, .blocksize = 4096},
    };
    CHECK_EQUAL(engine_create(engine, 0, lun, 0, (struct ceiling){32, MOST_BLOCKSIZE}, &everywhere, &p), 0);
    create_skewed(1, lun, (struct fixed){0}, skewed ? -1.0 : 1e5, 4, skewed ? 3.0 : 0.0);
    for (uint32_t step = 0; step < 12; step++) {
        struct sums s;
        int64_t discarded = 0;
        start(2, &s);
        for (uint32_t turn = 0; turn < 12; turn++) {
            atomic_store(&told.result, results[random_below(&random, 5)]);
            atomic_store(&told.refuse, refusals[random_below(&random, 5)]);
            atomic_store(&told.room, (uint32_t)random_below(&random, 8));
            atomic_store(&told.take, (int)random_below(&random, 6));
            atomic_store(&told.delay_ns, random_below(&random, 4 * NS_PER_MS));
            sleep_until(clock_now() + random_below(&random, LENGTH_NS / 4));
            p.setting.maxtags = 1 + (uint32_t)random_below(&random, 32);
            if (mixes)
                set_parts(&p.setting, random_next(&random));
            if (skewed)
                p.setting.skew = (double)random_below(&random, 3);
            discarded += (int64_t)set_rate(++number, p, rates[random_below(&random, 6)], &s);
        }
        if (skewed)
            discarded += go_on(++number, p, &s);
        bool cool = step % 3 == 1;
        if (step % 3 == 0)
            engine_halt(engine);
        else if (step % 3 == 2)
            engine_set_lease(engine, clock_now() + LENGTH_NS / 3);
        else
            engine_cooldown(engine, (uint32_t)((clock_now() - engine->step.start_ns) / LENGTH_NS) + 1);
        if (cool)
            engine_stop(engine, (uint32_t)((clock_now() - engine->step.start_ns) / LENGTH_NS) + 4);
        struct end end = finish(engine, &s, 64);
        CHECK(s.dropped >= discarded);
        CHECK_EQUAL(end.sums.uncaught, 0);
        CHECK_EQUAL(end.sums.caught + end.sums.failed + end.sums.dropped, (uint64_t)(s.in_flight + s.backlog));
        expired += s.expired;
        ended += s.ended_ns_of[0] > 0;
        flushes += s.flushes;
        if (fixed.until.what == ENDS_IOS && !flush_is_wanted(&fixed))
            CHECK_EQUAL(s.left_of[0], (int64_t)fixed.until.amount - s.spent_of[0]);
    }
    CHECK((expired > 0) == (fixed.drop_after_ns > 0));
    CHECK((flushes > 0) == flush_is_wanted(&fixed));
    CHECK(atomic_load(&told.most_flushing) <= 32);
    CHECK(fixed.until.what == ENDS_NEVER ? ended == 0 : ended > 0 && (skewed || ended < 12));
}

static void conserve_fixed(struct fixed fixed, double highest_iops)
{
    conserve_in(fixed, highest_iops, false, false);
}

static void conserve(uint64_t drop_after_ns, double highest_iops)
{
    conserve_fixed((struct fixed){.drop_after_ns = drop_after_ns,
                                  .iosequencer = drop_after_ns % 2 ? RANDOM_INDEPENDENT : RANDOM_STEADY},
                   highest_iops);
}

static void conserved_until(void)
{
    for (uint64_t what = ENDS_TIME; what <= ENDS_WRITTEN; what++) {
        uint64_t amount = what == ENDS_TIME  ? 2 * LENGTH_NS
                          : what == ENDS_IOS ? 150
                                             : 150 * 4096 / (what == ENDS_BYTES ? 1 : 2);
        conserve_fixed((struct fixed){.until = {what, amount},
                                      .think_ns = what % 2 * 20000,
                                      .iosequencer = what / 2 ? RANDOM_INDEPENDENT : RANDOM_STEADY},
                       1e6);
        CHECK_EQUAL(engine_delete(engine, 0), 0);
        CHECK_EQUAL(engine_delete(engine, 1), 0);
    }
}

static void create_until(uint32_t lun, double iops, uint32_t tags, uint64_t think_ns, uint64_t ios)
{
    struct parameters p = {
        .fixed = {.until = {ENDS_IOS, ios}, .think_ns = think_ns},
        .setting = {.iops = iops, .fraction_read = 1.0, .maxtags = tags, .blocksize = 4096},
    };

    CHECK_EQUAL(engine_create(engine, 0, lun, 0, (struct ceiling){64, 4096}, &everywhere, &p), 0);
}

/* An I/O that fails is spent, however it fails; with the last of them its instance has ended. */
static void ended_by_errors(void)
{
    static const struct {
        int64_t result;
        int refuse;
        double iops;
        uint64_t think_ns;
    } ways[] = {{-EIO, 0, -1.0, 0},
                {512, 0, 2000.0, 0},
                {0, -EINVAL, -1.0, 0},
                {0, -EINVAL, 2000.0, 0},
                {-EIO, 0, -1.0, NS_PER_MS}};
    struct sums s;
    uint32_t lun;

    open_lun(&lun);
    for (uint32_t n = 0; n < sizeof ways / sizeof *ways; n++) {
        create_until(lun, ways[n].iops, 4, ways[n].think_ns, 30);
        atomic_store(&told.result, ways[n].result);
        atomic_store(&told.refuse, ways[n].refuse);
        start(1, &s);
        stop_after(2, &s, 4);
        CHECK_EQUAL(s.errors, 30);
        CHECK_EQUAL(s.completed, 0);
        CHECK_EQUAL(s.left_of[0], 0);
        CHECK(s.ended_ns_of[0] > 0);
        CHECK_EQUAL(engine_delete(engine, 0), 0);
    }
}

/* The last I/O is long in flight: it has ended when that completes, and not before. */
static void ended_late(void)
{
    struct sums s;
    uint32_t lun;

    open_lun(&lun);
    atomic_store(&told.delay_ns, 2 * LENGTH_NS + LENGTH_NS / 2);
    create_until(lun, -1.0, 4, 0, 3);
    start(1, &s);
    uint64_t start_ns = engine->step.start_ns;
    stop_after(4, &s, 4);
    CHECK_EQUAL(s.completed, 3);
    CHECK_SIMULATED(s.ended_ns_of[0] >= start_ns + 2 * LENGTH_NS + LENGTH_NS / 2);
    CHECK_SIMULATED(s.ended_ns_of[0] < start_ns + 2 * LENGTH_NS + LENGTH_NS / 2 + 10 * BATCH_NS);
}

/* What the kernel gave back, and a pause discarded, is still to be done. */
static void ended_after_a_pause(void)
{
    const double rates[] = {1e6, -1.0};
    struct sums s;
    uint32_t lun;

    open_lun(&lun)->nowait = true;
    for (uint32_t n = 0; n < 2; n++) {
        create_until(lun, rates[n], 32, 0, 32);
        struct parameters p = engine->by_number[0]->parameters;
        atomic_store(&told.room, 4);
        atomic_store(&told.delay_ns, 3 * LENGTH_NS);
        uint64_t submitted = atomic_load(&told.submitted);
        start(1, &s);
        collect_until_above(&told.submitted, submitted + 3, &s, 64);
        collect_until(clock_now() + 2 * LENGTH_NS, &s);
        set_rate(1 + 4 * n, p, 0.0, &s);
        while (s.in_flight > 0)
            collect_until(clock_now() + LENGTH_NS, &s);
        CHECK(s.withdrawn > 0);
        CHECK_EQUAL(s.left_of[0], 32 - s.spent_of[0]);
        CHECK_EQUAL(s.ended_ns_of[0], 0);
        atomic_store(&told.room, 0);
        atomic_store(&told.delay_ns, 0);
        set_rate(2 + 4 * n, p, rates[n], &s);
        while (s.ended_ns_of[0] == 0)
            collect_until(clock_now() + LENGTH_NS, &s);
        CHECK_EQUAL(s.completed, 32);
        set_rate(3 + 4 * n, p, 0.0, &s);
        set_rate(4 + 4 * n, p, -1.0, &s);
        collect_until(clock_now() + 2 * LENGTH_NS, &s);
        engine_halt(engine);
        finish(engine, &s, 64);
        CHECK_EQUAL(s.completed, 32);
        CHECK_EQUAL(engine_delete(engine, 0), 0);
    }
}

/* However long a thread was put aside, no more falls due than is to be done. */
static void ended_after_a_stall(void)
{
    struct sums s;
    uint32_t lun;

    open_lun(&lun);
    for (uint64_t gaps = RANDOM_STEADY; gaps <= RANDOM_INDEPENDENT; gaps++) {
        struct parameters p = often((enum iosequencer)gaps);
        p.fixed.until = (struct until){ENDS_IOS, 30000};
        CHECK_EQUAL(engine_create(engine, 0, lun, 0, (struct ceiling){64, 4096}, &everywhere, &p), 0);
        engine_set_lease(engine, clock_now() + 9000 * NS_PER_S);
        go(engine, 1, 1, 20 * LENGTH_NS, &s);
        sleep_until(engine->step.start_ns + LENGTH_NS);
        atomic_store(&told.stuck_thread, 1);
        sleep_until(engine->step.start_ns + 7200 * NS_PER_S);
        atomic_store(&told.stuck_thread, 0);
        while (s.ended_ns_of[0] == 0)
            collect_until(clock_now() + LENGTH_NS, &s);
        engine_halt(engine);
        finish(engine, &s, 64);
        CHECK_EQUAL(s.due, 30000);
        CHECK_EQUAL(s.completed, 30000);
        CHECK_EQUAL(engine_delete(engine, 0), 0);
    }
}

static void conserved_flushing(void)
{
    const struct fixed cases[] = {
        {.flush = {FLUSH_DATA, 1}},
        {.flush = {FLUSH_ALL, 5}, .think_ns = 20000},
        {.flush = {FLUSH_ALL, 3}, .iosequencer = RANDOM_INDEPENDENT, .drop_after_ns = 2 * NS_PER_MS},
        {.flush = {FLUSH_ALL, 7}, .until = {ENDS_IOS, 150}, .end_fsync = 1},
        {.until = {ENDS_WRITTEN, 75 * 4096}, .end_fsync = 1, .think_ns = 20000},
        {.flush = {FLUSH_ALL, 4}, .until = {ENDS_TIME, LENGTH_NS}, .end_fsync = 1},
        {.until = {ENDS_TIME, LENGTH_NS}, .end_fsync = 1, .think_ns = 20000, .iosequencer = RANDOM_INDEPENDENT},
    };

    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        conserve_fixed(cases[n], 1e6);
        CHECK(n > 0 || atomic_load(&told.most_flushing) > 1);
        CHECK_EQUAL(engine_delete(engine, 0), 0);
        CHECK_EQUAL(engine_delete(engine, 1), 0);
    }
}

static void conserved_mixed(void)
{
    const struct fixed cases[] = {
        {.sequential = 0.3},
        {.iosequencer = SEQUENTIAL, .streams = 3, .cursors = CURSOR_BY_OPERATION, .think_ns = 20000},
        {.drop_after_ns = 2 * NS_PER_MS, .align = 8192},
        {.until = {ENDS_IOS, 150}},
        {.until = {ENDS_BYTES, 150 * 8192}, .iosequencer = RANDOM_INDEPENDENT},
        {.until = {ENDS_READ, 75 * 8192}, .iosequencer = SEQUENTIAL},
        {.until = {ENDS_WRITTEN, 75 * 8192}, .flush = {FLUSH_ALL, 5}, .end_fsync = 1},
    };

    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        conserve_in(cases[n], 1e6, true, false);
        CHECK_EQUAL(engine_delete(engine, 0), 0);
        CHECK_EQUAL(engine_delete(engine, 1), 0);
    }
}

/* Until the step has ended: the greatest lateness of an I/O. */
static uint64_t greatest_lateness(struct sums *s, uint32_t tags)
{
    struct result r;
    uint64_t late_ns = 0;

    for (struct end end; !engine_ended(engine, &end); wait_for_news(engine, 1000))
        while (engine_collect(engine, false, &r) == 1) {
            add_result(s, &r, tags);
            for (uint32_t n = 0; n < r.classes; n++)
                late_ns = r.moments[(n * SERIES + SERIES_LATENESS) * MOMENTS + MOMENT_MAX] > late_ns
                              ? r.moments[(n * SERIES + SERIES_LATENESS) * MOMENTS + MOMENT_MAX]
                              : late_ns;
            result_free(&r);
        }
    return late_ns;
}

static void conserved_skewed(void)
{
    const struct fixed cases[] = {
        {.sequential = 0.3},
        {.iosequencer = SEQUENTIAL, .think_ns = 20000},
        {.until = {ENDS_IOS, 150}},
        {.until = {ENDS_TIME, LENGTH_NS}},
        {.flush = {FLUSH_ALL, 2}},
        {.flush = {FLUSH_DATA, 5}, .until = {ENDS_WRITTEN, 75 * 4096}, .end_fsync = 1},
        {.flush = {FLUSH_ALL, 3}, .think_ns = 20000, .zipf = 1.1},
    };

    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        conserve_in(cases[n], 1e6, n % 2, true);
        CHECK_EQUAL(engine_delete(engine, 0), 0);
        CHECK_EQUAL(engine_delete(engine, 1), 0);
    }
}

/* As its words say: LENGTHS, and of each instance SKEW TAGS BYTES SERVICE_NS THINK_NS IOS, as fast as it goes, the
 * latter until so many are issued, 0: as long as the step. Prints how many each issued. */
static void skewed(void)
{
    struct sums s;
    uint32_t lun, count = 0;

    open_lun(&lun);
    for (char **word = words + 1; *word; word += 6, count++) {
        uint32_t tags = (uint32_t)atoi(word[1]), bytes = (uint32_t)atoi(word[2]);
        ends_of[count] = (uint64_t)atoll(word[5]);
        struct parameters p = {
            .fixed = {.think_ns = (uint64_t)atoll(word[4]),
                      .until = {ends_of[count] ? ENDS_IOS : ENDS_NEVER, ends_of[count]}},
            .setting = {.iops = -1.0, .fraction_read = 0.5, .maxtags = tags, .blocksize = bytes, .skew = atof(word[0])},
        };
        CHECK_EQUAL(engine_create(engine, count, lun, 0, (struct ceiling){tags, bytes}, &everywhere, &p), 0);
        skews[count] = p.setting.skew;
        atomic_store(&told.delay_of[count], (uint64_t)atoll(word[3]));
    }
    for (uint32_t step = 0; step < 2; step++) {
        for (uint32_t n = 0; n < count; n++)
            atomic_store(&told.issued_of[n], 0);
        start(count, &s);
        stop_after((uint32_t)atoi(words[0]) - 1, &s, 256);
        CHECK_EQUAL(s.errors + s.dropped, 0);
    }
    for (uint32_t n = 0; n < count; n++)
        printf("%llu ", (unsigned long long)atomic_load(&told.issued_of[n]));
}

enum { SLOW, QUICK }; /* 100 a second, and 80,000 where nothing holds them */

struct issued {
    int64_t slow, quick;
};

static struct issued issued_in(uint64_t ns, struct sums *s)
{
    uint64_t slow = atomic_load(&told.issued_of[SLOW]), quick = atomic_load(&told.issued_of[QUICK]);

    collect_until(clock_now() + ns, s);
    return (struct issued){(int64_t)(atomic_load(&told.issued_of[SLOW]) - slow),
                           (int64_t)(atomic_load(&told.issued_of[QUICK]) - quick)};
}

static void check_in_proportion(struct issued issued, double skew)
{
    CHECK(issued.slow >= 19 && issued.slow <= 21);
    CHECK(fabs((double)issued.quick - (double)issued.slow / skew) <= 2.0 / skew);
}

/* Who is ahead goes as the one behind ends, or counts no longer; and does not wait for what that has missed. */
static void let_go(void)
{
    const uint64_t window_ns = 200 * NS_PER_MS;
    struct sums s;
    uint32_t lun, number = 0;
    struct parameters p = {.setting = {.iops = -1.0, .fraction_read = 0.5, .maxtags = 1, .blocksize = 4096}};

    open_lun(&lun);
    atomic_store(&told.delay_of[SLOW], 10 * NS_PER_MS);
    atomic_store(&told.delay_of[QUICK], 100000);
    p.setting.skew = 1.0;
    create_skewed(SLOW, lun, (struct fixed){0}, -1.0, 1, 1.0);
    create_skewed(QUICK, lun, (struct fixed){0}, -1.0, 8, 1.0);
    start(2, &s);
    collect_until(engine->step.start_ns + NS_PER_MS, &s);
    check_in_proportion(issued_in(window_ns, &s), 1.0);

    set_rate(++number, p, 0.0, &s);
    CHECK(issued_in(window_ns, &s).quick > 10000);
    set_rate(++number, p, -1.0, &s);
    check_in_proportion(issued_in(window_ns, &s), 1.0);

    set_rate(++number, p, 50.0, &s);
    CHECK(issued_in(window_ns, &s).quick > 10000);
    set_rate(++number, p, -1.0, &s);
    check_in_proportion(issued_in(window_ns, &s), 1.0);

    p.setting.skew = 0.0;
    set_rate(++number, p, -1.0, &s);
    CHECK(issued_in(window_ns, &s).quick > 10000);
    p.setting.skew = 0.1;
    set_rate(++number, p, -1.0, &s);
    check_in_proportion(issued_in(window_ns, &s), 0.1);
    p.setting.skew = 4.0;
    set_rate(++number, p, -1.0, &s);
    check_in_proportion(issued_in(window_ns, &s), 4.0);

    atomic_store(&told.delay_of[SLOW], 100000);
    atomic_store(&told.fails_of[SLOW], true);
    issued_in(window_ns, &s); /* 16 failures, then it rests after each */
    struct issued issued = issued_in(window_ns, &s);
    CHECK(issued.slow > 100 && issued.quick > 10 * issued.slow);
    atomic_store(&told.fails_of[SLOW], false);
    atomic_store(&told.delay_of[SLOW], 10 * NS_PER_MS);
    issued_in(window_ns / 10, &s);
    check_in_proportion(issued_in(window_ns, &s), 4.0);
    engine_halt(engine);
    finish(engine, &s, 64);
}

static void let_go_by(struct until until)
{
    struct sums s;
    uint32_t lun;

    open_lun(&lun);
    atomic_store(&told.delay_of[SLOW], 10 * NS_PER_MS);
    atomic_store(&told.delay_of[QUICK], 100000);
    create_skewed(SLOW, lun, (struct fixed){.until = until, .end_fsync = 1}, -1.0, 1, 1.0);
    create_skewed(QUICK, lun, (struct fixed){0}, -1.0, 8, 1.0);
    for (uint32_t step = 0; step < 2; step++) {
        start(2, &s);
        collect_until(engine->step.start_ns + NS_PER_MS, &s);
        check_in_proportion(issued_in(200 * NS_PER_MS, &s), 1.0);
        collect_until(clock_now() + 200 * NS_PER_MS, &s);
        CHECK(issued_in(200 * NS_PER_MS, &s).quick > 10000);
        CHECK(s.ended_ns_of[SLOW] > 0);
        engine_halt(engine);
        finish(engine, &s, 64);
    }
    CHECK_EQUAL(engine_delete(engine, SLOW), 0);
    CHECK_EQUAL(engine_delete(engine, QUICK), 0);
}

static void let_go_by_an_end(void)
{
    let_go_by((struct until){ENDS_IOS, 30});
    let_go_by((struct until){ENDS_TIME, 300 * NS_PER_MS});
}

/* Those on other LUNs, at a rate or without a skew go as they would; one that has the same LUN open otherwise is held.
 * A user who is held is not late. */
static void beside_the_held(void)
{
    uint32_t lun, again, other;
    struct sums s;

    open_lun(&lun);
    open_lun(&again);
    open_lun(&other)->file++; /* as if it were another file */
    atomic_store(&told.delay_of[SLOW], 10 * NS_PER_MS);
    for (uint32_t n = QUICK; n < SKEWED; n++)
        atomic_store(&told.delay_of[n], 100000);
    create_skewed(SLOW, lun, (struct fixed){0}, -1.0, 1, 1.0);
    create_skewed(QUICK, lun, (struct fixed){.think_ns = 100000}, -1.0, 8, 1.0);
    create_skewed(2, lun, (struct fixed){0}, -1.0, 8, 0.0);
    create_skewed(3, lun, (struct fixed){0}, 1000.0, 8, 1.0);
    create_skewed(4, other, (struct fixed){0}, -1.0, 8, 1.0);
    create_skewed(5, again, (struct fixed){0}, -1.0, 8, 1.0);
    start(6, &s);
    engine_stop(engine, 3);
    uint64_t late_ns = greatest_lateness(&s, 8);
    CHECK(late_ns < NS_PER_MS);
    CHECK(atomic_load(&told.issued_of[SLOW]) <= 21);
    CHECK(atomic_load(&told.issued_of[QUICK]) <= 22);
    CHECK(atomic_load(&told.issued_of[2]) > 10000);
    CHECK(llabs((long long)atomic_load(&told.issued_of[3]) - 200) <= 1);
    CHECK(atomic_load(&told.issued_of[4]) > 10000);
    CHECK(atomic_load(&told.issued_of[5]) <= 22);
}

static void create_flushing(double iops, uint32_t tags, uint64_t every)
{
    uint32_t lun;
    struct parameters p = {
        .fixed = {.flush = {FLUSH_ALL, every}},
        .setting = {.iops = iops, .fraction_read = 0.0, .maxtags = tags, .blocksize = 4096},
    };

    open_lun(&lun);
    CHECK_EQUAL(engine_create(engine, 0, lun, 0, (struct ceiling){tags, MOST_BLOCKSIZE}, &everywhere, &p), 0);
}

/* It is an error of the instance's, with its errno, in no latency; and does not keep the next from its turn. */
static void failed_flushes(void)
{
    struct sums s;

    create_flushing(1000.0, 1, 4);
    atomic_store(&told.flush_result, -EIO);
    start(1, &s);
    stop_after(3, &s, 1);
    CHECK_EQUAL(s.completed, 200);
    CHECK_EQUAL(s.errors, 50);
    CHECK_EQUAL(s.flushes, 0);
}

/* Writes that wait for the tag that a flush has wait for the storage: W and F take 160 us, and 100 are between two. */
static void behind_flushes(void)
{
    struct sums s;

    create_flushing(10000.0, 1, 1);
    atomic_store(&told.delay_ns, 80000);
    start(1, &s);
    engine_stop(engine, 3);
    uint64_t late_ns = greatest_lateness(&s, 1);
    CHECK(s.backlog > 500);
    CHECK(late_ns <= 2 * BATCH_NS);
    CHECK(s.flushes >= 600 && s.flushes - (s.completed - s.flushes) >= -1);
}

/* Nor are they late behind one whose tag had been free for long: it could not go before its write was acknowledged. */
static void behind_flushes_of_free_tags(void)
{
    struct sums s;
    uint32_t lun;
    struct parameters p = {
        .fixed = {.flush = {FLUSH_ALL, 2}, .iosequencer = RANDOM_INDEPENDENT}, /* some alone, some in a crowd */
        .setting = {.iops = 200.0, .fraction_read = 0.0, .maxtags = 2, .blocksize = 4096},
    };

    open_lun(&lun);
    CHECK_EQUAL(engine_create(engine, 0, lun, 0, (struct ceiling){2, MOST_BLOCKSIZE}, &everywhere, &p), 0);
    atomic_store(&told.delay_ns, 4 * NS_PER_MS);
    start(1, &s);
    engine_stop(engine, 99);
    CHECK(greatest_lateness(&s, 2) <= 3 * BATCH_NS);
    CHECK(s.flushes > 400);
}

/* But by what the flush itself was submitted too late, the write behind it is late. */
static void behind_a_late_flush(void)
{
    struct sums s;
    const uint64_t stall_ns = 3 * NS_PER_MS;

    create_flushing(1000.0, 1, 1);
    atomic_store(&told.delay_ns, LENGTH_NS / 10);
    start(1, &s);
    collect_until_above(&told.submitted, 0, &s, 1);
    atomic_store(&told.prepare_ns, stall_ns);
    engine_stop(engine, 1);
    uint64_t late_ns = greatest_lateness(&s, 1);
    CHECK(s.flushes > 2);
    CHECK(late_ns >= stall_ns);
    CHECK(late_ns <= stall_ns + 2 * BATCH_NS);
}

/* As its words say: MAXTAGS EVERY IOS WRITE_NS FLUSH_NS SPREAD_NS IOPS THINK_NS END. Writes, at a rate or (-1) as fast
 * as it goes, until so many are done, or (0) for a second. Prints: writes, flushes, the most that were in flight at a
 * time, when it ended (ns, 0: it did not), the backlog at the end. */
static void flushing(void)
{
    struct sums s;
    uint32_t lun, tags = (uint32_t)atoi(words[0]);
    uint64_t ios = (uint64_t)atoll(words[2]), write_ns = (uint64_t)atoll(words[3]);
    struct parameters p = {
        .fixed = {.flush = {FLUSH_ALL, (uint64_t)atoll(words[1])},
                  .until = {ios ? ENDS_IOS : ENDS_NEVER, ios},
                  .think_ns = (uint64_t)atoll(words[7]),
                  .end_fsync = (uint64_t)atoll(words[8])},
        .setting = {.iops = atof(words[6]), .fraction_read = 0.0, .maxtags = tags, .blocksize = 4096},
    };

    open_lun(&lun);
    CHECK_EQUAL(engine_create(engine, 0, lun, 0, (struct ceiling){tags, MOST_BLOCKSIZE}, &everywhere, &p), 0);
    atomic_store(&told.delay_ns, write_ns);
    atomic_store(&told.flush_delay_ns, (uint64_t)atoll(words[4]) - write_ns);
    atomic_store(&told.spread_ns, (uint64_t)atoll(words[5]));
    start(1, &s);
    uint64_t start_ns = engine->step.start_ns;
    if (ios == 0)
        engine_stop(engine, NS_PER_S / LENGTH_NS - 1);
    while (ios && s.ended_ns_of[0] == 0)
        collect_until(clock_now() + LENGTH_NS, &s);
    if (ios)
        engine_halt(engine);
    finish(engine, &s, tags);
    uint64_t ended_ns = s.ended_ns_of[0] ? s.ended_ns_of[0] - start_ns : 0;
    printf("%lld %lld %u %llu %lld\n", (long long)(s.completed - s.flushes), (long long)s.flushes,
           atomic_load(&told.most_flushing), (unsigned long long)ended_ns, (long long)s.backlog);
}

/* The write that calls for it completes in a pause: it goes after that, and before any other I/O. */
static void paused_flush(void)
{
    struct sums s;

    create_flushing(-1.0, 1, 1);
    struct parameters p = engine->by_number[0]->parameters;
    atomic_store(&told.delay_ns, 3 * LENGTH_NS);
    start(1, &s);
    collect_until_above(&told.submitted, 0, &s, 1);
    set_rate(1, p, 0.0, &s);
    collect_until(clock_now() + 6 * LENGTH_NS, &s);
    CHECK_EQUAL(s.submitted, 1);
    CHECK_EQUAL(s.completed, 1);
    atomic_store(&told.delay_ns, LENGTH_NS);
    set_rate(2, p, -1.0, &s);
    collect_until(clock_now() + 2 * LENGTH_NS, &s);
    CHECK(s.flushes == 1 && s.completed <= 3);
    engine_halt(engine);
    finish(engine, &s, 1);
}

/* Its time is over before the flush begins, in a pause; or its write comes back after that, or in a cooldown. */
static void overtaken_flushes(void)
{
    for (uint32_t way = 0; way < 3; way++) {
        struct sums s;
        uint32_t lun;
        uint64_t over = way == 2 ? 0 : way == 1 ? 2 : 5;
        struct parameters p = {
            .fixed = {.flush = {FLUSH_ALL, 1}, .until = {over ? ENDS_TIME : ENDS_NEVER, over * LENGTH_NS}},
            .setting = {.iops = -1.0, .fraction_read = 0.0, .maxtags = 2, .blocksize = 4096},
        };

        open_lun(&lun);
        CHECK_EQUAL(engine_create(engine, 0, lun, 0, (struct ceiling){2, MOST_BLOCKSIZE}, &everywhere, &p), 0);
        atomic_store(&told.delay_ns, 3 * LENGTH_NS + LENGTH_NS / 2);
        start(1, &s);
        uint64_t start_ns = engine->step.start_ns;
        if (way == 2)
            engine_cooldown(engine, 1);
        collect_until(start_ns + LENGTH_NS, &s);
        if (way == 0)
            set_rate(1, p, 0.0, &s);
        collect_until(start_ns + 6 * LENGTH_NS, &s);
        if (way == 0)
            set_rate(2, p, -1.0, &s);
        stop_after(8, &s, 2);
        CHECK_EQUAL(s.submitted, 2);
        CHECK_EQUAL(s.completed, 2);
        if (way == 0)
            CHECK_EXACT(s.ended_ns_of[0], start_ns + 5 * LENGTH_NS - 1);
        else
            CHECK_EQUAL(s.ended_ns_of[0] > 0, way == 1);
        CHECK_EQUAL(engine_delete(engine, 0), 0);
    }
}

/* The kernel gives it back, and a pause comes before it takes it: it goes after that, before any other I/O. */
static void given_back_flush(void)
{
    struct sums s;

    create_flushing(-1.0, 1, 1);
    struct parameters p = engine->by_number[0]->parameters;
    atomic_store(&told.delay_ns, LENGTH_NS);
    start(1, &s);
    collect_until_above(&told.submitted, 0, &s, 1);
    atomic_store(&told.refuse, -EAGAIN);
    collect_until(clock_now() + 2 * LENGTH_NS, &s);
    set_rate(1, p, 0.0, &s);
    atomic_store(&told.refuse, 0);
    collect_until(clock_now() + 2 * LENGTH_NS, &s);
    CHECK_EQUAL(s.completed, 1);
    CHECK_EQUAL(s.withdrawn, 1);
    set_rate(2, p, -1.0, &s);
    collect_until(clock_now() + LENGTH_NS + LENGTH_NS / 2, &s);
    engine_halt(engine);
    finish(engine, &s, 1);
    CHECK_EQUAL(s.flushes, 1);
    CHECK_EQUAL(s.completed, 2);
}

/* Those that hang show by their age, and keep their tags: after ten writes one of two, after ten more the other. */
static void hung_flush(void)
{
    struct sums s;

    create_flushing(1000.0, 2, 10);
    atomic_store(&told.flush_delay_ns, 100 * LENGTH_NS);
    start(1, &s);
    struct end end = stop_after(5, &s, 2);
    CHECK_EQUAL(s.in_flight, 2);
    CHECK_EQUAL(s.flushes, 0);
    CHECK_EQUAL(s.completed, 20);
    CHECK_EQUAL(s.backlog, 280);
    CHECK_EQUAL(end.sums.uncaught + end.sums.caught, 2);
}

static void conserved(void)
{
    conserve(0, 1e9);
}

static void conserved_expiring(void)
{
    conserve(2 * NS_PER_MS, 1e9);
}

static void conserved_expiring_at_random(void)
{
    conserve(2 * NS_PER_MS + 1, 1e6);
}

/* 20 subintervals of 100,000 IOPS on 4 tags that take 1 ms each; what has waited for DROP_AFTER_NS is discarded. */
enum { DROP_AFTER_NS = 10 * NS_PER_MS };
static void run_overload(struct sums *s)
{
    struct parameters p = {
        .fixed.drop_after_ns = DROP_AFTER_NS,
        .setting = {.iops = 1e5, .fraction_read = 0.5, .maxtags = 4, .blocksize = 4096},
    };
    uint32_t lun;

    open_lun(&lun);
    CHECK_EQUAL(engine_create(engine, 0, lun, 0, (struct ceiling){4, 4096}, &everywhere, &p), 0);
    atomic_store(&told.delay_ns, NS_PER_MS);
    start(1, s);
    engine_stop(engine, 19);
}

/* No I/O is submitted that had waited for longer than drop_after when the thread last looked at the ring and its clock,
 * however long it was held up since then. */
static void expired(void)
{
    struct sums s;

    run_overload(&s);
    finish(engine, &s, 4);
    CHECK_EQUAL(s.due, 100000);
    CHECK_EQUAL(s.completed, 4 * 998);               /* 4 in a millisecond and the calls */
    CHECK_EQUAL(s.expired, 100000 - 4 * 999 - 1000); /* but those in flight, and of the last 10 ms */
    CHECK(atomic_load(&told.oldest_ns) <= DROP_AFTER_NS);
    CHECK(atomic_load(&told.oldest_ns) > DROP_AFTER_NS - 10000); /* one is due in each 10 us */
}

/* The lease ends while a call is under way that takes a part of the batch: no further call is made. */
static void lease_in_submit(void)
{
    struct sums s;
    uint32_t lun;

    open_lun(&lun)->queue = (struct queue){.nr_requests = 64};
    create(0, lun, 0, -1.0, 64);
    atomic_store(&told.take, 1);
    atomic_store(&told.delay_ns, 20 * NS_PER_MS);
    start(1, &s);
    sleep_until(engine->step.start_ns + 10 * NS_PER_MS);
    uint64_t lease_ns = clock_now() + 30 * NS_PER_MS;
    atomic_store(&told.stuck_thread, 1);
    engine_set_lease(engine, lease_ns);
    sleep_until(lease_ns + 50 * NS_PER_MS);
    uint64_t before = atomic_load(&told.submitted);
    atomic_store(&told.stuck_thread, 0);
    struct end end = finish(engine, &s, 64);
    CHECK_EQUAL(end.reason, END_LEASE);
    CHECK_EQUAL(atomic_load(&told.submitted) - before, 1); /* the one that hung */
    CHECK_EQUAL((uint64_t)s.submitted, atomic_load(&told.submitted));
    CHECK_EQUAL(end.sums.uncaught, 0);
    CHECK_SIMULATED(clock_now() < lease_ns + 2 * LENGTH_NS); /* nothing that was taken back is waited for */

    /* Nor does it take room in the queue: the next step has all of it. */
    atomic_store(&told.take, 0);
    atomic_store(&told.most_in_flight, 0);
    start(1, &s);
    collect_until_above(&told.completed, atomic_load(&told.completed) + 200, &s, 64);
    engine_halt(engine);
    CHECK_EQUAL(finish(engine, &s, 64).sums.uncaught, 0);
    CHECK_EQUAL(atomic_load(&told.most_in_flight), 64);
}

/* The lease ends between two parts of a batch, and is renewed before the thread has drawn a conclusion: the step goes
 * on, and the rest of the batch with it. */
static void lease_renewed_in_submit(void)
{
    struct sums s;
    uint32_t lun;

    open_lun(&lun);
    create(0, lun, 0, -1.0, 64);
    create(1, lun, 0, 2000.0, 64);
    atomic_store(&told.take, 1);
    atomic_store(&told.delay_ns, 20 * NS_PER_MS);
    atomic_store(&told.stuck_thread, 1); /* with the first batch, which is full */
    start(2, &s);
    while (atomic_load(&told.calls) == 0)
        wait_for_news(engine, 1);
    uint64_t lease_ns = clock_now() + 10 * NS_PER_MS, before = atomic_load(&told.submitted);
    engine_set_lease(engine, lease_ns);
    atomic_store(&told.renew, true);
    sleep_until(lease_ns + 50 * NS_PER_MS);
    atomic_store(&told.stuck_thread, 0);
    while (atomic_load(&told.submitted) - before <= 200 && !engine->step.cut) {
        collect_all(engine, &s, 64, false);
        wait_for_news(engine, 1);
    }
    struct end end = stop_after(0, &s, 64);
    CHECK(!atomic_load(&told.renew));
    CHECK_EQUAL(end.reason, END_COMMANDED);
    CHECK_EQUAL((uint64_t)s.submitted, atomic_load(&told.submitted));
    CHECK_EQUAL(end.sums.dropped, (uint64_t)s.backlog);
}

/* The thread dies of it, with these words; nothing is submitted any more, long before the lease or the step ends. */
static void stopped_by_clock(const char *words, int64_t turn_ns, uint64_t suspend_ns)
{
    struct sums s;
    uint32_t lun, thread;
    char said[160];

    open_lun(&lun);
    create(0, lun, 0, -1.0, 4);
    create(1, lun, 0, 2000.0, 4);
    atomic_store(&told.delay_ns, NS_PER_MS);
    engine_set_lease(engine, clock_now() + 600 * NS_PER_S);
    go(engine, 2, 1, LENGTH_NS, &s);
    while (atomic_load(&told.submitted) < 8)
        wait_for_news(engine, 10);
    atomic_store(&told.turn_ns, turn_ns);
    atomic_store(&told.suspend_ns, suspend_ns);
    struct end end = finish(engine, &s, 4);
    CHECK_EQUAL(end.reason, END_DIED);
    CHECK(s.last);
    CHECK(end.sums.longest_caught_ns < 60 * NS_PER_S); /* by the clock that went wrong it may be anything */
    CHECK_EQUAL((uint64_t)s.submitted, atomic_load(&told.submitted));
    CHECK(engine_dying_words(engine, &thread, said, sizeof said));
    CHECK(strstr(said, words));
}

static void suspended(void)
{
    stopped_by_clock("the machine was suspended for 5", 0, 5 * NS_PER_S);
}

static void counter_back(void)
{
    if (engine->counted)
        stopped_by_clock("the cycle counter is 5", -5 * (int64_t)NS_PER_S, 0);
}

static void counter_ahead(void)
{
    if (engine->counted)
        stopped_by_clock("the cycle counter is 3600", 3600 * (int64_t)NS_PER_S, 0);
}

/* What fails after the last boundary is not among what came back well; what moved less than it should failed, too. */
static void fails_after_the_end(int64_t result)
{
    struct sums s;
    uint32_t lun;

    open_lun(&lun);
    create(0, lun, 0, -1.0, 4);
    atomic_store(&told.result, result);
    atomic_store(&told.delay_ns, 4 * LENGTH_NS);
    start(1, &s);
    struct end end = stop_after(0, &s, 4);
    CHECK_EQUAL(s.in_flight, 4);
    CHECK_EQUAL(end.sums.caught, 0);
    CHECK_EQUAL(end.sums.failed, 4);
    CHECK_EQUAL(end.sums.longest_caught_ns, 4 * LENGTH_NS + BATCH_NS);
}

static void failed_after_the_end(void)
{
    fails_after_the_end(-EIO);
}

static void short_after_the_end(void)
{
    fails_after_the_end(512);
}

/* An edit that no thread may have taken yet, and the end of what it edits: in this order. */
static void edited_and_deleted(void)
{
    struct edit edit = {.parameters.setting = {.iops = 5.0, .fraction_read = 0.5, .maxtags = 4, .blocksize = 8192}};
    uint32_t lun, number;
    uint64_t taken_ns, discarded;

    open_lun(&lun);
    for (uint32_t turn = 1; turn <= 500; turn++) {
        create(0, lun, 0, 100.0, 4);
        CHECK_EQUAL(engine_edit(engine, turn, &edit, 1), 0);
        CHECK_EQUAL(engine_delete(engine, 0), 0);
        while (!engine_edited(engine, &number, &taken_ns, &discarded))
            wait_for_news(engine, 1000);
        CHECK_EQUAL(number, turn);
    }
}

static struct moments_of {
    uint64_t response_ns, lateness_ns, paced;
} moments_until_the_end(struct sums *s, uint32_t tags)
{
    struct result r;
    struct moments_of found = {0};
    struct end end;

    do {
        while (engine_collect(engine, false, &r) == 1) {
            add_result(s, &r, tags);
            found.response_ns += in_series(&r, MOMENT_SUM, SERIES_RESPONSE, SERIES_LATENESS);
            found.lateness_ns += in_series(&r, MOMENT_SUM, SERIES_LATENESS, SERIES_LATENESS + 1);
            found.paced += in_series(&r, MOMENT_COUNT, SERIES_LATENESS, SERIES_LATENESS + 1);
            result_free(&r);
        }
        wait_for_news(engine, 1);
    } while (!engine_ended(engine, &end));
    return found;
}

static struct moments_of series_of_one_step(double iops, uint64_t deaf_ns, uint64_t slow_ns)
{
    struct sums s;
    uint32_t lun;

    CHECK_EQUAL(engine_spin(engine, SPIN_OFF), 0); /* deaf only while it sleeps */
    open_lun(&lun);
    create(0, lun, 0, iops, 2);
    start(1, &s);
    engine_stop(engine, 5);
    uint64_t start_ns = engine->step.start_ns;
    sleep_until(start_ns + LENGTH_NS);
    atomic_store(&told.deaf_until_ns, deaf_ns ? start_ns + LENGTH_NS + deaf_ns : 0);
    atomic_store(&told.delay_ns, slow_ns);
    sleep_until(start_ns + 2 * LENGTH_NS);
    atomic_store(&told.delay_ns, 0);
    return moments_until_the_end(&s, 2);
}

/* A thread is kept from its work for 40 ms, with two tags: those that wait for a tag while it makes up for that are as
 * late as it was, since the storage, which takes no time, had nothing to do with it. */
static void caught_up(void)
{
    struct moments_of m = series_of_one_step(20000.0, 40 * NS_PER_MS, 0);

    CHECK(m.response_ns > 800 * 20 * NS_PER_MS); /* those of the 40 ms alone */
    CHECK_EQUAL(m.response_ns - m.lateness_ns, m.paced * (BATCH_NS + POLL_NS));
}

/* The storage is slow for 50 ms: what waits for it is not the generator's lateness. */
static void slowed_down(void)
{
    struct moments_of m = series_of_one_step(2000.0, 0, 10 * NS_PER_MS);

    CHECK(m.response_ns > 100 * 10 * NS_PER_MS);
    CHECK_EQUAL(m.lateness_ns, 0);
}

/* Far more is asked for than 4 tags do at 1 ms each, and what waits for 10 ms is discarded: the wait is the storage's,
 * however little the generator adds to it each time. */
static void overloaded_expiring(void)
{
    struct sums s;

    run_overload(&s);
    struct moments_of m = moments_until_the_end(&s, 4);
    CHECK(m.response_ns > m.paced * 10 * NS_PER_MS);
    CHECK(m.lateness_ns < m.paced * POLL_NS);
}

/* More than twice what a queue of 12 requests takes, for 0.3 s. */
static struct moments_of over_full(uint16_t sets)
{
    struct sums s;
    uint32_t lun;
    struct lun *l = open_lun(&lun);

    l->queue = (struct queue){.nr_requests = 12, .hw_queues = {.sets = sets}};
    create(0, lun, 0, 3000.0, 64);
    atomic_store(&told.delay_ns, 10 * NS_PER_MS);
    start(1, &s);
    engine_stop(engine, 5);
    return moments_until_the_end(&s, 64);
}

/* The queue is all that the device has: the wait is the device's. */
static void full_device(void)
{
    struct moments_of m = over_full(0);

    CHECK(m.response_ns > m.paced * 10 * NS_PER_MS);
    CHECK_EQUAL(m.lateness_ns, 0);
}

/* It is one of two, and the thread keeps to what one takes because it might submit to any: the wait is its own. */
static void full_share(void)
{
    struct moments_of m = over_full(2);

    CHECK(m.response_ns > m.paced * 10 * NS_PER_MS);
    CHECK(m.lateness_ns > m.response_ns / 10 * 9);
}

static struct parameters users(uint32_t tags, uint64_t think_ns)
{
    return (struct parameters){
        .setting = {.iops = -1.0, .fraction_read = 0.5, .maxtags = tags, .blocksize = 4096},
        .fixed.think_ns = think_ns,
    };
}

static void create_users(uint32_t lun, uint32_t tags, uint64_t think_ns)
{
    struct parameters p = users(tags, think_ns);

    CHECK_EQUAL(engine_create(engine, 0, lun, 0, (struct ceiling){tags, MOST_BLOCKSIZE}, &everywhere, &p), 0);
}

/* Users whose tags I/Os of the step before still hold begin within a think time when those come back, not all at once.
 */
static void came_back_to_think(void)
{
    struct sums s;
    uint32_t lun;

    engine->step.catch_ns = NS_PER_MS;
    atomic_store(&told.hung, open_lun(&lun));
    create_users(lun, 64, 39 * NS_PER_MS);
    start(1, &s);
    CHECK_EQUAL(stop_after(0, &s, 64).sums.uncaught, 64);
    start(1, &s);
    engine_stop(engine, 9);
    sleep_until(engine->step.start_ns + LENGTH_NS / 2);
    atomic_store(&told.delay_ns, NS_PER_MS);
    atomic_store(&told.most_in_flight, 0);
    atomic_store(&told.hung, NULL);
    finish(engine, &s, 64);
    CHECK(s.completed > 64 * 10); /* in 475 ms, at most one think time of which is lost: of 40 ms each */
    CHECK(atomic_load(&told.most_in_flight) < 10); /* 1.6 in the mean */
}

/* Users that were ready when fewer were asked for go when those before them leave: nobody is late. */
static void fewer_users(void)
{
    struct result r;
    struct end end;
    uint64_t longest_ns = 0;
    uint32_t lun;
    struct sums s;

    open_lun(&lun)->queue = (struct queue){.nr_requests = 1};
    create_users(lun, 8, 20 * NS_PER_MS);
    atomic_store(&told.delay_ns, 10 * NS_PER_MS);
    start(1, &s);
    engine_stop(engine, 9);
    sleep_until(engine->step.start_ns + 2 * LENGTH_NS + LENGTH_NS / 3);
    set_rate(1, users(2, 20 * NS_PER_MS), -1.0, &s);
    do {
        while (engine_collect(engine, false, &r) == 1) {
            add_result(&s, &r, 8);
            for (uint32_t class = 0; class < r.classes; class++) {
                uint64_t most = (uint64_t)r.moments[((size_t)class * SERIES + SERIES_LATENESS) * MOMENTS + MOMENT_MAX];
                longest_ns = most > longest_ns ? most : longest_ns;
            }
            result_free(&r);
        }
        wait_for_news(engine, 1);
    } while (!engine_ended(engine, &end));
    CHECK(s.completed > 30);
    CHECK(longest_ns < NS_PER_MS);
}

/* While an idle neighbour with 2000 tags shares its device of 128 requests: all of its 120 tags are in flight. */
static void idle_neighbour(void)
{
    struct sums s;
    uint32_t lun;

    open_lun(&lun)->queue = (struct queue){.nr_requests = 128};
    create(0, lun, 0, -1.0, 120);
    create(1, lun, 1, 1.0, 2000);
    atomic_store(&told.delay_ns, 60 * NS_PER_MS);
    start(2, &s);
    collect_until_above(&told.most_in_flight, 32, &s, 2000); /* by limits of tags it would be 7 */
    stop_after(0, &s, 2000);
    CHECK(atomic_load(&told.most_in_one_room) <= 128);
    CHECK_EXACT(atomic_load(&told.most_in_flight), 120);
}

/* Two threads that could fill the device: it is never over-full, and each has its part. */
static void busy_neighbours(void)
{
    struct sums s = {0};
    uint32_t lun;
    int64_t completed[2] = {0};
    struct result r;
    struct end end;

    open_lun(&lun)->queue = (struct queue){.nr_requests = 64};
    create(0, lun, 0, -1.0, 200);
    create(1, lun, 1, -1.0, 100);
    atomic_store(&told.delay_ns, 2 * NS_PER_MS);
    start(2, &s);
    if (SIMULATED)
        engine_stop(engine, 7);
    while (!engine_ended(engine, &end)) {
        while (engine_collect(engine, false, &r) == 1) {
            for (uint32_t n = 0; n < 2; n++)
                completed[n] += r.counts[n * COUNTS + COUNT_COMPLETED];
            result_free(&r);
        }
        if (completed[0] > 0 && completed[1] > 0)
            engine_stop(engine, 7);
        wait_for_news(engine, 1000);
    }
    CHECK(atomic_load(&told.most_in_one_room) <= 64);
    CHECK_EXACT(atomic_load(&told.most_in_one_room), 64);
    CHECK_SIMULATED(llabs(completed[0] - completed[1]) < completed[0] / 10);
    CHECK_SIMULATED(completed[0] + completed[1] >= 64 * 199); /* of 64 in each 2 ms of 400 ms */
}

/* Two instances above a queue of one request, on a thread whose batches are full of others' I/Os: the one goes on while
 * the other, whose turn it was, is paused. */
static void paused_in_turn(void)
{
    enum { OTHERS = 38, LENGTHS = 60 };
    struct parameters p = {.setting = {.iops = -1.0, .fraction_read = 0.5, .maxtags = 4, .blocksize = 4096}};
    struct sums s;
    struct result r;
    uint32_t narrow, wide;
    struct lun *l = open_lun(&narrow);

    open_lun(&wide);
    l->queue = (struct queue){.nr_requests = 1};
    create(0, narrow, 0, -1.0, 4);
    create(1, narrow, 0, -1.0, 4);
    for (uint32_t n = 2; n < 2 + OTHERS; n++)
        create(n, wide, 0, -1.0, 64);
    atomic_store(&told.each_ns, 1000);
    engine_set_lease(engine, clock_now() + 60 * NS_PER_S);
    go(engine, 2 + OTHERS, 1, LENGTH_NS / 2, &s);
    for (uint32_t k = 0; k < LENGTHS; k++) {
        collect_one(&s, false, &r, 64);
        int64_t other = r.counts[OTHERS * COUNTS + COUNT_COMPLETED]; /* the last but one: `go` lists them backwards */
        /* A whole subinterval in which only the first was paused. */
        CHECK(other > 0 || k % 3 != 2);
        result_free(&r);
        if (k % 3 == 1)
            continue;
        struct edit edit = {.number = 0, .parameters = p};
        uint32_t number;
        uint64_t at_ns, discarded;
        edit.parameters.setting.iops = k % 3 == 0 ? 0.0 : -1.0;
        CHECK_EQUAL(engine_edit(engine, k + 1, &edit, 1), 0);
        while (!engine_edited(engine, &number, &at_ns, &discarded))
            wait_for_news(engine, 1);
    }
    engine_halt(engine);
    finish(engine, &s, 64);
}

/* A merge class's series of all results: its moments, and its histogram. */
struct distribution {
    struct moments moments;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

static void add_distribution(struct distribution *d, const struct result *r, uint32_t class, uint32_t series)
{
    size_t at = 0, place = (size_t)class * SERIES + series;
    const uint64_t *m = r->moments + place * MOMENTS;

    for (size_t n = 0; n < place; n++)
        at += r->spans[2 * n + 1];
    for (uint32_t n = 0; n < r->spans[2 * place + 1]; n++)
        d->buckets[r->spans[2 * place] + n] += bucket_at(r, at + n);
    d->moments.count += m[MOMENT_COUNT];
    d->moments.sum += m[MOMENT_SUM];
    if (m[MOMENT_MAX] > d->moments.max)
        d->moments.max = m[MOMENT_MAX];
}

/* One step of two instances, each a merge class of its own: `at_max` beside one of 150 IOPS whose submit call takes
 * `block_ns`; both then take exactly 100 us in storage. */
struct neighbours {
    struct distribution service, delayed, undelayed; /* of the one with iops: max */
    uint64_t waited_ns; /* by how much its completions were found after their time: what the backend knows */
};

static uint64_t reap_delay_ns(const struct neighbours *n)
{
    return n->delayed.moments.sum - n->undelayed.moments.sum;
}

static struct neighbours *beside_a_blocking_one(uint64_t block_ns)
{
    static struct neighbours n;
    struct sums s;
    struct result r;
    struct end end;
    uint32_t slow, fast;

    atomic_store(&told.blocks, open_lun(&slow));
    open_lun(&fast);
    atomic_store(&told.block_ns, block_ns);
    atomic_store(&told.delay_ns, 100000);
    create(1, slow, 0, 150.0, 1);
    create(0, fast, 0, -1.0, 8);
    engine_set_lease(engine, clock_now() + 60 * NS_PER_S);
    go(engine, 2, 2, LENGTH_NS, &s); /* class 0: instance 1 */
    engine_stop(engine, 19);
    do {
        while (engine_collect(engine, false, &r) == 1) {
            add_result(&s, &r, 8);
            for (uint32_t kind = 0; kind < SERIES_RESPONSE; kind++)
                add_distribution(&n.service, &r, 1, SERIES_SERVICE + kind);
            add_distribution(&n.delayed, &r, 1, SERIES_DELAYED);
            add_distribution(&n.undelayed, &r, 1, SERIES_UNDELAYED);
            result_free(&r);
        }
        wait_for_news(engine, 1);
    } while (!engine_ended(engine, &end));
    n.waited_ns = atomic_load(&told.waited_ns);
    printf("service mean %.1f us, p99 %.0f us; reap delay mean %.1f us of %.1f us; beside %llu\n",
           (double)n.service.moments.sum / (double)n.service.moments.count / 1e3,
           (double)histogram_percentile(n.service.buckets, &n.service.moments, 9900) / 1e3,
           (double)reap_delay_ns(&n) / (double)n.service.moments.count / 1e3,
           (double)n.waited_ns / (double)n.service.moments.count / 1e3, (unsigned long long)atomic_load(&told.beside));
    return &n;
}

/* Its own I/Os are the storage's; those of its neighbour wait for the thread meanwhile, which is the generator's part.
 * What is not recorded is less than a 32nd of a service time. */
static void blocking_neighbour(void)
{
    const struct neighbours *n = beside_a_blocking_one(2 * NS_PER_MS);

    CHECK_EQUAL(n->delayed.moments.count, n->undelayed.moments.count);
    CHECK(n->delayed.moments.sum <= n->service.moments.sum);
    CHECK(reap_delay_ns(n) + n->service.moments.sum / 32 >= n->waited_ns);
    CHECK(n->waited_ns + n->service.moments.sum / 32 >= reap_delay_ns(n));
    CHECK(atomic_load(&told.beside) < 32); /* the first few, until it is known which one blocks */
}

/* In turn with one that blocks: both are at max, so one submit call could take the I/Os of both. One does, and then
 * each has calls of its own. */
static void blocking_in_turn(void)
{
    struct sums s;
    struct result r;
    struct end end;
    uint32_t slow, fast;

    atomic_store(&told.blocks, open_lun(&slow));
    open_lun(&fast);
    atomic_store(&told.block_ns, 2 * NS_PER_MS);
    atomic_store(&told.delay_ns, 100000);
    create(0, fast, 0, -1.0, 8);
    create(1, slow, 0, -1.0, 1);
    engine_set_lease(engine, clock_now() + 60 * NS_PER_S);
    go(engine, 2, 2, LENGTH_NS, &s);
    engine_stop(engine, 9);
    do {
        while (engine_collect(engine, false, &r) == 1) {
            add_result(&s, &r, 8);
            result_free(&r);
        }
        wait_for_news(engine, 1);
    } while (!engine_ended(engine, &end));
    CHECK(s.submitted > 1000);
    CHECK_EQUAL(atomic_load(&told.beside), 8);
}

/* Completions come 32 at once. A batch of as many I/Os would take 128 us to submit, for each of them on top of
 * storage's time. */
static void batch_in_time(void)
{
    struct distribution service = {0};
    struct sums s;
    struct result r;
    struct end end;
    uint32_t lun;

    open_lun(&lun);
    atomic_store(&told.each_ns, 4000);
    atomic_store(&told.together_ns, 131072);
    atomic_store(&told.delay_ns, 100000);
    create(0, lun, 0, -1.0, 32);
    start(1, &s);
    engine_stop(engine, 9);
    do {
        while (engine_collect(engine, false, &r) == 1) {
            add_result(&s, &r, 32);
            for (uint32_t kind = 0; kind < SERIES_RESPONSE; kind++)
                add_distribution(&service, &r, 0, SERIES_SERVICE + kind);
            result_free(&r);
        }
        wait_for_news(engine, 1);
    } while (!engine_ended(engine, &end));
    uint64_t submitted = atomic_load(&told.submitted), before_ns = atomic_load(&told.before_ns);
    printf("%.1f I/Os in a call; of a service time of %.1f us, %.1f us are the batch's\n",
           (double)submitted / (double)atomic_load(&told.calls),
           (double)service.moments.sum / (double)service.moments.count / 1e3,
           (double)before_ns / (double)submitted / 1e3);
    CHECK(before_ns / submitted < service.moments.sum / service.moments.count / 8);
}

/* Means of I/Os, ns. */
struct means {
    double service, reap_delay, wait, lateness; /* wait: of the response time */
    double cycle;                               /* of a tag: from one I/O to its next */
};

/* They take the thread's core for so long in each such time. */
struct others {
    uint64_t of_ns, ns;
};

static const struct others nobody = {0, 0}, busy_others = {4 * NS_PER_MS, 3 * NS_PER_MS},
                           rare_others = {199 * NS_PER_MS, 35 * NS_PER_MS};

/* Of instance 0 in so many subintervals. */
static struct means means_beside(struct others others, uint32_t instances, uint32_t tags, uint32_t subintervals)
{
    uint32_t class = instances - 1; /* rows are in reverse order, see go() */
    double completed = 0, service = 0, response = 0, lateness = 0, delay = 0;
    struct sums s;
    struct result r;
    struct end end;

    if (SIMULATED)
        simulation_take_cores(others.of_ns, others.ns);
    engine_set_lease(engine, clock_now() + 60 * NS_PER_S);
    go(engine, instances, instances, LENGTH_NS, &s);
    engine_stop(engine, subintervals - 1);
    do {
        while (engine_collect(engine, false, &r) == 1) {
            add_result(&s, &r, tags);
            completed += (double)in_class(&r, class, MOMENT_COUNT, SERIES_SERVICE, SERIES_RESPONSE);
            service += (double)in_class(&r, class, MOMENT_SUM, SERIES_SERVICE, SERIES_RESPONSE);
            response += (double)in_class(&r, class, MOMENT_SUM, SERIES_RESPONSE, SERIES_LATENESS);
            lateness += (double)in_class(&r, class, MOMENT_SUM, SERIES_LATENESS, SERIES_LATENESS + 1);
            delay += (double)r.thread_figures[THREAD_REAP_DELAY_SUM];
            result_free(&r);
        }
        wait_for_news(engine, 1);
    } while (!engine_ended(engine, &end));
    if (SIMULATED)
        simulation_take_cores(0, 0);
    return (struct means){service / completed, delay / (double)s.completed, (response - service) / completed,
                          lateness / completed, tags * (double)subintervals * LENGTH_NS / completed};
}

static void create_as(const struct parameters *p, uint32_t number, uint32_t lun)
{
    struct ceiling ceiling = {p->setting.maxtags, MOST_BLOCKSIZE};

    CHECK_EQUAL(engine_create(engine, number, lun, 0, ceiling, &everywhere, p), 0);
}

/* Of I/Os that take `service_ns` in storage, in a queue of so many requests; 0: without a limit. */
static struct means means_of(const struct parameters *p, uint32_t requests, uint64_t service_ns, struct others others,
                             uint32_t subintervals)
{
    uint32_t lun;

    open_lun(&lun)->queue.nr_requests = requests;
    atomic_store(&told.delay_ns, service_ns);
    create_as(p, 0, lun);
    struct means means = means_beside(others, 1, p->setting.maxtags, subintervals);
    CHECK_EQUAL(engine_delete(engine, 0), 0);
    CHECK_EQUAL(engine_close_lun(engine, lun), 0);
    return means;
}

/* A second of I/Os that take 100 us in storage. */
static struct means one_second(double iops, uint32_t tags, uint64_t drop_after_ns, bool beside)
{
    struct parameters p = {
        .fixed.drop_after_ns = drop_after_ns,
        .setting = {.iops = iops, .fraction_read = 0.5, .maxtags = tags, .blocksize = 4096},
    };

    return means_of(&p, 0, 100000, beside ? busy_others : nobody, 20);
}

/* What I/Os take longer beside others is the delay with which they are reaped, whether the thread sleeps until then or
 * works. */
static void preempted_with(uint32_t tags)
{
    struct means alone = one_second(-1.0, tags, 0, false), beside = one_second(-1.0, tags, 0, true);

    CHECK(alone.reap_delay == 0.0);
    CHECK(alone.service == 100000.0 + BATCH_NS);
    CHECK(beside.service > 3.9 * 100000.0); /* it has a quarter of its core */
    CHECK(fabs(beside.service - alone.service - beside.reap_delay) < 0.001 * beside.reap_delay);
}

static void preempted(void)
{
    preempted_with(1);
    preempted_with(8);
}

/* An I/O that was gathered before a boundary and goes after it was due all the while. */
static void overtaken(void)
{
    int64_t due = 0, waiting = 0;
    struct sums s;
    struct result r;
    struct end end;
    uint32_t lun;

    open_lun(&lun);
    create(0, lun, 0, 10.0, 1); /* one falls due in each second subinterval */
    atomic_store(&told.prepare_ns, LENGTH_NS);
    start(1, &s);
    engine_stop(engine, 3);
    do {
        while (engine_collect(engine, false, &r) == 1) {
            due += r.counts[COUNT_DUE];
            bool waits = r.counts[COUNT_BACKLOG] > 0;
            waiting += waits;
            CHECK_EQUAL(r.counts[COUNT_IN_FLIGHT], 0);
            CHECK_EQUAL(r.counts[COUNT_OLDEST_OUTSTANDING_NS] > 0, waits);
            CHECK(r.counts[COUNT_OLDEST_OUTSTANDING_NS] <= (int64_t)LENGTH_NS);
            result_free(&r);
        }
        wait_for_news(engine, 1);
    } while (!engine_ended(engine, &end));
    CHECK_EQUAL(due, 2);
    CHECK_EQUAL(waiting, 1);
}

/* At a rate that one tag bears easily, nothing but the generator makes an I/O wait for it. */
static void late_for_a_tag(void)
{
    struct means alone = one_second(2000.0, 1, 0, false), beside = one_second(2000.0, 1, 0, true);

    CHECK(alone.wait == 0.0 && alone.lateness == 0.0);
    CHECK(beside.wait > 1e6);
    CHECK(fabs(beside.lateness - beside.wait) < 0.001 * beside.wait);
}

/* Nor where an I/O that waits for too long is discarded, whether one does or not. And where the storage is overloaded,
 * it is the storage that makes them wait, though the generator is late as well. */
static void late_for_a_tag_expiring(void)
{
    for (uint32_t tags = 1; tags <= 8; tags *= 8) {
        double borne = 2000.0 * tags, too_much = 30000.0 * tags;
        struct means alone = one_second(borne, tags, 2 * NS_PER_MS, false);
        struct means overloaded = one_second(too_much, tags, 2 * NS_PER_MS, false);
        struct means late_as_well = one_second(too_much, tags, 20 * NS_PER_MS, true);
        struct means beside[] = {
            one_second(borne, tags, 10 * NS_PER_S, true), /* none expires */
            one_second(borne, tags, 2 * NS_PER_MS, true),
        };

        CHECK(alone.wait < 100.0 && fabs(alone.lateness - alone.wait) < 1.0);
        CHECK(overloaded.wait > 1.9 * NS_PER_MS && overloaded.lateness < 0.005 * overloaded.wait);
        CHECK(late_as_well.wait > 19.0 * NS_PER_MS && late_as_well.lateness < 0.05 * late_as_well.wait);
        for (uint32_t n = 0; n < 2; n++) {
            CHECK(beside[n].wait > 0.5 * NS_PER_MS);
            CHECK(fabs(beside[n].lateness - beside[n].wait) < 0.01 * beside[n].wait);
        }
    }
}

/* What a user's cycle is longer beside others is what the generator adds to it: lateness and reap delay. So it is
 * whether the queue is full always, now and then, or has no limit; and whether others come often or once in a while. Of
 * I/Os that completed while the thread had no core the delay may be told too long, and the lateness of those that wait
 * for them as much; and what was not waited for because all were late is no negative lateness. */
static void late_users(void)
{
    static const struct {
        uint32_t tags, requests;
        uint64_t think_us, service_us;
    } cases[] = {
        {64, 0, 5000, 2000}, {8, 1, 20000, 100}, {8, 1, 20000, 2000}, {8, 1, 1, 100},        {64, 12, 5000, 100},
        {64, 12, 1, 1000},   {8, 6, 1000, 5000}, {8, 6, 1000, 10000}, {64, 12, 20000, 1000}, {64, 12, 5000, 10000},
    };
    const struct others others[] = {busy_others, rare_others};
    const double least = 50000.0; /* of a mean, by the begin and the end */

    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        struct means beside_others[2];
        uint32_t lun, tags = cases[n].tags;
        open_lun(&lun)->queue.nr_requests = cases[n].requests;
        atomic_store(&told.delay_ns, cases[n].service_us * 1000);
        create_users(lun, tags, cases[n].think_us * 1000);
        for (size_t o = 0; o < sizeof others / sizeof *others; o++)
            beside_others[o] = means_beside(others[o], 1, tags, 60);
        struct means alone = means_beside(nobody, 1, tags, 60); /* nor is it late for the steps before */
        CHECK(alone.lateness < 3.0 * BATCH_NS);
        CHECK_EQUAL(engine_delete(engine, 0), 0);
        for (size_t o = 0; o < sizeof others / sizeof *others; o++) {
            struct means beside = beside_others[o];
            double longer = beside.cycle - alone.cycle, delay = beside.service - alone.service;
            double added = beside.lateness + delay, told_too_long = fmax(beside.reap_delay / fmax(delay, 1.0), 1.0);
            printf("%u users of %u: a cycle is longer by %.3f ms; late %.3f, delay %.3f, told as %.3f\n", cases[n].tags,
                   cases[n].requests, longer / 1e6, beside.lateness / 1e6, delay / 1e6, beside.reap_delay / 1e6);
            CHECK(added > 0.95 * longer - least);
            CHECK(added < 1.15 * told_too_long * longer + least);
        }
    }
}

/* Who goes at a rate beside users of a queue of one is late by what a stall makes it wait, behind the users that waited
 * with it, too; also one of 8 that were users before, and behind. */
static void late_beside_users(void)
{
    struct parameters p = users(8, 1000), others = users(8, 20 * NS_PER_MS);
    uint32_t lun;

    open_lun(&lun)->queue.nr_requests = 1;
    atomic_store(&told.delay_ns, 100000);
    create_as(&p, 0, lun);
    create_as(&others, 1, lun);
    means_beside(busy_others, 2, 8, 20);
    set_rate(1, p, 100.0, NULL);
    struct means alone = means_beside(nobody, 2, 8, 60), beside = means_beside(rare_others, 2, 8, 60);

    CHECK(beside.wait - alone.wait > 2.0 * NS_PER_MS); /* 35 ms / 2 in a sixth of the time */
    CHECK(fabs(beside.lateness - (beside.wait - alone.wait)) < 0.05 * beside.wait);
}

/* Who waits for the room of an I/O of the last step waits for the storage, however late that one was. */
static void behind_a_late_one(void)
{
    struct sums s;
    uint32_t lun;

    engine->step.catch_ns = NS_PER_MS;
    CHECK_EQUAL(engine_spin(engine, SPIN_OFF), 0); /* deaf only while it sleeps */
    struct lun *l = open_lun(&lun);
    l->queue.nr_requests = 1;
    create(0, lun, 0, 20.0, 4);
    start(1, &s);
    engine_stop(engine, 3);
    uint64_t start_ns = engine->step.start_ns;
    sleep_until(start_ns + LENGTH_NS + LENGTH_NS / 2);
    atomic_store(&told.hung, l);
    atomic_store(&told.deaf_until_ns, start_ns + 3 * LENGTH_NS + LENGTH_NS / 2);
    struct moments_of late = moments_until_the_end(&s, 4);
    CHECK(late.lateness_ns > LENGTH_NS);
    start(1, &s);
    engine_stop(engine, 3);
    sleep_until(engine->step.start_ns + 2 * LENGTH_NS + LENGTH_NS / 2);
    atomic_store(&told.hung, NULL);
    struct moments_of behind = moments_until_the_end(&s, 4);
    CHECK(behind.response_ns > LENGTH_NS);
    CHECK(behind.lateness_ns < behind.paced * (BATCH_NS + POLL_NS));
}

/* Nor does a neighbour hide what users of a queue are late by: one at a rate, one that is late all the time, one
 * without a think time, and one that has no I/O at all. */
static void late_users_beside_others(void)
{
    static const struct {
        double iops;
        uint32_t neighbours_tags, tags;
        uint64_t think_us;
    } cases[] = {{200.0, 64, 64, 5000},
                 {100000.0, 4, 64, 5000},
                 {-1.0, 4, 64, 5000},
                 {0.0, 4, 64, 5000},
                 {200.0, 64, 16, 20000}};

    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        struct parameters p = users(cases[n].tags, cases[n].think_us * 1000);
        uint32_t lun;
        open_lun(&lun)->queue.nr_requests = 12;
        atomic_store(&told.delay_ns, NS_PER_MS);
        create_as(&p, 0, lun);
        create(1, lun, 0, cases[n].iops, cases[n].neighbours_tags);
        struct means alone = means_beside(nobody, 2, 64, 60), beside = means_beside(busy_others, 2, 64, 60);
        double longer = (beside.cycle - alone.cycle) * cases[n].tags / 64;
        double added = beside.lateness + beside.service - alone.service;
        printf("beside %.0f IOPS a cycle is longer by %.3f ms; late %.3f\n", cases[n].iops, longer / 1e6,
               beside.lateness / 1e6);
        CHECK(alone.lateness < 3.0 * BATCH_NS);
        CHECK(added > 0.95 * longer && added < 1.15 * longer);
        CHECK_EQUAL(engine_delete(engine, 0), 0);
        CHECK_EQUAL(engine_delete(engine, 1), 0);
    }
}

/* Who takes late room of a queue first leaves the others their part of what all lost. */
static void late_users_of_two_loads(void)
{
    static const struct {
        uint32_t tags[2];
        uint64_t think_us, service_us;
    } cases[] = {
        {{4, 64}, 20000, 1000},  {{64, 4}, 20000, 1000},  {{64, 64}, 20000, 1000}, {{32, 16}, 20000, 5000},
        {{16, 32}, 20000, 5000}, {{64, 8}, 5000, 1000},   {{8, 64}, 5000, 1000},   {{64, 64}, 5000, 10000},
        {{32, 32}, 40000, 6000}, {{24, 24}, 20000, 5000},
    };

    for (size_t n = 0; n < 2 * sizeof cases / sizeof *cases; n++) {
        uint32_t c = (uint32_t)n / 2, lun;
        open_lun(&lun)->queue.nr_requests = 12;
        atomic_store(&told.delay_ns, cases[c].service_us * 1000);
        for (uint32_t k = 0; k < 2; k++) {
            struct parameters p = users(cases[c].tags[k], cases[c].think_us * 1000);
            create_as(&p, k, lun);
        }
        struct means alone = means_beside(nobody, 2, 64, 60);
        struct means beside = means_beside(n % 2 ? rare_others : busy_others, 2, 64, 60);
        double longer = (beside.cycle - alone.cycle) * cases[c].tags[0] / 64;
        double added = beside.lateness + beside.service - alone.service;
        double told_too_long = fmax(beside.reap_delay / fmax(beside.service - alone.service, 1.0), 1.0);
        printf("%u users beside %u: a cycle is longer by %.3f ms; late %.3f\n", cases[c].tags[0], cases[c].tags[1],
               longer / 1e6, beside.lateness / 1e6);
        CHECK(added > 0.9 * longer - 50000.0);
        CHECK(added < 1.15 * told_too_long * longer + 50000.0);
        CHECK(alone.lateness < 3.0 * BATCH_NS);
        CHECK_EQUAL(engine_delete(engine, 0), 0);
        CHECK_EQUAL(engine_delete(engine, 1), 0);
    }
}

/* What an instance left in flight comes back in a step that it has no part in, and that has shares of its own. */
static void left_out(void)
{
    struct parameters p = users(16, NS_PER_MS);
    struct sums s;
    uint32_t lun, other;

    engine->step.catch_ns = NS_PER_MS;
    open_lun(&other);
    struct lun *l = open_lun(&lun);
    l->queue.nr_requests = 12;
    create(0, other, 0, -1.0, 1);
    create_as(&p, 1, lun);
    atomic_store(&told.hung, l);
    atomic_store(&told.delay_ns, NS_PER_MS);
    start(2, &s);
    CHECK(stop_after(1, &s, 16).sums.uncaught >= 12);
    start(1, &s);
    engine_stop(engine, 9);
    if (SIMULATED)
        simulation_take_cores(busy_others.of_ns, busy_others.ns);
    sleep_until(engine->step.start_ns + LENGTH_NS);
    atomic_store(&told.hung, NULL);
    finish(engine, &s, 16);
    if (SIMULATED)
        simulation_take_cores(0, 0);
    CHECK(s.completed > 50);
}

/* What one batch takes too long all 8 users of a queue of one go too late. */
static void users_behind_a_batch(void)
{
    struct sums s;
    uint32_t lun;

    open_lun(&lun)->queue.nr_requests = 1;
    atomic_store(&told.delay_ns, NS_PER_MS);
    create_users(lun, 8, 1000);
    start(1, &s);
    engine_stop(engine, 5);
    sleep_until(engine->step.start_ns + LENGTH_NS);
    atomic_store(&told.prepare_ns, 35 * NS_PER_MS);
    uint64_t lateness_ns = moments_until_the_end(&s, 8).lateness_ns;
    CHECK(lateness_ns > 8 * 35 * NS_PER_MS && lateness_ns < 8 * 36 * NS_PER_MS);
}

/* Users who wait since the kernel says EAGAIN wait for the device. */
static void users_again(void)
{
    uint32_t lun;

    open_lun(&lun)->nowait = true;
    atomic_store(&told.room, 12);
    atomic_store(&told.delay_ns, 10 * NS_PER_MS);
    create_users(lun, 64, 5 * NS_PER_MS);
    struct means means = means_beside(nobody, 1, 64, 60);
    CHECK(means.lateness < 3.0 * BATCH_NS);
}

static const struct scenario {
    const char *name;
    void (*play)(void);
    uint32_t threads;
} scenarios[] = {
    {"errors", errors, 1},
    {"refused", refused, 1},
    {"taken_in_parts", taken_in_parts, 1},
    {"again_from_the_call", again_from_the_call, 1},
    {"again", again, 1},
    {"always_again", always_again, 1},
    {"other_queues", other_queues, 2},
    {"same_queue", same_queue, 3},
    {"not_pinned", not_pinned, 2},
    {"one_not_pinned", one_not_pinned, 4},
    {"filled_by_others", filled_by_others, 1},
    {"full_queue", full_queue, 1},
    {"resized", resized, 1},
    {"hung", hung, 1},
    {"came_back", came_back, 1},
    {"new_data", new_data, 1},
    {"died", died, 2},
    {"stray_behind", stray_behind, 1},
    {"stray_before", stray_before, 1},
    {"stray_elsewhere", stray_elsewhere, 1},
    {"stray_far", stray_far, 1},
    {"stray_write", stray_write, 1},
    {"stray_trim", stray_trim, 1},
    {"stray_zeroes", stray_zeroes, 1},
    {"stray_direction", stray_direction, 1},
    {"lease_while_deaf", lease_while_deaf, 1},
    {"stuck_thread", stuck_thread, 2},
    {"held_thread", held_thread, 2},
    {"stalled_at_the_end", stalled_at_the_end, 1},
    {"late_by_turns", late_by_turns, 2},
    {"stalled_even", stalled_even, 1},
    {"stalled_exponential", stalled_exponential, 1},
    {"edited_while_stalled", edited_while_stalled, 1},
    {"lease_in_submit", lease_in_submit, 1},
    {"lease_renewed_in_submit", lease_renewed_in_submit, 1},
    {"failed_after_the_end", failed_after_the_end, 1},
    {"short_after_the_end", short_after_the_end, 1},
    {"edited_and_deleted", edited_and_deleted, 2},
    {"paused", paused, 1},
    {"conserved", conserved, 1},
    {"conserved_expiring", conserved_expiring, 1},
    {"conserved_until", conserved_until, 1},
    {"conserved_flushing", conserved_flushing, 1},
    {"conserved_mixed", conserved_mixed, 1},
    {"conserved_skewed", conserved_skewed, 1},
    {"skewed", skewed, 1},
    {"let_go", let_go, 1},
    {"let_go_by_an_end", let_go_by_an_end, 1},
    {"beside_the_held", beside_the_held, 1},
    {"failed_flushes", failed_flushes, 1},
    {"behind_flushes", behind_flushes, 1},
    {"behind_a_late_flush", behind_a_late_flush, 1},
    {"behind_flushes_of_free_tags", behind_flushes_of_free_tags, 1},
    {"overtaken_flushes", overtaken_flushes, 1},
    {"given_back_flush", given_back_flush, 1},
    {"flushing", flushing, 1},
    {"hung_flush", hung_flush, 1},
    {"paused_flush", paused_flush, 1},
    {"ended_by_errors", ended_by_errors, 1},
    {"ended_late", ended_late, 1},
    {"ended_after_a_pause", ended_after_a_pause, 1},
    {"ended_after_a_stall", ended_after_a_stall, 1},
    {"conserved_expiring_at_random", conserved_expiring_at_random, 1},
    {"expired", expired, 1},
    {"overloaded_expiring", overloaded_expiring, 1},
    {"blocking_neighbour", blocking_neighbour, 1},
    {"blocking_in_turn", blocking_in_turn, 1},
    {"batch_in_time", batch_in_time, 1},
    {"paused_in_turn", paused_in_turn, 1},
    {"full_device", full_device, 1},
    {"full_share", full_share, 1},
    {"came_back_to_think", came_back_to_think, 1},
    {"fewer_users", fewer_users, 1},
    {"idle_neighbour", idle_neighbour, 2},
    {"busy_neighbours", busy_neighbours, 2},
    {"suspended", suspended, 1},
    {"counter_back", counter_back, 1},
    {"counter_ahead", counter_ahead, 1},
    {"preempted", preempted, 1},
    {"overtaken", overtaken, 1},
    {"late_for_a_tag", late_for_a_tag, 1},
    {"late_users", late_users, 1},
    {"late_beside_users", late_beside_users, 1},
    {"users_again", users_again, 1},
    {"late_users_of_two_loads", late_users_of_two_loads, 1},
    {"left_out", left_out, 1},
    {"late_users_beside_others", late_users_beside_others, 1},
    {"users_behind_a_batch", users_behind_a_batch, 1},
    {"behind_a_late_one", behind_a_late_one, 1},
    {"late_for_a_tag_expiring", late_for_a_tag_expiring, 1},
    {"caught_up", caught_up, 1},
    {"slowed_down", slowed_down, 1},
};

int main(int count, char **arguments)
{
    uint32_t left[ENGINE_THREADS];
    int cpus[] = {-1, -1, -1, -1};

    CHECK(count >= 3); /* scenario, path, and what it takes */
    path = arguments[2];
    words = arguments + 3;
    CHECK(strcmp(arguments[1], "skewed") == 0 || count == (strcmp(arguments[1], "flushing") ? 3 : 12));
    for (size_t n = 0; n < sizeof scenarios / sizeof *scenarios; n++) {
        if (strcmp(scenarios[n].name, arguments[1]) != 0)
            continue;
        CHECK_EQUAL(engine_open(&engine, &faulty, cpus, scenarios[n].threads), 0);
        scenarios[n].play();
        atomic_store(&told.hung, NULL);
        CHECK_EQUAL(engine_close(engine, 5.0, left), 0);
        engine_free(engine);
        return 0;
    }
    fprintf(stderr, "there is no scenario %s\n", arguments[1]);
    return 2;
}
