/* Who is due next: a heap of instants, one per instance at most.
 *
 * Rule: an item is a small number (an instance's slot). Four children a node: half the depth of a binary heap, and
 * the four keys lie in one cache line.
 */
#ifndef IVYPY_HEAP_H
#define IVYPY_HEAP_H

#include <stdint.h>

#define HEAP_EMPTY UINT64_MAX

struct heap_entry {
    uint64_t key;
    uint32_t item;
};

struct heap {
    struct heap_entry *entries;
    uint32_t *places; /* per item: its entry's place + 1, 0 if it is not in the heap */
    uint32_t length;
};

/* Room for items 0 .. items-1. 0 or -ENOMEM. */
int heap_init(struct heap *h, uint32_t items);
void heap_free(struct heap *h);

/* Puts an item in, or moves it. */
void heap_set(struct heap *h, uint32_t item, uint64_t key);
void heap_remove(struct heap *h, uint32_t item);
void heap_clear(struct heap *h);

/* The earliest key, HEAP_EMPTY if there is none. */
static inline uint64_t heap_key(const struct heap *h)
{
    return h->length ? h->entries[0].key : HEAP_EMPTY;
}

#endif
