/* How late a program leaves that does nothing else: floor CORE SECONDS IOPS
 *
 * Exponential gaps, as of random_independent. It sleeps until LEAD_NS before each due time and busy-waits the rest,
 * without a budget and without any I/O: what is late here is the machine's doing, and no engine can be on time then.
 * Prints a JSON object: lateness (p50, mean, p99) in us; shares of the time it busy-waited and waited for its core.
 */
#define _GNU_SOURCE
#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define LEAD_NS UINT64_C(200000) /* the engine's longest */

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t next_gap(double iops)
{
    return (uint64_t)(-log1p(-drand48()) / iops * 1e9);
}

/* For how long it has waited for its core. */
static uint64_t waited_ns(void)
{
    FILE *file = fopen("/proc/thread-self/schedstat", "r");
    uint64_t ran_ns, waited = 0;

    if (file && fscanf(file, "%lu %lu", &ran_ns, &waited) != 2)
        waited = 0;
    if (file)
        fclose(file);
    return waited;
}

static int compare(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

    return (one > other) - (one < other);
}

static void sleep_until(uint64_t ns)
{
    struct timespec until = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    double seconds = atof(words[2]), iops = atof(words[3]), sum_ns = 0;
    size_t room = (size_t)(seconds * iops * 2) + 1000, known = 0;
    uint64_t *late_ns = malloc(room * sizeof *late_ns);
    cpu_set_t core;

    CPU_ZERO(&core);
    CPU_SET((size_t)atoi(words[1]), &core);
    if (!late_ns || sched_setaffinity(0, sizeof core, &core) != 0)
        return 1;
    prctl(PR_SET_TIMERSLACK, 1);
    uint64_t began_ns = clock_ns(), end_ns = began_ns + (uint64_t)(seconds * 1e9), before_ns = waited_ns();
    uint64_t busy_ns = 0;
    for (uint64_t due_ns = began_ns; due_ns < end_ns && known < room; due_ns += next_gap(iops)) {
        uint64_t now_ns = clock_ns(), awake_ns;
        if (now_ns + LEAD_NS < due_ns) {
            sleep_until(due_ns - LEAD_NS);
            now_ns = clock_ns();
        }
        awake_ns = now_ns;
        while (now_ns < due_ns)
            now_ns = clock_ns();
        busy_ns += now_ns - awake_ns;
        late_ns[known++] = now_ns - due_ns;
        sum_ns += (double)(now_ns - due_ns);
    }
    double length_ns = (double)(clock_ns() - began_ns), waited = (double)(waited_ns() - before_ns);
    qsort(late_ns, known, sizeof *late_ns, compare);
    printf("{\"late_p50_us\": %.3f, \"late_mean_us\": %.3f, \"late_p99_us\": %.3f, "
           "\"busy_wait\": %.4f, \"waited\": %.4f}\n",
           (double)late_ns[known / 2] / 1e3, sum_ns / (double)known / 1e3,
           (double)late_ns[known - 1 - known / 100] / 1e3, (double)busy_ns / length_ns, waited / length_ns);
    return 0;
}
