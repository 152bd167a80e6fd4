/* What a ring knows of the step's instances: each one's file and buffers, under the instance's slot on its thread, so
 * that no I/O looks them up or pins pages.
 */
#ifndef IVYPY_FIXED_RESOURCES_H
#define IVYPY_FIXED_RESOURCES_H

#include "luns/instance.h"
#include "ring.h"

/* What a slot has registered. */
struct place {
    uint64_t created; /* of the instance; 0: none */
    bool file, buffers;
};

struct fixed_resources {
    const struct ring *ring;
    bool generic; /* the generic devices of NVMe namespaces, not the block devices */
    bool sparse;  /* files and buffers can be registered one by one */
    struct place *places;
    uint32_t slots; /* places */
};

/* What is not known yet of the instances in these slots. 0 or -errno. */
int fixed_resources_attach(struct fixed_resources *r, const struct instance *instances, uint32_t slots);
void fixed_resources_detach(struct fixed_resources *r, uint32_t slot);

/* With the ring, all of it goes. */
void fixed_resources_free(struct fixed_resources *r);

/* Tables of both kinds, filled one by one, with so many slots: whether the kernel has them. */
bool fixed_resources_open(struct fixed_resources *r, uint32_t slots);

#endif
