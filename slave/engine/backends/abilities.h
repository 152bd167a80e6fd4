/* What this kernel's io_uring can do beyond its beginnings, tried out: which ways of setting a ring up it takes, and what
 * can be registered. For people: the backend itself takes the best that works.
 */
#ifndef IVYPY_ABILITIES_H
#define IVYPY_ABILITIES_H

#include <stdbool.h>

struct ability {
    const char *name;
    bool (*works)(const struct ability *a);
    unsigned flags; /* of io_uring_setup */
};

/* Ended by a NULL name. */
extern const struct ability abilities[];

#endif
