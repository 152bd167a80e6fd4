#define _GNU_SOURCE
#include "tsc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "clock.h"

enum { READINGS = 200 };

/* How long the test of the order may take when an engine is opened; on cores that are free it takes a millisecond. */
#define ORDER_NS (500 * NS_PER_MS)

#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

#ifdef __x86_64__
enum { LEAF_FEATURES = 0x80000001, LEAF_POWER = 0x80000007, RDTSCP = 1 << 27, INVARIANT_TSC = 1 << 8 };

static bool is_invariant(void)
{
    unsigned a, b, c, features = 0, power = 0;

    return __get_cpuid((unsigned)LEAF_FEATURES, &a, &b, &c, &features) && (features & RDTSCP) &&
           __get_cpuid((unsigned)LEAF_POWER, &a, &b, &c, &power) && (power & INVARIANT_TSC);
}
#else
static bool is_invariant(void)
{
    return false;
}
#endif

static void read_clock_source(char *name, size_t size)
{
    int fd = open(CLOCK_SOURCE, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, name, size - 1);

    if (fd >= 0)
        close(fd);
    name[length > 0 ? length : 0] = '\0';
    name[strcspn(name, "\n")] = '\0';
}

/* The order across cores. */

struct relay {
    _Alignas(64) _Atomic uint64_t last; /* the latest reading that anyone made known */
    _Alignas(64) _Atomic uint32_t working;
    uint64_t turns, until_ns;
};

struct runner {
    struct relay *relay;
    pthread_t thread;
    uint64_t turns, backwards, worst_ticks, least_step;
};

static void take_turn(struct runner *r, uint64_t *own)
{
    uint64_t last = atomic_load_explicit(&r->relay->last, memory_order_acquire);
    uint64_t now = tsc_read();

    if (last != *own) { /* another core's, so read before ours */
        r->turns++;
        if (now < last) {
            r->backwards++;
            if (last - now > r->worst_ticks)
                r->worst_ticks = last - now;
        } else if (now - last < r->least_step) {
            r->least_step = now - last;
        }
    }
    if (now > last && atomic_compare_exchange_strong_explicit(&r->relay->last, &last, now, memory_order_acq_rel,
                                                              memory_order_relaxed))
        *own = now;
}

static void *run_relay(void *argument)
{
    struct runner *r = argument;
    uint64_t own = 0;
    bool working = true;

    /* Those who are done go on, for the others to have someone to take turns with. */
    for (uint32_t n = 0; atomic_load_explicit(&r->relay->working, memory_order_relaxed); n++) {
        take_turn(r, &own);
        if (n % 64 != 0)
            continue;
        if (working && (r->turns >= r->relay->turns || clock_now() >= r->relay->until_ns)) {
            working = false;
            atomic_fetch_sub_explicit(&r->relay->working, 1, memory_order_relaxed);
        }
    }
    return NULL;
}

static int start_on(struct runner *r, uint32_t core)
{
    pthread_attr_t attributes;
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(core, &one);
    pthread_attr_init(&attributes);
    int error = pthread_attr_setaffinity_np(&attributes, sizeof one, &one);
    if (error == 0)
        error = pthread_create(&r->thread, &attributes, run_relay, r);
    pthread_attr_destroy(&attributes);
    return -error;
}

static void sum_up(struct tsc_order *order, const struct runner *runners)
{
    order->least_turns = order->least_step = UINT64_MAX;
    for (uint32_t n = 0; n < order->cores; n++) {
        const struct runner *r = &runners[n];
        order->backwards += r->backwards;
        if (r->turns < order->least_turns)
            order->least_turns = r->turns;
        if (r->worst_ticks > order->worst_ticks)
            order->worst_ticks = r->worst_ticks;
        if (r->least_step < order->least_step)
            order->least_step = r->least_step;
    }
}

int tsc_order(struct tsc_order *order, uint64_t turns, uint64_t most_ns)
{
    cpu_set_t cores;
    uint32_t started = 0;
    int result = sched_getaffinity(0, sizeof cores, &cores) == 0 ? 0 : -errno;

    *order = (struct tsc_order){.cores = result == 0 ? (uint32_t)CPU_COUNT(&cores) : 0};
    if (result != 0 || order->cores < 2)
        return result;
    struct relay relay = {.turns = turns, .until_ns = clock_now() + most_ns};
    struct runner *runners = calloc(order->cores, sizeof *runners);
    if (!runners)
        return -ENOMEM;
    atomic_store(&relay.working, order->cores);
    for (uint32_t core = 0; core < CPU_SETSIZE && started < order->cores && result == 0; core++) {
        if (!CPU_ISSET(core, &cores))
            continue;
        runners[started] = (struct runner){.relay = &relay, .least_step = UINT64_MAX};
        result = start_on(&runners[started], core);
        started += result == 0;
    }
    if (result != 0)
        atomic_store(&relay.working, 0);
    for (uint32_t n = 0; n < started; n++)
        pthread_join(runners[n].thread, NULL);
    if (result == 0)
        sum_up(order, runners);
    free(runners);
    return result;
}

bool tsc_check(const struct tsc_order *order, char why[TSC_WORDS])
{
    char source[32];

    read_clock_source(source, sizeof source);
    if (!is_invariant())
        snprintf(why, TSC_WORDS, "this CPU has no cycle counter that ticks at one rate (CPUID 0x80000007, EDX bit 8)");
    else if (strcmp(source, "tsc") != 0)
        snprintf(why, TSC_WORDS,
                 "the kernel keeps time by %s and not by tsc: it may have found the counter unsteady (see dmesg)",
                 *source ? source : "an unknown clock");
    else if (order->backwards)
        snprintf(why, TSC_WORDS,
                 "the cores' counters differ: %llu times one read less than another had before, by up to %llu ticks",
                 (unsigned long long)order->backwards, (unsigned long long)order->worst_ticks);
    else if (order->cores > 1 && order->least_turns < ORDER_TURNS)
        snprintf(why, TSC_WORDS,
                 "the order across cores could not be tested: a core had %llu turns, %d are needed; "
                 "try again while the machine is idle",
                 (unsigned long long)order->least_turns, ORDER_TURNS);
    else
        why[0] = '\0';
    return why[0] == '\0';
}

static bool trusted;

static void find_out(void)
{
    struct tsc_order order = {0};
    char why[TSC_WORDS];

    if (is_invariant() && tsc_order(&order, ORDER_TURNS, ORDER_NS) == 0)
        trusted = tsc_check(&order, why);
}

bool tsc_trusted(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find_out);
    return trusted;
}

struct reading tsc_bracket(int clock)
{
    struct reading best = {.width = UINT64_MAX};

    for (uint32_t n = 0; n < READINGS; n++) {
        uint64_t before = tsc_read(), ns = clock_read(clock), after = tsc_read();
        if (after - before < best.width)
            best = (struct reading){.ticks = before + (after - before) / 2, .ns = ns, .width = after - before};
    }
    return best;
}
