#include "extents.h"

#include <stdlib.h>
#include <string.h>

bool extents_are_ordered(const struct extents *extents)
{
    uint64_t behind = 0;

    for (uint32_t n = 0; n < extents->count; n++) {
        struct extent one = extents->list[n];
        if (one.start < behind || one.end <= one.start)
            return false;
        behind = one.end;
    }
    return true;
}

bool extents_copy(struct extents *copy, const struct extents *extents)
{
    *copy = (struct extents){0};
    if (extents->count == 0)
        return true;
    copy->list = malloc(extents->count * sizeof *copy->list);
    if (!copy->list)
        return false;
    memcpy(copy->list, extents->list, extents->count * sizeof *copy->list);
    copy->count = extents->count;
    return true;
}

struct extent extents_around(const struct extents *extents, struct extent wanted)
{
    for (uint32_t n = 0; n < extents->count; n++) {
        struct extent one = extents->list[n];
        if (one.start <= wanted.start && wanted.start < wanted.end && wanted.end <= one.end)
            return one;
    }
    return (struct extent){0};
}
