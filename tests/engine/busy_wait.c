/* A thread's waits on a simulated clock: busy_wait SPIN IOPS SERVICE LATE SPREAD COST WANTED SEED
 *
 * SPIN: 0 auto, 1 off, 2 on. I/Os fall due IOPS times a second at exponential gaps and complete SERVICE ns after they
 * were submitted; a sleep that its timer ends does so LATE ns late and up to SPREAD more, and takes COST ns of the
 * core. WANTED: others want the core. The clock runs for two seconds.
 *
 * Prints: I/Os; median, p99 and mean lateness, ns; sleeps, sleeps while something was due or in flight; time in
 * busy-waiting, ns; of that, at most so much that sleeps would have taken as well, and in waits too short for one; the
 * most by which busy-waiting, less these two, exceeded its budget since the start, or -1.
 */
#include <math.h>
#include <string.h>

#include "check.h"
#include "load/random.h"
#include "thread/busy_wait.h"
#include "time/clock.h"

enum { MOST = 1 << 18, STEP_NS = 100, WORK_NS = 500, TOO_SHORT_NS = 2000 };
#define LENGTH_NS (2 * NS_PER_S)
#define SAVED_NS (int64_t)NS_PER_MS

static uint64_t late_ns[MOST], flying[MOST], state;

static double uniform(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static int compare(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

    return (one > other) - (one < other);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int main(int count, char **words)
{
    static struct busy_wait b;
    uint64_t sleeps = 0, idle_sleeps = 0, waited = 0, spared = 0, brief = 0, sum = 0;
    uint32_t ios = 0, completed = 0;
    int64_t over = -1;

    CHECK(count == 9);
    double iops = atof(words[2]);
    uint64_t service = (uint64_t)atof(words[3]), late = (uint64_t)atof(words[4]), cost = (uint64_t)atof(words[6]);
    double spread = atof(words[5]);
    state = (uint64_t)atoll(words[8]);
    b.spin = (enum spin)atoi(words[1]);
    for (int n = 0; n < WAKEUPS; n++) {
        wakeups_add(&b.wakeups, late + (uint64_t)(spread * uniform()));
        wakeups_add_cost(&b.wakeups, cost);
    }
    busy_wait_start(&b);
    b.wanted = atoi(words[7]);

    const uint64_t start = NS_PER_S;
    uint64_t now = start, active = now, due = now, wait_until = 0;
    while (now < start + LENGTH_NS) {
        if (completed < ios && flying[completed] + service <= now) {
            completed++;
            active = now += WORK_NS;
            continue;
        }
        if (due <= now) {
            CHECK(ios < MOST);
            late_ns[ios] = now - due;
            sum += now - due;
            flying[ios++] = now;
            due += 1 + (uint64_t)(-log(uniform()) / iops * 1e9);
            active = now += WORK_NS;
            continue;
        }
        uint64_t complete = completed < ios ? flying[completed] + service : UINT64_MAX;
        struct outlook o = {.now_ns = now,
                            .active_ns = active,
                            .exact_ns = due,
                            .until_ns = earlier(due, now + 10 * NS_PER_MS),
                            .service_ns = service,
                            .due = true,
                            .in_flight = completed < ios};
        uint64_t alarm = busy_wait_alarm(&b, &o);
        CHECK(alarm <= due && alarm <= o.until_ns); /* no sleep is set to end after what is due */
        if (alarm > now) {
            CHECK(alarm - now > TOO_SHORT_NS || alarm < o.until_ns); /* nor set for what is too short */
            sleeps++;
            idle_sleeps += o.due || o.in_flight;
            uint64_t wakes = alarm + late + (uint64_t)(spread * uniform());
            if (complete < alarm) {
                now = complete + 1000;
            } else {
                now = wakes;
                busy_wait_rang(&b, alarm, o.until_ns, now);
            }
            continue;
        }
        if (wait_until <= now && b.awake_until_ns > now) { /* a wait that a sleep would have cost */
            wait_until = b.awake_until_ns;
            spared += earlier(b.free_ns, b.awake_until_ns - now);
        }
        uint64_t next = earlier(earlier(due, complete), now + STEP_NS), step = next > now ? next - now : 1;
        brief += o.until_ns <= now + TOO_SHORT_NS && b.awake_until_ns <= now ? step : 0;
        now += step;
        waited += step;
        busy_wait_spend(&b, step);
        int64_t budget = (int64_t)((now - start) / (b.wanted ? 16 : 2)) + SAVED_NS;
        int64_t more = (int64_t)(waited - spared - brief) - budget;
        over = more > over && more > 0 ? more : over;
    }
    qsort(late_ns, ios, sizeof *late_ns, compare);
    printf("%u %llu %llu %llu %llu %llu %llu %llu %llu %lld\n", ios, (unsigned long long)late_ns[ios / 2],
           (unsigned long long)late_ns[ios - 1 - ios / 100], (unsigned long long)(sum / ios),
           (unsigned long long)sleeps, (unsigned long long)idle_sleeps, (unsigned long long)waited,
           (unsigned long long)spared, (unsigned long long)brief, (long long)over);
    return 0;
}
