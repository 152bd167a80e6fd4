/* Room in a queue, taken and given back by made-up threads of random settings: after every step the laws hold. */
#include "luns/queue_room.h"
#include "check.h"
#include "load/random.h"

#include <string.h>

enum { THREADS = 8 };

struct one {
    struct holding holding;
    uint32_t tags, weight, in_flight; /* of its settings; requests */
    bool waits, busy;
    double sum; /* of what was in flight */
};

static struct queue_room room;
static struct one all[THREADS];
static uint32_t threads;
static uint64_t stream;
static uint64_t debt; /* what threads whose I/Os became larger keep for one of these, before it was free */

static uint32_t below(uint32_t n)
{
    return (uint32_t)(random_next(&stream) % n);
}

static void set(struct one *o, uint32_t tags, uint32_t weight)
{
    debt += weight > o->holding.reserve ? weight - o->holding.reserve : 0;
    holding_demand(&o->holding, (int64_t)tags * weight - (int64_t)o->tags * o->weight, weight, 0);
    o->tags = tags;
    o->weight = weight;
}

static void submit(struct one *o)
{
    while (o->busy && o->in_flight + o->weight <= o->tags * o->weight) {
        if (o->in_flight > 0 && !holding_take(&o->holding, o->in_flight, o->weight)) {
            holding_wait(&o->holding, o->in_flight, o->weight);
            o->waits = true;
            return;
        }
        o->in_flight += o->weight;
    }
    o->waits = false;
    holding_calm(&o->holding);
}

/* As a thread does: what waits goes on, if it can, as soon as something completed. */
static void complete(struct one *o, uint32_t most)
{
    for (uint32_t n = 0; n < most && o->in_flight > 0; n++) {
        o->in_flight -= o->in_flight < o->weight ? o->in_flight : o->weight;
        holding_release(&o->holding, o->in_flight);
    }
    submit(o);
}

static void check_laws(void)
{
    uint64_t in_flight = 0, held = 0, reserved = 0;

    for (uint32_t n = 0; n < threads; n++) {
        in_flight += all[n].in_flight;
        held += all[n].holding.held;
        reserved += all[n].holding.reserve;
        CHECK(all[n].in_flight <= all[n].holding.held);
        CHECK(!all[n].waits || all[n].in_flight > 0); /* its next completion asks again */
    }
    CHECK(in_flight <= (reserved > room.limit ? reserved : room.limit) + debt);
    CHECK_EQUAL((int64_t)held + atomic_load(&room.free), room.limit);
}

static void start(uint32_t limit, uint32_t count)
{
    memset(all, 0, sizeof all);
    threads = count;
    debt = 0;
    queue_room_init(&room, limit, threads, true);
    for (uint32_t n = 0; n < threads; n++)
        holding_init(&all[n].holding, &room);
    atomic_store(&room.blocking, 1);
}

static void go_on(uint32_t steps)
{
    for (uint32_t n = 0; n < threads; n++)
        all[n].sum = 0;
    for (uint32_t step = 0; step < steps; step++) {
        complete(&all[below(threads)], 1 + below(16));
        check_laws();
        for (uint32_t n = 0; n < threads; n++)
            all[n].sum += (double)all[n].in_flight / steps;
    }
}

/* Settings change all the time; then they stay, and whoever wants its part has it; then all end. */
static void random_settings(void)
{
    start(1 + below(300), 1 + below(THREADS));
    for (uint32_t n = 0; n < threads; n++)
        set(&all[n], 1, 1); /* the turns may leave one out */
    for (uint32_t turn = 0; turn < 40; turn++) {
        struct one *o = &all[below(threads)];
        o->busy = below(4) > 0;
        set(o, 1 + below(below(2) ? 2000 : 20), 1 + (below(3) ? 0 : below(6)));
        submit(o);
        check_laws();
        go_on(30);
    }
    for (uint32_t n = 0; n < threads; n++) {
        all[n].busy = true;
        submit(&all[n]);
    }
    go_on(1000);
    debt = 0; /* paid by what completed */
    go_on(4000);
    double wanted = 0, reserved = 0;
    for (uint32_t n = 0; n < threads; n++) {
        wanted += all[n].tags * all[n].weight;
        reserved += all[n].holding.reserve;
    }
    for (uint32_t n = 0; n < threads && reserved < room.limit; n++) {
        const struct one *o = &all[n];
        double most = o->tags * o->weight;
        double its = o->holding.reserve + (room.limit - reserved) * most / wanted;
        CHECK(o->sum >= (its < most ? its : most) * 0.6 - o->weight);
    }
    for (uint32_t n = 0; n < threads; n++) {
        all[n].busy = false;
        complete(&all[n], UINT32_MAX);
    }
    check_laws();
    for (uint32_t n = 0; n < threads; n++)
        CHECK_EQUAL(all[n].holding.held, all[n].holding.reserve);
    CHECK_EQUAL(atomic_load(&room.hungry), 0);
}

/* One of 120 tags, and others that could have thousands and do nothing, or next to nothing. */
static void idle_neighbours(void)
{
    start(128, 2 + below(4));
    for (uint32_t n = 0; n < threads; n++)
        set(&all[n], n ? 2000 : 120, 1);
    all[0].busy = true;
    for (uint32_t n = 1; n < threads; n++) {
        all[n].busy = true;
        submit(&all[n]); /* had all that there was */
        all[n].busy = false;
    }
    go_on(400);
    go_on(2000);
    CHECK(all[0].sum > 119 - threads);
}

int main(int count, char **words)
{
    uint64_t seed = strtoull(words[1], NULL, 10);

    CHECK(count == 3); /* the first case's number, how many */
    for (uint64_t n = seed; n < seed + strtoull(words[2], NULL, 10); n++) {
        stream = n;
        fprintf(stderr, "case %llu\n", (unsigned long long)n);
        random_settings();
        idle_neighbours();
    }
    return 0;
}
