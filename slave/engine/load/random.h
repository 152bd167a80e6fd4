/* Random numbers: splitmix64, one word of state.
 *
 * Rule: a stream is one u64. That makes a copy of a stream (a second cursor over the same due times) one
 * assignment. splitmix64 passes BigCrush and costs a nanosecond; streams are distinguished by their start.
 */
#ifndef IVYPY_RANDOM_H
#define IVYPY_RANDOM_H

#include <stddef.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 u128;

static inline uint64_t random_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

#define RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t random_next(uint64_t *stream)
{
    *stream += RANDOM_STEP;
    return random_mix(*stream);
}

/* 0 .. n-1. The bias of the multiply is below n / 2**64: 2**-24 relative for a range of 2**40 blocks. */
static inline uint64_t random_below(uint64_t *stream, uint64_t n)
{
    return (uint64_t)(((u128)random_next(stream) * n) >> 64);
}

/* [0, 1), in steps of 2**-53. */
static inline double random_unit(uint64_t *stream)
{
    return (double)(random_next(stream) >> 11) * 0x1p-53;
}

/* Exponential with mean 1: -ln(u), u in (0, 1]; at most 36.7. */
double random_exponential(uint64_t *stream);

/* The start of a stream of its own for each combination. */
uint64_t random_stream(uint64_t seed, uint64_t instance, uint64_t step, uint64_t purpose);

/* Bytes that nothing can compress, other ones for each `stream`: `size` of them, and on to the next multiple of 64;
 * `data` is aligned to 16. */
void random_fill(void *data, size_t size, uint64_t stream);

#endif
