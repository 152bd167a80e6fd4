#include "backend.h"

#include <stddef.h>
#include <string.h>

const struct backend *const backends[] = {&backend_libaio, &backend_io_uring, &backend_nvme, &backend_null, NULL};

const struct backend *backend_named(const char *name)
{
    for (const struct backend *const *b = backends; *b; b++)
        if (strcmp((*b)->name, name) == 0)
            return *b;
    return NULL;
}
