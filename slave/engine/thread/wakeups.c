#define _GNU_SOURCE
#include "wakeups.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "time/clock.h"

/* Sorting 128 numbers takes 5 us, so not at every sleep. */
enum { SUMMARIZE_EVERY = 16, MEASURED = 32 };

#define SLEEP_NS UINT64_C(50000)
#define MEASURE_NS (5 * NS_PER_MS)

/* A stall of the machine says nothing about its timers. */
#define LONGEST_LATE_NS NS_PER_MS
#define HIGHEST_COST_NS UINT64_C(50000)

static int compare(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

    return (one > other) - (one < other);
}

/* The p99 of fewer than 64 is the latest; of all 128, the last but one (and two). */
static void summarize(struct wakeups *w)
{
    uint32_t known = w->count < WAKEUPS ? w->count : WAKEUPS;
    uint64_t sorted[WAKEUPS], sum_ns = 0;

    memcpy(sorted, w->late_ns, known * sizeof *sorted);
    qsort(sorted, known, sizeof *sorted, compare);
    for (uint32_t n = 0; n < known; n++)
        sum_ns += sorted[n];
    w->mean_ns = sum_ns / known;
    w->p90_ns = sorted[known - 1 - known / 10];
    w->p99_ns = sorted[known - 1 - known / 64];
}

void wakeups_add(struct wakeups *w, uint64_t late_ns)
{
    w->late_ns[w->count++ % WAKEUPS] = late_ns < LONGEST_LATE_NS ? late_ns : LONGEST_LATE_NS;
    if (w->count < SUMMARIZE_EVERY || w->count % SUMMARIZE_EVERY == 0)
        summarize(w);
}

void wakeups_add_cost(struct wakeups *w, uint64_t cpu_ns)
{
    int64_t known_ns = (int64_t)w->cost_ns, new_ns = (int64_t)(cpu_ns < HIGHEST_COST_NS ? cpu_ns : HIGHEST_COST_NS);

    w->cost_ns = (uint64_t)(known_ns ? known_ns + (new_ns - known_ns) / 8 : new_ns);
}

void wakeups_measure(struct wakeups *w)
{
    const struct timespec length = clock_timespec(SLEEP_NS);
    uint64_t began_ns = clock_now(), now_ns = began_ns;

    for (uint32_t n = 0; n < MEASURED && now_ns - began_ns < MEASURE_NS; n++) {
        uint64_t cpu_ns = clock_thread_cpu(), due_ns = clock_now() + SLEEP_NS;
        clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL);
        now_ns = clock_now();
        wakeups_add(w, now_ns > due_ns ? now_ns - due_ns : 0);
        wakeups_add_cost(w, clock_thread_cpu() - cpu_ns);
    }
}
