/* A day of boundaries on a simulated clock, as three threads pass them, in turns and one of them late: day LENGTH_NS
 * DRIFT. Each boundary lies exactly where it belongs: without DRIFT at start + k lengths; with it, where a controller
 * placed it, whose clock runs that many parts per million faster; so nothing adds up. */
#include "check.h"
#include "thread/step.h"
#include "time/clock.h"

enum { THREADS = 3 };

static struct step step;
static uint64_t start_ns = 1234567890123457, length_ns;
static double drift; /* of 1 */

/* Where the end of a subinterval belongs. */
static uint64_t end_of(uint64_t k)
{
    uint64_t elapsed_ns = (k + 1) * length_ns;

    if (k < 2) /* placed by nobody: the first that may be is the one after next */
        return start_ns + elapsed_ns;
    return start_ns + elapsed_ns - (uint64_t)((double)elapsed_ns * drift);
}

struct view {
    uint32_t subinterval;
    uint64_t began_ns;
};

static struct decision pass(struct view *v, uint64_t late_ns)
{
    uint64_t boundary_ns = step_boundary(&step, v->subinterval, v->began_ns);
    struct decision d = step_decision(&step, v->subinterval);

    CHECK_EQUAL(boundary_ns, end_of(v->subinterval));
    if (d.outcome == OUTCOME_OPEN)
        d = step_decide(&step, v->subinterval, boundary_ns + late_ns);
    v->subinterval++;
    v->began_ns = boundary_ns;
    return d;
}

int main(int count, char **words)
{
    struct view views[THREADS];

    CHECK(count == 3);
    length_ns = strtoull(words[1], NULL, 10);
    drift = atof(words[2]) / 1e6;
    step_init(&step, start_ns, length_ns);
    for (uint32_t n = 0; n < THREADS; n++)
        views[n] = (struct view){.began_ns = start_ns};
    uint32_t day = (uint32_t)(86400 * NS_PER_S / length_ns);
    for (uint32_t k = 0; k < day; k++) {
        for (uint32_t n = 0; n < THREADS; n++) {
            struct decision d = pass(&views[(n + k) % THREADS], n * length_ns / 8);
            CHECK_EQUAL(d.outcome, OUTCOME_SWAP);
            CHECK_EQUAL(d.label, k);
        }
        atomic_store(&step.released, k + 1);
        /* While k + 1 runs, the end of k + 2 is placed. */
        if (drift != 0.0)
            CHECK(step_place(&step, k + 2, end_of(k + 2), end_of(k) + length_ns / 2));
    }
    printf("%u\n", day);
    return 0;
}
