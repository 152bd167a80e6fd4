/* The engine's LUNs and workload instances: they come and go between steps. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "luns/flush.h"

struct lun *engine_lun(struct engine *e, uint32_t lun)
{
    return lun < e->lun_count ? e->luns[lun] : NULL;
}

/* Without a turn: so the table changes under the lock as well. */
void engine_lun_path(struct engine *e, uint32_t lun, char *path, size_t size)
{
    engine_hold(e);
    const struct lun *l = engine_lun(e, lun);
    snprintf(path, size, "%s", l ? l->path : "");
    engine_let_go(e);
}

/* LUNs above the same queue of the kernel have the same. */
static uint32_t queue_id(const struct engine *e, const struct lun *lun)
{
    for (uint32_t n = 0; n < e->lun_count && lun->queue.nr_requests; n++) {
        const struct lun *other = e->luns[n];
        if (other && other->queue.nr_requests && other->queue.device == lun->queue.device)
            return other->queue_id;
    }
    return e->lun_count;
}

/* The handle of a LUN that is open. */
static int keep(struct engine *e, struct lun *lun)
{
    if (e->closed)
        return engine_refuse(e, EBADF, "the engine is closed");
    lun->queue_id = queue_id(e, lun);
    engine_hold(e);
    struct lun **luns = realloc(e->luns, (e->lun_count + 1u) * sizeof *luns);
    if (luns) {
        e->luns = luns;
        e->luns[e->lun_count++] = lun;
    }
    engine_let_go(e);
    return luns ? (int)e->lun_count - 1 : -ENOMEM;
}

static int explain_open(struct engine *e, int result)
{
    if (result == -ENOTBLK)
        return engine_refuse(e, ENOTBLK, "neither a block device nor a file");
    if (result == -EINVAL)
        return engine_refuse(e, EINVAL, "O_DIRECT is refused: `direct: false` goes through the page cache");
    return result;
}

/* Without a turn as long as it is opened, since a device may hang. */
int engine_open_lun(struct engine *e, const char *path, const char *name, bool writable, bool direct)
{
    struct lun *lun = calloc(1, sizeof *lun);
    int opened = lun ? lun_open(lun, path, name, writable, direct) : -ENOMEM;

    engine_enter(e);
    int result = opened == 0 ? keep(e, lun) : explain_open(e, opened);
    engine_leave(e, result);
    if (result < 0) {
        if (opened == 0)
            lun_close(lun);
        free(lun);
    }
    return result;
}

static int let_go_of(struct engine *e, uint32_t handle)
{
    struct lun *lun = engine_lun(e, handle);

    if (!lun)
        return engine_refuse(e, EBADF, "there is no LUN with this handle");
    if (lun->users)
        return engine_refuse(e, EBUSY, "%u workload instances use this LUN", lun->users);
    engine_hold(e);
    e->luns[handle] = NULL;
    engine_let_go(e);
    return 0;
}

/* Without a turn likewise as long as it is closed. */
int engine_close_lun(struct engine *e, uint32_t handle)
{
    engine_enter(e);
    struct lun *lun = engine_lun(e, handle);
    int result = engine_leave(e, let_go_of(e, handle));
    if (result == 0) {
        lun_close(lun);
        free(lun);
    }
    return result;
}

struct instance *engine_instance(struct engine *e, uint32_t number)
{
    return number < e->number_count ? e->by_number[number] : NULL;
}

static int make_room(struct engine *e, uint32_t number)
{
    enum { HIGHEST = 1 << 24 };
    uint32_t count = e->number_count ? e->number_count : 64;

    if (number >= HIGHEST)
        return engine_refuse(e, ERANGE, "instance numbers end at %d", HIGHEST - 1);
    while (count <= number)
        count *= 2;
    if (count == e->number_count)
        return 0;
    struct instance **larger = realloc(e->by_number, count * sizeof(struct instance *));
    if (!larger)
        return -ENOMEM;
    memset(larger + e->number_count, 0, (count - e->number_count) * sizeof *larger);
    e->by_number = larger;
    e->number_count = count;
    return 0;
}

/* A slot that no instance uses; it counts as used once its instance has a LUN. */
static struct instance *free_slot(struct thread *t)
{
    uint32_t slot = t->holes ? 0 : t->slots;

    while (slot < t->slots && t->instances[slot].lun)
        slot++;
    if (slot == THREAD_INSTANCES)
        return NULL;
    if (slot == t->slots)
        t->slots++, t->holes++;
    t->instances[slot].slot = slot;
    return &t->instances[slot];
}

