/* The CPU's cycle counter, and whether it may be trusted as a clock.
 *
 * Rule: it is used only where three things hold: CPUID says that it ticks at one rate whatever the CPU does, the kernel
 * itself keeps time by it, and its order across the cores was tested by cores that really took turns. On processors
 * other than x86-64 the kernel's clock is read instead.
 */
#ifndef IVYPY_TSC_H
#define IVYPY_TSC_H

#include <stdbool.h>
#include <stdint.h>

#include "clock_map.h"

#ifdef __x86_64__
/* Not before what comes before it in the program is done. The compiler's own word: x86intrin.h, which calls it
 * __rdtscp, is 60,000 lines in nearly every object. */
static inline uint64_t tsc_read(void)
{
    unsigned core;

    return __builtin_ia32_rdtscp(&core);
}
#else
static inline uint64_t tsc_read(void)
{
    return 0;
}
#endif

/* Its order across cores: each one reads it right after it has seen what another read. */
struct tsc_order {
    uint32_t cores;
    uint64_t least_turns; /* how often the core with the fewest read after another one */
    uint64_t backwards;   /* how often it read less than the other had; must be 0 */
    uint64_t worst_ticks; /* by how much, at most */
    uint64_t least_step;  /* the shortest step from one core to another, ticks: offsets below it stay unseen */
};

enum { ORDER_TURNS = 1000 };

/* Runs a thread on each core that the process may use until each has had `turns`; at most `most_ns`. 0 or -errno. */
int tsc_order(struct tsc_order *order, uint64_t turns, uint64_t most_ns);

enum { TSC_WORDS = 256 };

/* Whether threads are to use it; if not, `why` says why. */
bool tsc_check(const struct tsc_order *order, char why[TSC_WORDS]);

/* The same for the whole process, found out once, by the first who asks. */
bool tsc_trusted(void);

/* Counter and clock at one instant: the narrowest of many looks, each between two readings of the counter. */
struct reading tsc_bracket(int clock);

#endif
