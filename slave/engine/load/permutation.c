#include "permutation.h"

#include "random.h"

/* Fewer would leave too few functions of a half to choose from. */
enum { LEAST_BITS = 6, ROUNDS = 4 };

/* Each round has a stretch of its own in the stream of random numbers that the key begins. */
#define STRETCH_BITS 60

struct permutation permutation_of(uint64_t n)
{
    uint8_t bits = LEAST_BITS;

    while ((n - 1) >> bits)
        bits++;
    return (struct permutation){.below = n, .left = bits / 2, .right = (uint8_t)(bits - bits / 2)};
}

static inline uint64_t random_of(uint64_t key, uint64_t round, uint64_t half)
{
    uint64_t stream = key + ((round << STRETCH_BITS) + half) * RANDOM_STEP;

    return random_next(&stream);
}

uint64_t permutation_at(const struct permutation *p, uint64_t key, uint64_t place)
{
    uint64_t left_mask = (UINT64_C(1) << p->left) - 1, right_mask = (UINT64_C(1) << p->right) - 1;

    do {
        uint64_t left = place >> p->right, right = place & right_mask;
        for (uint64_t round = 0; round < ROUNDS; round += 2) {
            left ^= random_of(key, round, right) & left_mask;
            right ^= random_of(key, round + 1, left) & right_mask;
        }
        place = left << p->right | right;
    } while (place >= p->below);
    return place;
}
