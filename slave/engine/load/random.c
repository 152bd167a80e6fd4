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
