/* Lateness with drop_after on a simulated clock: lateness TAGS IOPS SERVICE SPREAD DROP_AFTER LATE STALL SEED
 *
 * I/Os fall due IOPS times a second at exponential gaps, and take SERVICE ns and up to SPREAD more. A generator with
 * TAGS tags discards those that waited for longer than DROP_AFTER ns. It wakes up to LATE ns late, and once, after a
 * second, STALL ns. The clock runs for two seconds, with the same I/Os for this generator and for one that is never
 * late.
 *
 * Prints, ns: mean response time of the one, of the other; mean lateness as the engine has it, and as it would be if
 * discards used up no credit; mean time from when a tag was free, and the I/O due, to its submission.
 */
#include <string.h>

#include "check.h"
#include "load/ideal_tags.h"
#include "load/pacer.h"
#include "time/clock.h"

enum { MOST_TAGS = 64 };
#define LENGTH_NS (2 * NS_PER_S)

struct flight {
    uint64_t due_ns, submit_ns, done_ns, late_ns, plain_late_ns;
};

struct sums {
    double response, late, plain_late, waited;
    uint64_t ios;
};

static uint64_t state;

static double uniform(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static uint64_t latest(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t most = a > b ? a : b;

    return most > c ? most : c;
}

static uint64_t up_to(double ns)
{
    return (uint64_t)(ns * uniform());
}

struct generator {
    double late, stall;
    struct pacer pacer;
    struct ideal_tags ideal;
    struct flight flying[MOST_TAGS];
    uint32_t tags, in_flight;
    uint64_t tag_since_ns, plain_since_ns, found_ns;
    bool stalled;
};

static uint64_t next_event(const struct generator *g)
{
    uint64_t at_ns = pacer_next_due(&g->pacer);

    for (uint32_t n = 0; n < g->in_flight; n++)
        if (g->flying[n].done_ns < at_ns)
            at_ns = g->flying[n].done_ns;
    return at_ns + 1;
}

static void reap(struct generator *g, uint64_t now_ns, struct sums *s)
{
    for (uint32_t n = 0; n < g->in_flight;) {
        struct flight f = g->flying[n];
        if (f.done_ns > now_ns) {
            n++;
            continue;
        }
        s->response += (double)(f.done_ns - f.due_ns); /* reap delay is counted apart */
        s->ios++;
        if (g->in_flight == g->tags) {
            g->tag_since_ns = f.done_ns - f.late_ns;
            g->plain_since_ns = f.done_ns - f.plain_late_ns;
        }
        g->found_ns = f.done_ns;
        ideal_tags_serve(&g->ideal, f.done_ns - f.submit_ns);
        g->flying[n] = g->flying[--g->in_flight];
    }
}

static void expire(struct generator *g, uint64_t now_ns)
{
    uint64_t oldest_ns = pacer_backlog_since(&g->pacer), expired = pacer_expire(&g->pacer, now_ns);

    if (expired)
        ideal_tags_take(&g->ideal, expired, oldest_ns, now_ns);
}

static struct sums drive(struct generator *g, double service, double spread)
{
    struct sums s = {0};
    uint64_t now_ns;

    while ((now_ns = next_event(g)) < NS_PER_S + LENGTH_NS) {
        now_ns += up_to(g->late);
        if (!g->stalled && now_ns >= 2 * NS_PER_S) {
            g->stalled = true;
            now_ns += (uint64_t)g->stall;
        }
        reap(g, now_ns, &s);
        pacer_fall_due(&g->pacer, now_ns, UINT64_MAX);
        expire(g, now_ns);
        while (g->in_flight < g->tags && g->pacer.backlog) {
            uint64_t due_ns = pacer_take(&g->pacer);
            uint64_t ideal_ns = g->ideal.free_ns < g->found_ns ? g->ideal.free_ns : g->found_ns;
            struct flight f = {.due_ns = due_ns, .submit_ns = now_ns};
            f.late_ns = now_ns - latest(due_ns, g->tag_since_ns, ideal_ns);
            f.plain_late_ns = now_ns - latest(due_ns, g->plain_since_ns, 0);
            f.done_ns = now_ns + (uint64_t)service + up_to(spread);
            ideal_tags_take(&g->ideal, 1, due_ns, now_ns);
            s.late += (double)f.late_ns;
            s.plain_late += (double)f.plain_late_ns;
            s.waited += (double)(now_ns - latest(due_ns, g->found_ns, 0));
            g->flying[g->in_flight++] = f;
        }
    }
    return s;
}

static struct sums run(char **words, bool in_time)
{
    struct generator g = {
        .late = in_time ? 0 : atof(words[6]), .stall = in_time ? 0 : atof(words[7]), .tags = (uint32_t)atoi(words[1])};

    state = (uint64_t)atoll(words[8]);
    ideal_tags_start(&g.ideal, g.tags);
    pacer_init(&g.pacer, true, (uint64_t)atof(words[5]), 0, 0);
    pacer_start(&g.pacer, state, atof(words[2]), NS_PER_S);
    g.tag_since_ns = g.plain_since_ns = g.found_ns = NS_PER_S;
    return drive(&g, atof(words[3]), atof(words[4]));
}

int main(int count, char **words)
{
    CHECK(count == 9);
    struct sums one = run(words, false), other = run(words, true);
    double ios = (double)one.ios;
    CHECK(one.ios > 0 && other.ios > 0);
    printf("%.0f %.0f %.0f %.0f %.0f\n", one.response / ios, other.response / (double)other.ios, one.late / ios,
           one.plain_late / ios, one.waited / ios);
    return 0;
}
