#include "reap.h"

#include <errno.h>

#include "due_times.h"
#include "in_flight.h"
#include "stats/columns.h"
#include "time/clock.h"
#include "ready_queue.h"

/* After so many failures and no success, an instance rests for this long after each: a LUN that is gone and fails at
 * once does not take the core, whether the instance is paced or not. */
#define REST_NS NS_PER_MS
enum { FAILURES = 16 };

static void free_tag(const struct thread *t, struct instance *i, struct tag *tag, uint64_t now_ns)
{
    if (!i->free || i->in_flight >= i->maxtags)
        i->tag_since_ns = ready_queue_free_since(t, tag, now_ns);
    tag->next = i->free;
    i->free = tag;
}

/* In flight from an earlier step: its memory and its place in the queue are all that matters. */
static void file_orphan(struct thread *t, struct tag *tag, uint64_t now_ns)
{
    struct instance *i = tag->instance;

    tag->orphaned = false;
    i->orphans--;
    free_tag(t, i, tag, now_ns);
    if (i->in_step) {
        ready_queue_release(t, tag, now_ns);
        ready_queue_enqueue(t, i);
    }
}

/* Its tag is free again, and the next I/O may go. */
static void retire(struct thread *t, struct tag *tag, uint64_t now_ns)
{
    struct instance *i = tag->instance;
    bool was_oldest = i->flying.first == tag;

    land(i, tag);
    if (was_oldest)
        publish_oldest(t, i);
    free_tag(t, i, tag, now_ns);
    i->in_flight--;
    add_in_flight(t, (uint32_t)-1);
    ready_queue_release(t, tag, now_ns);
    ready_queue_enqueue(t, i);
}

void reap_fail(struct thread *t, struct tag *tag, int64_t result, uint64_t now_ns)
{
    struct instance *i = tag->instance;
    struct row *row = row_of(t, i);

    row->errors++;
    row->short_transfers += result >= 0;
    buffer_count_fault(t->running, i->number, result < 0 ? (int)-result : 0);
    tag->fresh = false;
    if (++i->failures >= FAILURES && !t->cooling) {
        i->resting = true;
        i->rest_until_ns = now_ns + REST_NS;
        due_times_set_alarm(t, i);
    }
    retire(t, tag, now_ns);
}

static void file(struct thread *t, struct tag *tag, int64_t result, uint64_t now_ns)
{
    if (tag->orphaned) {
        file_orphan(t, tag, now_ns);
    } else if (result == tag_bytes(tag)) {
        tag->instance->failures = 0;
        tag->fresh &= !tag->write;
        t->done[t->done_count++] = (struct done){
            .service_ns = now_ns - tag->submit_ns,
            .response_ns = tag->due_ns ? now_ns - tag->due_ns : UNCHANGED,
            .tag = tag,
            .bytes = tag_bytes(tag),
            .kind = tag->kind,
            .wrote = tag->write,
        };
        retire(t, tag, now_ns);
    } else if (result == -EAGAIN && tag->nowait) {
        ready_queue_again(t, tag, now_ns);
    } else {
        reap_fail(t, tag, result, now_ns);
    }
}

void reap_file(struct thread *t, uint32_t count, uint64_t now_ns)
{
    for (uint32_t n = 0; n < count; n++)
        file(t, t->completions[n].tag, t->completions[n].result, now_ns);
}

void reap_record(struct thread *t)
{
    for (uint32_t n = 0; n < t->done_count; n++) {
        const struct done *done = &t->done[n];
        struct instance *i = done->tag->instance;
        struct row *row = row_of(t, i);
        row->completed++;
        row->bytes += done->bytes;
        record(t, i, SERIES_SERVICE + done->kind, done->service_ns, done->bytes);
        if (done->response_ns != UNCHANGED)
            record(t, i, SERIES_RESPONSE + done->kind, done->response_ns, done->bytes);
        /* Now rather than when it is due. A tag that was taken again meanwhile was stamped then. */
        if (done->wrote && !done->tag->fresh)
            instance_stamp(done->tag);
    }
    t->running->figures.completed += t->done_count;
    t->done_count = 0;
}
