/* Which threads share room in the kernel's queues, found out before a step.
 *
 * Rule: threads whose cores submit to the same hardware queue of a device share its room; those whose cores submit to
 * different ones share nothing. Where one of them may submit to any (not pinned), all of them share the room of
 * one hardware queue, for all of them might meet there; it is then less than the device has.
 */
#include "commands.h"

#include <errno.h>
#include <stdlib.h>

#include "thread/ready_queue.h"

/* By queue: its rooms are those from `first` on, that of whoever may submit to any before those of each set. */
struct layout {
    uint32_t *first;   /* one more at the end */
    uint32_t *places;  /* scratch of share_out */
    uint32_t *threads; /* by room: how many have it */
    bool *meet;        /* by queue: some thread may submit to any of its hardware queues */
};

/* Which hardware queues a thread submits to; 0: any. */
static uint32_t set_of(const struct thread *t, const struct lun *lun)
{
    return hw_queues_set(&lun->queue.hw_queues, t->cpu);
}

static uint32_t room_of(const struct layout *l, const struct thread *t, const struct lun *lun)
{
    return l->first[lun->queue_id] + (l->meet[lun->queue_id] ? 0 : set_of(t, lun));
}

/* Room for all figures. Each LUN was asked by itself which hardware queues lie below it: of those above one queue, the
 * one that knows of most sets counts. Returns how many rooms there are. */
static uint32_t lay_out(struct layout *l, const struct engine *e)
{
    uint32_t rooms = 0;

    for (uint32_t n = 0; n < e->lun_count; n++) {
        const struct lun *lun = e->luns[n];
        if (lun && lun->queue.hw_queues.sets + 1 > l->first[lun->queue_id])
            l->first[lun->queue_id] = lun->queue.hw_queues.sets + 1;
    }
    for (uint32_t n = 0; n <= e->lun_count; n++) {
        uint32_t own = l->first[n];
        l->first[n] = rooms;
        rooms += own;
    }
    return rooms;
}

static void find_meetings(struct layout *l, const struct thread *t)
{
    for (uint32_t n = 0; n < t->step_count; n++) {
        const struct lun *lun = t->step_instances[n]->lun;
        l->meet[lun->queue_id] |= set_of(t, lun) == 0;
    }
}

static void count_threads(struct layout *l, const struct thread *t)
{
    for (uint32_t n = 0; n < t->step_count; n++)
        l->places[t->step_instances[n]->lun->queue_id] = UINT32_MAX;
    for (uint32_t n = 0; n < t->step_count; n++) {
        const struct lun *lun = t->step_instances[n]->lun;
        l->threads[room_of(l, t, lun)] += l->places[lun->queue_id] == UINT32_MAX;
        l->places[lun->queue_id] = 0;
    }
}

/* Without a limit there is no room to share. */
static void open_rooms(struct engine *e, const struct layout *l, const struct thread *t)
{
    for (uint32_t n = 0; n < t->step_count; n++) {
        const struct lun *lun = t->step_instances[n]->lun;
        uint32_t room = room_of(l, t, lun), sets = lun->queue.hw_queues.sets;
        if (lun->queue.nr_requests)
            queue_room_init(&e->rooms[room], lun->queue.nr_requests, l->threads[room],
                            sets == 0 || !l->meet[lun->queue_id]);
    }
}

/* The shares of one thread. */
static int share_out(struct engine *e, struct thread *t, const struct layout *l)
{
    struct share *shares = realloc(t->shares, (t->step_count + 1u) * sizeof *shares);
    uint32_t count = 0;

    if (!shares)
        return -ENOMEM;
    t->shares = shares;
    for (uint32_t n = 0; n < t->step_count; n++)
        l->places[t->step_instances[n]->lun->queue_id] = UINT32_MAX;
    for (uint32_t n = 0; n < t->step_count; n++) {
        struct instance *i = t->step_instances[n];
        uint32_t *place = &l->places[i->lun->queue_id];
        if (*place == UINT32_MAX) {
            *place = count++;
            /* Of several hardware queues: one that makes requests of its own, which only lack tags. */
            shares[*place] = (struct share){
                .kernel_cap = NO_CAP, .requests = UINT32_MAX, .only_full = i->lun->queue.hw_queues.sets > 0};
            holding_init(&shares[*place].holding, i->lun->queue.nr_requests ? &e->rooms[room_of(l, t, i->lun)] : NULL);
        }
        i->share = &shares[*place];
        i->share->instances++;
    }
    return 0;
}

static int settle(struct engine *e, struct layout *l)
{
    int result = 0;

    l->first = calloc(e->lun_count + 1u, sizeof *l->first);
    l->places = calloc(e->lun_count + 1u, sizeof *l->places);
    l->meet = calloc(e->lun_count + 1u, sizeof *l->meet);
    uint32_t rooms = l->first && l->places && l->meet ? lay_out(l, e) : 0;
    l->threads = calloc(rooms + 1u, sizeof *l->threads);
    free(e->rooms);
    e->rooms = aligned_alloc(_Alignof(struct queue_room), (rooms + 1u) * sizeof *e->rooms);
    if (!l->first || !l->places || !l->meet || !l->threads || !e->rooms)
        return -ENOMEM;
    for (uint32_t n = 0; n < e->thread_count; n++)
        find_meetings(l, &e->threads[n]);
    for (uint32_t n = 0; n < e->thread_count; n++)
        count_threads(l, &e->threads[n]);
    for (uint32_t n = 0; n < e->thread_count; n++)
        open_rooms(e, l, &e->threads[n]);
    for (uint32_t n = 0; n < e->thread_count && result == 0; n++)
        result = share_out(e, &e->threads[n], l);
    return result;
}

int queue_shares_settle(struct engine *e)
{
    struct layout l = {0};
    int result = settle(e, &l);

    free(l.first);
    free(l.places);
    free(l.meet);
    free(l.threads);
    return result;
}
