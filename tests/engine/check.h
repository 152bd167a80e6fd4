/* What the drivers share: a check that says where it failed. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

#define CHECK_EQUAL(a, b)                                                                           \
    do {                                                                                            \
        long long a_ = (long long)(a), b_ = (long long)(b);                                         \
        if (a_ != b_) {                                                                             \
            fprintf(stderr, "%s:%d: %s is %lld, %s is %lld\n", __FILE__, __LINE__, #a, a_, #b, b_); \
            exit(1);                                                                                \
        }                                                                                           \
    } while (0)

/* Whether the driver is linked with simulation.c, where nothing but what is told takes time. */
#ifndef SIMULATED
#define SIMULATED 0
#endif

/* What depends on how long things take: exact there, and not asked of a real machine. */
#define CHECK_SIMULATED(condition) CHECK(!SIMULATED || (condition))
#define CHECK_EXACT(a, b)      \
    do {                       \
        if (SIMULATED)         \
            CHECK_EQUAL(a, b); \
    } while (0)

#endif
