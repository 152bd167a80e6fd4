/* What this kernel's io_uring can do beyond its beginnings, tried out: which ways of setting a ring up it takes, and
 * what can be registered. For people: the backend itself takes the best that works.
 */
#ifndef IVYPY_URING_FEATURES_H
#define IVYPY_URING_FEATURES_H

#include <stdbool.h>

struct uring_feature {
    const char *name;
    bool (*works)(const struct uring_feature *a);
    unsigned flags; /* of io_uring_setup */
};

/* Ended by a NULL name. */
extern const struct uring_feature uring_features[];

#endif
