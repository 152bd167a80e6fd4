#include "fixed_resources.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>

#ifndef IORING_RSRC_REGISTER_SPARSE
#define IORING_RSRC_REGISTER_SPARSE (1U << 0)
#endif

enum { LEAST_SLOTS = 64 };

static int register_sparse(const struct fixed_resources *r, uint32_t what, uint32_t slots)
{
    struct io_uring_rsrc_register table = {.nr = slots, .flags = IORING_RSRC_REGISTER_SPARSE};

    return ring_register(r->ring, what, &table, sizeof table);
}

bool fixed_resources_open(struct fixed_resources *r, uint32_t slots)
{
    r->sparse = register_sparse(r, IORING_REGISTER_FILES2, slots) == 0;
    if (r->sparse && register_sparse(r, IORING_REGISTER_BUFFERS2, slots) != 0) {
        ring_register(r->ring, IORING_UNREGISTER_FILES, NULL, 0);
        r->sparse = false;
    }
    return r->sparse;
}

/* For so many slots; nothing is registered in them yet. */
static int make_tables(struct fixed_resources *r, uint32_t slots)
{
    uint32_t room = LEAST_SLOTS;

    while (room < slots)
        room *= 2;
    struct place *places = calloc(room, sizeof *places);
    if (!places)
        return -ENOMEM;
    if (r->sparse) {
        ring_register(r->ring, IORING_UNREGISTER_FILES, NULL, 0);
        ring_register(r->ring, IORING_UNREGISTER_BUFFERS, NULL, 0);
    }
    free(r->places);
    r->places = places;
    r->slots = room;
    fixed_resources_open(r, room);
    return 0;
}

static int update_file(const struct fixed_resources *r, uint32_t slot, int fd)
{
    struct io_uring_rsrc_update2 update = {.offset = slot, .data = (uint64_t)(uintptr_t)&fd, .nr = 1};

    return ring_register(r->ring, IORING_REGISTER_FILES_UPDATE2, &update, sizeof update);
}

static int update_buffers(const struct fixed_resources *r, uint32_t slot, void *data, size_t size)
{
    struct iovec vector = {.iov_base = data, .iov_len = size};
    struct io_uring_rsrc_update2 update = {.offset = slot, .data = (uint64_t)(uintptr_t)&vector, .nr = 1};

    return ring_register(r->ring, IORING_REGISTER_BUFFERS_UPDATE, &update, sizeof update);
}

void fixed_resources_detach(struct fixed_resources *r, uint32_t slot)
{
    if (slot >= r->slots)
        return;
    struct place *place = &r->places[slot];
    if (place->file)
        update_file(r, slot, -1);
    if (place->buffers)
        update_buffers(r, slot, NULL, 0);
    *place = (struct place){0};
}

/* What cannot be registered (more than 1 GiB of buffers) goes without; but a limit of the user's is an error. */
static int attach_one(struct fixed_resources *r, const struct instance *i)
{
    struct place *place = &r->places[i->slot];

    fixed_resources_detach(r, i->slot);
    int result = update_buffers(r, i->slot, i->data, i->data_size);
    if (result == -ENOMEM)
        return result;
    *place = (struct place){.created = i->created, .buffers = result == 0};
    place->file = update_file(r, i->slot, r->generic ? i->lun->generic : i->lun->fd) == 0;
    return 0;
}

int fixed_resources_attach(struct fixed_resources *r, const struct instance *instances, uint32_t slots)
{
    int result = slots > r->slots || !r->places ? make_tables(r, slots) : 0;

    for (uint32_t n = 0; n < slots && result == 0 && r->sparse; n++)
        if (instances[n].lun && r->places[n].created != instances[n].created)
            result = attach_one(r, &instances[n]);
    return result;
}

void fixed_resources_free(struct fixed_resources *r)
{
    free(r->places);
}
