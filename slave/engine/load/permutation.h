/* An order of the numbers below n, in constant memory: each comes once.
 *
 * Rule: a Feistel network of four rounds on the bits that hold n - 1; what it makes of a number that is not below n
 * goes through it again (cycle walking), less than twice in the mean. The key is the order. The halves may differ by a
 * bit: a round changes one half by what a random function makes of the other, and leaves that as it is.
 */
#ifndef IVYPY_PERMUTATION_H
#define IVYPY_PERMUTATION_H

#include <stdint.h>

struct permutation {
    uint64_t below;      /* n: 1 to 2**55 */
    uint8_t left, right; /* bits of the halves */
};

struct permutation permutation_of(uint64_t n);

/* What comes at `place`, below n. */
uint64_t permutation_at(const struct permutation *p, uint64_t key, uint64_t place);

#endif
