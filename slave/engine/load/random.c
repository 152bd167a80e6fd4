#include "random.h"

#include <math.h>

double random_exponential(uint64_t *stream)
{
    return -log((double)((random_next(stream) >> 11) + 1) * 0x1p-53);
}

uint64_t random_stream(uint64_t seed, uint64_t instance, uint64_t step, uint64_t purpose)
{
    uint64_t start = random_mix(seed + UINT64_C(0x9e3779b97f4a7c15));

    start = random_mix(start ^ (instance + UINT64_C(0x3c6ef372fe94f82b)));
    start = random_mix(start ^ (step + UINT64_C(0xdaa66d2c7ddf743f)));
    return random_mix(start ^ (purpose + UINT64_C(0x78dde6e5fd29f054)));
}

/* Two words at once, as every x86-64 and aarch64 can. */
typedef uint64_t pair __attribute__((vector_size(16)));

/* xorshift64, which takes shifts and xors alone: there is no vector of 64-bit products for splitmix64. */
static inline pair next_pair(pair *state)
{
    pair x = *state;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

static pair first_pair(uint64_t *stream)
{
    uint64_t first = random_next(stream);

    return (pair){first, random_next(stream)};
}

void random_fill(void *data, size_t size, uint64_t stream)
{
    pair a = first_pair(&stream), b = first_pair(&stream), c = first_pair(&stream), d = first_pair(&stream);

    for (pair *at = data, *behind = at + (size + sizeof *at - 1) / sizeof *at; at < behind; at += 4) {
        at[0] = next_pair(&a);
        at[1] = next_pair(&b);
        at[2] = next_pair(&c);
        at[3] = next_pair(&d);
    }
}