static int check_polls(struct engine *e, const struct lun *lun, uint32_t options)
{
    if (!(options & BACKEND_POLLED) || lun->queue.polls)
        return 0;
    return engine_refuse(e, EOPNOTSUPP,
                         "no completion of %s can be polled for (its queue/io_poll is 0): give the driver "
                         "polled queues (NVMe: nvme.poll_queues=N), or leave `engine: polled` out",
                         lun->path);
}

static int check_buffered(struct engine *e, const struct backend *backend, const struct lun *lun, uint32_t options)
{
    if (!lun->buffered)
        return 0;
    if (!backend->abilities.buffered)
        return engine_refuse(e, EOPNOTSUPP,
                             "backend %s cannot go through the page cache, as `direct: false` has it for %s: use "
                             "`engine: { backend: io_uring }`",
                             backend->name, lun->path);
    if (options & BACKEND_POLLED)
        return engine_refuse(e, EOPNOTSUPP,
                             "what goes through the page cache, as `direct: false` has it for %s, cannot be polled "
                             "for: leave `engine: polled` out",
                             lun->path);
    return 0;
}

static int check_takes(struct engine *e, const struct backend *backend, struct lun *lun, uint32_t blocksize)
{
    const char *why = "";
    int result = backend->take ? backend->take(lun, blocksize, &why) : 0;

    if (result == 0)
        return 0;
    return engine_refuse(e, -result, "backend %s cannot drive %s: %s; or use `engine: { backend: io_uring }`",
                         backend->name, lun->path, why);
}

static int check_flushes(struct engine *e, const struct backend *backend, const struct lun *lun, uint32_t options)
{
    if (options & BACKEND_POLLED)
        return engine_refuse(e, EOPNOTSUPP,
                             "%s is flushed (flush, end_fsync), and a ring that is polled takes no fsync: leave "
                             "`engine: polled` out",
                             lun->path);
    int result = backend->probe_flush ? backend->probe_flush() : 0;
    if (result == 0)
        return 0;
    return engine_refuse(e, -result,
                         "%s is flushed (flush, end_fsync), and this kernel takes no fsync from backend %s (Linux 4.18 "
                         "does): use `engine: { backend: io_uring }`",
                         lun->path, backend->name);
}

/* Asked once of each LUN, so that no edit of a step waits for it. */
static bool takes_trims(const struct backend *backend, struct lun *lun)
{
    if (lun->device && !lun->trims && backend->probe_trim)
        lun->trims = backend->probe_trim(lun->fd) == 0;
    return !lun->device || !backend->probe_trim || lun->trims;
}

/* Whether it takes the trims and zeroes of a setting, which an edit may have first. */
static int check_operations(struct engine *e, const struct backend *backend, uint32_t options, struct lun *lun,
                            const struct setting *setting)
{
    bool trims = setting_has(setting, OP_TRIM);

    if (!trims && !setting_has(setting, OP_WRITE_ZEROES))
        return 0;
    if (!backend->abilities.trims)
        return engine_refuse(e, EOPNOTSUPP,
                             "backend %s neither trims nor writes zeroes, as `operations` has it for %s: use "
                             "`engine: { backend: io_uring }`",
                             backend->name, lun->path);
    if (options & BACKEND_POLLED)
        return engine_refuse(e, EOPNOTSUPP,
                             "a ring that is polled takes no trims and zeroes, as `operations` has them for %s: leave "
                             "`engine: polled` out",
                             lun->path);
    if (!trims || takes_trims(backend, lun))
        return 0;
    return engine_refuse(e, EOPNOTSUPP,
                         "%s takes no trims, as `operations` has them: its driver has none (queue/discard_max_bytes is "
                         "0), or this kernel takes none from io_uring (Linux 6.12 does)",
                         lun->path);
}

int engine_check_operations(struct engine *e, const struct instance *i, const struct setting *setting)
{
    return check_operations(e, e->backend, e->options, i->lun, setting);
}

/* Whether a backend, with these options, can drive this LUN. */
static int check_drives(struct engine *e, const struct backend *backend, uint32_t options, struct lun *lun,
                        uint32_t blocksize, const struct parameters *p)
{
    int result = check_buffered(e, backend, lun, options);

    if (result == 0)
        result = check_polls(e, lun, options);
    if (result == 0 && flush_is_wanted(&p->fixed))
        result = check_flushes(e, backend, lun, options);
    if (result == 0)
        result = check_operations(e, backend, options, lun, &p->setting);
    if (result == 0)
        result = check_takes(e, backend, lun, blocksize);
    return result;
}

