#include "busy_wait.h"

#include "time/clock.h"

/* A wait shorter than this is not worth a system call. */
#define SHORTEST_WAIT_NS 2000

/* A sleep that ends later than this is a matter of who has the core, which no alarm can make good. */
#define LONGEST_LEAD_NS UINT64_C(200000)

/* Parts of the time that busy-waiting may take, and what is saved of them. */
enum { SMALL_BUDGET = 16, LARGE_BUDGET = 2 };
#define SAVED_NS NS_PER_MS

/* Lateness shows above this part of the service time. */
enum { SHOWS = 50 };

/* Only so fast a device is waited for awake, and for so much longer than it usually takes. */
#define FAST_SERVICE_NS UINT64_C(20000)
#define PATIENCE(service_ns) ((service_ns) + (service_ns) / 2)

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t part_of_time(const struct busy_wait *b, const struct outlook *o)
{
    bool shows = b->wakeups.mean_ns > o->service_ns / SHOWS;

    return shows && !b->wanted ? LARGE_BUDGET : SMALL_BUDGET;
}

static void earn(struct busy_wait *b, const struct outlook *o)
{
    uint64_t earned_ns = b->credited_ns ? (o->now_ns - b->credited_ns) / part_of_time(b, o) : 0;

    b->credit_ns = least(b->credit_ns + earned_ns, SAVED_NS);
    b->credited_ns = o->now_ns;
}

/* Instead of sleeping, if the budget has room for all of it. */
static bool stays_awake(struct busy_wait *b, uint64_t now_ns, uint64_t until_ns)
{
    uint64_t wait_ns = until_ns - now_ns, free_ns = least(b->wakeups.cost_ns, wait_ns);

    if (b->credit_ns < wait_ns - free_ns)
        return false;
    b->free_ns = free_ns;
    b->awake_until_ns = until_ns;
    return true;
}

/* By how much a sleep of at most `wait_ns` is to end before what is waited for: the p99 of lateness, or the p90 where
 * that does not fit, or the budget runs short and does more for I/Os that way. */
static uint64_t lead(const struct busy_wait *b, uint64_t wait_ns)
{
    uint64_t p99_ns = least(b->wakeups.p99_ns, LONGEST_LEAD_NS);

    if (p99_ns + SHORTEST_WAIT_NS < wait_ns && b->credit_ns >= SAVED_NS / 2)
        return p99_ns;
    return least(b->wakeups.p90_ns, LONGEST_LEAD_NS);
}

/* Until something is due at `until_ns`. */
static uint64_t alarm_before(struct busy_wait *b, uint64_t now_ns, uint64_t until_ns)
{
    uint64_t lead_ns = lead(b, until_ns - now_ns);

    if (lead_ns + SHORTEST_WAIT_NS >= until_ns - now_ns)
        return stays_awake(b, now_ns, until_ns) ? now_ns : until_ns;
    return b->credit_ns >= lead_ns ? until_ns - lead_ns : until_ns;
}

uint64_t busy_wait_alarm(struct busy_wait *b, const struct outlook *o)
{
    uint64_t complete_ns = o->active_ns + PATIENCE(o->service_ns);

    if (o->until_ns <= o->now_ns + SHORTEST_WAIT_NS || o->now_ns < b->awake_until_ns)
        return o->now_ns;
    if (b->spin == SPIN_ON && (o->due || o->in_flight))
        return o->now_ns;
    if (b->spin == SPIN_OFF)
        return o->until_ns;
    earn(b, o);
    if (o->in_flight && o->service_ns < FAST_SERVICE_NS && o->now_ns < complete_ns &&
        stays_awake(b, o->now_ns, least(complete_ns, o->until_ns)))
        return o->now_ns;
    return o->until_ns == o->exact_ns ? alarm_before(b, o->now_ns, o->until_ns) : o->until_ns;
}

void busy_wait_rang(struct busy_wait *b, uint64_t alarm_ns, uint64_t until_ns, uint64_t now_ns)
{
    if (now_ns >= alarm_ns)
        wakeups_add(&b->wakeups, now_ns - alarm_ns);
    b->free_ns = 0;
    if (alarm_ns < until_ns)
        b->awake_until_ns = until_ns;
}

void busy_wait_spend(struct busy_wait *b, uint64_t ns)
{
    uint64_t free_ns = least(ns, b->free_ns);

    b->free_ns -= free_ns;
    b->credit_ns -= least(b->credit_ns, ns - free_ns);
}

void busy_wait_start(struct busy_wait *b)
{
    b->awake_until_ns = b->free_ns = b->credited_ns = 0;
    b->credit_ns = SAVED_NS;
    b->wanted = false;
}
