/* Which bytes of a LUN may be written: those that the user agreed to.
 *
 * Rule: an instance writes within one of them, or not at all. They never change while it exists.
 */
#ifndef IVYPY_EXTENTS_H
#define IVYPY_EXTENTS_H

#include <stdbool.h>
#include <stdint.h>

struct extent {
    uint64_t start, end; /* first byte, and the one behind the last; both 0: nothing */
};

struct extents {
    struct extent *list; /* ascending, without overlap, none of them empty */
    uint32_t count;
};

bool extents_are_ordered(const struct extents *extents);

/* A copy whose list is its own, to be freed. False: there is no memory. */
bool extents_copy(struct extents *copy, const struct extents *extents);

/* The one that `wanted` lies in, wholly; nothing if there is none. */
struct extent extents_around(const struct extents *extents, struct extent wanted);

#endif