static int create(struct engine *e, uint32_t number, uint32_t lun, uint32_t thread, struct ceiling ceiling,
                  const struct extents *agreed, const struct parameters *parameters)
{
    const char *why = "";
    int result = engine_must_be_idle(e);

    if (result != 0)
        return result;
    if (!engine_lun(e, lun))
        return engine_refuse(e, EBADF, "there is no LUN with this handle");
    if (thread >= e->thread_count)
        return engine_refuse(e, EINVAL, "there are %u workload threads", e->thread_count);
    if (engine_instance(e, number))
        return engine_refuse(e, EEXIST, "there is a workload instance %u already", number);
    result = check_drives(e, e->backend, e->options, engine_lun(e, lun), ceiling.blocksize, parameters);
    if (result == 0)
        result = make_room(e, number);
    if (result != 0)
        return result;
    struct instance *i = free_slot(&e->threads[thread]);
    if (!i)
        return engine_refuse(e, ENOSPC, "a workload thread drives at most %d instances", THREAD_INSTANCES);
    i->number = number;
    i->thread = thread;
    i->reserved = e->reserved;
    result = instance_create(i, engine_lun(e, lun), ceiling, agreed, parameters, &why);
    if (result != 0)
        return engine_refuse(e, -result, "%s", why);
    i->created = ++e->created;
    e->threads[thread].holes--;
    e->by_number[number] = i;
    return 0;
}

int engine_create(struct engine *e, uint32_t number, uint32_t lun, uint32_t thread, struct ceiling ceiling,
                  const struct extents *agreed, const struct parameters *parameters)
{
    engine_enter(e);
    return engine_leave(e, create(e, number, lun, thread, ceiling, agreed, parameters));
}

int engine_prepare(struct engine *e)
{
    engine_enter(e);
    int result = engine_must_be_idle(e);
    if (result == 0)
        result = context_prepare_all(e, context_prepare_here);
    return engine_leave(e, result);
}

uint64_t engine_progress(struct engine *e)
{
    uint64_t progress = 0;

    for (uint32_t n = 0; n < e->thread_count; n++)
        progress += atomic_load_explicit(&e->threads[n].worker.progress, memory_order_relaxed);
    return progress;
}

static int delete(struct engine *e, uint32_t number)
{
    int result = engine_must_be_idle(e);

    if (result != 0)
        return result;
    struct instance *i = engine_instance(e, number);
    if (!i)
        return engine_refuse(e, ENOENT, "there is no workload instance %u", number);
    if (i->orphans)
        result = context_reap(e, &e->threads[i->thread]);
    if (i->orphans && result == 0)
        return engine_refuse(e, EBUSY, "%u I/Os of the instance have not come back", i->orphans);
    if (result == 0)
        result = context_forget(e, &e->threads[i->thread], i->slot);
    if (result != 0)
        return result;
    e->threads[i->thread].holes++;
    instance_destroy(i);
    e->by_number[number] = NULL;
    return 0;
}

int engine_delete(struct engine *e, uint32_t number)
{
    engine_enter(e);
    return engine_leave(e, delete(e, number));
}

static int use(struct engine *e, const struct backend *backend, uint32_t options)
{
    int result = engine_must_be_idle(e);

    for (uint32_t n = 0; n < e->thread_count && result == 0; n++)
        if (e->threads[n].context)
            result = engine_refuse(e, EBUSY, "a step has run with backend %s", e->backend->name);
    if (result != 0)
        return result;
    if (options & BACKEND_POLLED && !backend->abilities.polled)
        return engine_refuse(e, EINVAL, "backend %s cannot poll for completions: io_uring can", backend->name);
    for (uint32_t n = 0; n < e->number_count && result == 0; n++) {
        const struct instance *i = e->by_number[n];
        if (i)
            result = check_drives(e, backend, options, i->lun, i->ceiling.blocksize, &i->parameters);
    }
    if (result != 0)
        return result;
    e->backend = backend;
    e->options = options;
    for (uint32_t n = 0; n < e->thread_count; n++) {
        e->threads[n].backend = backend;
        e->threads[n].options = options;
    }
    return 0;
}

int engine_spin(struct engine *e, enum spin spin)
{
    engine_enter(e);
    int result = engine_must_be_idle(e);
    for (uint32_t n = 0; n < e->thread_count && result == 0; n++)
        idle_set_spin(&e->threads[n], spin);
    return engine_leave(e, result);
}

int engine_reserved_pages(struct engine *e, bool may)
{
    engine_enter(e);
    e->reserved = may;
    return engine_leave(e, 0);
}

int engine_use(struct engine *e, const struct backend *backend, uint32_t options)
{
    engine_enter(e);
    return engine_leave(e, use(e, backend, options));
}
