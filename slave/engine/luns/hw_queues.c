#define _GNU_SOURCE
#include "hw_queues.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_CORES = 8192, /* that Linux can be built for */
    MOST_SETS = 3 * MOST_CORES,
    MOST_TEXT = 4096, /* of an attribute in sysfs */
};

/* While a folder is read. */
struct reading {
    uint32_t queues, cores, sets;
    uint16_t set_of[MOST_CORES];
    uint16_t parted[MOST_SETS + 1]; /* by set: the new one of those of its cores that the present queue lists */
};

static void list_core(struct reading *r, unsigned long core)
{
    if (core >= MOST_CORES)
        return;
    uint16_t *parted = &r->parted[r->set_of[core]];
    if (!*parted && r->sets == MOST_SETS)
        return;
    if (!*parted)
        *parted = (uint16_t)++r->sets;
    r->set_of[core] = *parted;
    if (core >= r->cores)
        r->cores = (uint32_t)core + 1;
}

/* One queue's list, "0, 4, 8": its cores part from those that they were in a set with so far. */
static void take_list(struct reading *r, const char *text)
{
    memset(r->parted, 0, (r->sets + 1) * sizeof *r->parted);
    while (isdigit((unsigned char)*text)) {
        char *behind;
        list_core(r, strtoul(text, &behind, 10));
        text = behind + strspn(behind, ", ");
    }
    r->queues++;
}

static void read_queue(struct reading *r, int folder, const char *name)
{
    char path[32], text[MOST_TEXT + 1];

    if (!isdigit((unsigned char)*name) || (size_t)snprintf(path, sizeof path, "%s/cpu_list", name) >= sizeof path)
        return;
    int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t length = read(fd, text, MOST_TEXT);
    close(fd);
    if (length < 0)
        return;
    text[length] = '\0';
    take_list(r, text);
}

/* Whoever has a single queue submits to that one, from wherever: there is nothing to distinguish. */
static void keep(struct hw_queues *h, const struct reading *r)
{
    if (r->queues < 2 || r->cores == 0)
        return;
    h->set_of = malloc(r->cores * sizeof *h->set_of);
    if (!h->set_of)
        return;
    memcpy(h->set_of, r->set_of, r->cores * sizeof *h->set_of);
    h->cores = r->cores;
    h->sets = r->sets;
}

bool hw_queues_read(struct hw_queues *h, const char *folder)
{
    DIR *listing = opendir(folder);
    struct reading *r = listing ? calloc(1, sizeof *r) : NULL;
    const struct dirent *entry;

    *h = (struct hw_queues){0};
    while (r && (entry = readdir(listing)))
        read_queue(r, dirfd(listing), entry->d_name);
    if (r)
        keep(h, r);
    free(r);
    if (listing)
        closedir(listing);
    return listing != NULL;
}

void hw_queues_free(struct hw_queues *h)
{
    free(h->set_of);
    *h = (struct hw_queues){0};
}
