/* What a ring knows of the step's instances: each one's file and buffers, under the instance's slot on its thread, so that
 * no I/O looks them up or pins pages.
 */
#ifndef IVYPY_REGISTRY_H
#define IVYPY_REGISTRY_H

#include "luns/instance.h"
#include "ring.h"

/* What a slot has registered. */
struct place {
    uint64_t created; /* of the instance; 0: none */
    bool file, buffers;
};

struct registry {
    const struct ring *ring;
    bool sparse; /* files and buffers can be registered one by one */
    struct place *places;
    uint32_t slots; /* places */
};

/* What is not known yet of the instances in these slots. 0 or -errno. */
int registry_attach(struct registry *r, const struct instance *instances, uint32_t slots);
void registry_detach(struct registry *r, uint32_t slot);

/* With the ring, all of it goes. */
void registry_free(struct registry *r);

/* Tables of both kinds, filled one by one, with so many slots: whether the kernel has them. */
bool registry_open(struct registry *r, uint32_t slots);

#endif
