#include "heap.h"

#include <errno.h>
#include <stdlib.h>

int heap_init(struct heap *h, uint32_t items)
{
    h->length = 0;
    h->entries = calloc(items + 1u, sizeof *h->entries);
    h->places = calloc(items + 1u, sizeof *h->places);
    if (h->entries && h->places)
        return 0;
    heap_free(h);
    return -ENOMEM;
}

void heap_free(struct heap *h)
{
    free(h->entries);
    free(h->places);
    *h = (struct heap){0};
}

static void put(struct heap *h, uint32_t place, struct heap_entry entry)
{
    h->entries[place] = entry;
    h->places[entry.item] = place + 1;
}

static void rise(struct heap *h, uint32_t place, struct heap_entry entry)
{
    while (place > 0) {
        uint32_t parent = (place - 1) / 4;
        if (h->entries[parent].key <= entry.key)
            break;
        put(h, place, h->entries[parent]);
        place = parent;
    }
    put(h, place, entry);
}

static void sink(struct heap *h, uint32_t place, struct heap_entry entry)
{
    for (;;) {
        uint32_t child = 4 * place + 1, least = child;
        if (child >= h->length)
            break;
        uint32_t behind = child + 4 < h->length ? child + 4 : h->length;
        while (++child < behind)
            if (h->entries[child].key < h->entries[least].key)
                least = child;
        if (h->entries[least].key >= entry.key)
            break;
        put(h, place, h->entries[least]);
        place = least;
    }
    put(h, place, entry);
}

void heap_set(struct heap *h, uint32_t item, uint64_t key)
{
    struct heap_entry entry = {.key = key, .item = item};
    uint32_t place = h->places[item];

    if (place == 0)
        rise(h, h->length++, entry);
    else if (key < h->entries[place - 1].key)
        rise(h, place - 1, entry);
    else
        sink(h, place - 1, entry);
}

void heap_remove(struct heap *h, uint32_t item)
{
    uint32_t place = h->places[item];

    if (place == 0)
        return;
    h->places[item] = 0;
    struct heap_entry last = h->entries[--h->length];
    if (last.item == item)
        return;
    if (last.key < h->entries[place - 1].key)
        rise(h, place - 1, last);
    else
        sink(h, place - 1, last);
}

void heap_clear(struct heap *h)
{
    for (uint32_t i = 0; i < h->length; i++)
        h->places[h->entries[i].item] = 0;
    h->length = 0;
}
