/* Shares, drawn from an alias table (Walker, Vose): one random number, whose high bits are a row, and whose low ones
 * choose between the two of that row.
 */
#ifndef IVYPY_ALIAS_H
#define IVYPY_ALIAS_H

#include <stdint.h>

#include "random.h"

enum { MOST_ALIASES = 64 };

struct alias {
    uint64_t threshold; /* low bits below this one are of this row, the others of `other` */
    uint8_t other;
};

/* Of shares that are not below 0, and not all 0. */
void alias_fill(struct alias *rows, const double *shares, uint32_t count);

static inline uint32_t alias_draw(const struct alias *rows, uint32_t count, uint64_t *random)
{
    u128 product = (u128)random_next(random) * count;
    uint32_t row = (uint32_t)(product >> 64);

    return (uint64_t)product < rows[row].threshold ? row : rows[row].other;
}

#endif
