/* Which places of a random workload come how often, where not all come alike.
 *
 * Rule: a place is one of n, on a grid. Ranks are drawn, of which the first comes most often: by Zipf's law (rejection-
 * inversion, Hoermann and Derflinger 1996: without a table, for any exponent), by Pareto's rule (fio's), or each alike
 * of the first so many, the working set. Scattered, a rank's place is a keyed permutation's: every place has one, so
 * the working set has as many places as ranks. The key is no instance's, thread's or step's: all parts of a workload
 * have one hot set. A normal distribution is of places; what lies outside of them is drawn again, so it is truncated.
 * Probabilities are right to 2**-53.
 */
#ifndef IVYPY_PLACES_H
#define IVYPY_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "permutation.h"

/* How a workload is uneven: one of these, or the working set alone. */
struct uneven {
    double zipf;          /* the exponent, 0: none */
    double pareto;        /* this share of the places has all but this share of the I/Os, and so on within; 0: none */
    double normal;        /* the standard deviation, of all that the places span; 0: none */
    uint64_t working_set; /* bytes; 0: all */
    uint64_t key;         /* of the permutation */
    bool scattered;
};

/* Of Zipf's law: H is the integral of x**-exponent. */
struct zipf {
    double exponent, less, inverse; /* less: 1 - exponent; inverse: 1 / less */
    double most;                    /* ranks */
    double integral, span;          /* H behind the last rank, and from there to before the first */
    double squeeze;
};

enum law { LAW_ALIKE, LAW_ZIPF, LAW_PARETO, LAW_NORMAL };

struct places {
    uint64_t count, ranks; /* ranks: the working set */
    uint64_t key;
    double power;     /* of Pareto's rule */
    double deviation; /* of the normal distribution, in all places */
    uint8_t law;      /* enum law */
    bool scattered;
    struct zipf zipf;
    struct permutation permutation;
};

bool uneven_is(const struct uneven *u);

/* `count` places, `grid` bytes apart. */
void places_set(struct places *p, const struct uneven *u, uint64_t count, uint64_t grid);

/* The next place, below `count`. */
uint64_t places_next(const struct places *p, uint64_t *random);

#endif
