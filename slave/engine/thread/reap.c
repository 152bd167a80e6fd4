#include "reap.h"

#include <errno.h>
#include <string.h>

#include "luns/flush.h"
#include "luns/think.h"
#include "luns/volume.h"
#include "stats/columns.h"
#include "thread.h"

/* After so many failures and no success, an instance rests for this long after each: a LUN that is gone and fails at
 * once does not take the core, whether the instance is paced or not. */
#define REST_NS NS_PER_MS
enum { FAILURES = 16 };

enum { SAMPLED = 64, CHECKED = 65536 };

static void free_tag(struct instance *i, struct tag *tag, uint64_t now_ns)
{
    if (!i->free || i->in_flight >= i->maxtags)
        i->tag_since_ns = tag_free_since(tag, now_ns);
    tag->next = i->free;
    i->free = tag;
}

/* In flight from an earlier step: its memory and its place in the queue are all that matters. */
static __attribute__((noinline, cold)) void file_orphan(struct thread *t, struct tag *tag, uint64_t now_ns)
{
    struct instance *i = tag->instance;

    tag->filed_as = FILED_AS_IO;
    tag->late_ns = now_ns - i->found_ns; /* its reap delay: how late it was is a matter of its own step */
    i->orphans--;
    if (i->thinking.time_ns) {
        think_spare(i, tag);
        if (i->in_step) {
            think_recruit(i, now_ns > t->step->start_ns ? now_ns : t->step->start_ns);
            due_times_set_alarm(t, i);
        }
    } else {
        free_tag(i, tag, now_ns);
    }
    if (i->in_step)
        ready_queue_release(t, tag, now_ns);
}

/* Of a user: it thinks, unless a flush follows. */
static __attribute__((noinline)) void retire_user(struct thread *t, struct tag *tag, uint64_t now_ns)
{
    struct instance *i = tag->instance;
    bool alone = !i->thinking.first;

    if (flush_keeps_tag(i)) {
        think_keep(i, tag);
        return;
    }
    think_about(tag, now_ns);
    if (alone)
        due_times_set_alarm(t, i);
}

/* Its tag is free again, and the next I/O may go, at once or after the think time. */
static inline void retire(struct thread *t, struct tag *tag, uint64_t now_ns)
{
    struct instance *i = tag->instance;

    land(i, tag);
    if (i->thinking.time_ns) {
        retire_user(t, tag, now_ns);
    } else {
        free_tag(i, tag, now_ns);
        i->in_flight--;
    }
    t->reap.retired++;
    ready_queue_release(t, tag, now_ns);
}

/* After some of its I/Os: notes whether that was its end. False: orphans were all that it had. */
static __attribute__((noinline, cold)) bool may_end(struct instance *i, uint64_t now_ns)
{
    if (i->in_step == OUT_OF_STEP)
        return false;
    volume_note_end(i, now_ns);
    return true;
}

/* After some of its I/Os: what others see of it, and its next ones. */
static void settle(struct thread *t, struct instance *i, uint64_t now_ns)
{
    in_flight_add(&t->in_flight, -t->reap.retired);
    t->reap.retired = 0;
    if (__builtin_expect(i->in_step != IN_STEP, false) && !may_end(i, now_ns))
        return;
    publish_oldest(row_of(t, i), i);
    ready_queue_enqueue(t, i);
}

static __attribute__((noinline, cold)) void fail(struct thread *t, struct tag *tag, int64_t result, uint64_t now_ns)
{
    struct instance *i = tag->instance;
    struct row *row = row_of(t, i);

    row->errors++;
    row->short_transfers += result >= 0;
    buffer_count_fault(t->boundary.running, i->number, result < 0 ? (int)-result : 0);
    if (tag->filed_as == FILED_AS_FLUSH)
        flush_land(i, tag);
    else
        tag->fresh = false;
    if (++i->failures >= FAILURES && !t->boundary.cooling) {
        instance_rest(i, now_ns + REST_NS);
        skew_settle(t, i);
        due_times_set_alarm(t, i);
    }
    retire(t, tag, now_ns);
}

void reap_fail(struct thread *t, struct tag *tag, int64_t result, uint64_t now_ns)
{
    fail(t, tag, result, now_ns);
    settle(t, tag->instance, now_ns);
}

static bool all_zero(const char *data, size_t size)
{
    return data[0] == 0 && memcmp(data, data + 1, size - 1) == 0;
}

static bool reads_as_zeros(const char *data, uint32_t size)
{
    return all_zero(data, size < CHECKED ? size : CHECKED) && data[size / 2] == 0 && data[size - 1] == 0;
}

/* The kernel says that the read filled its buffer. One that it did not fill (null backend) still has what
 * instance_create left in it, or what is left here: no zero. */
static __attribute__((noinline)) void sample(struct thread *t, const struct tag *tag)
{
    char *data = tag_buffer(tag, false);

    t->reap.until_sample = 1 + (uint32_t)random_below(&t->reap.samples, 2 * SAMPLED - 1);
    if (tag->op != OP_READ)
        return;
    row_of(t, tag->instance)->reads_sampled++;
    if (reads_as_zeros(data, tag_bytes(tag))) {
        row_of(t, tag->instance)->zero_reads++;
        data[0] = 1;
    }
}

/* By where it began: its section's count, and what it took. */
static void count_section(struct thread *t, const struct tag *tag, uint64_t service_ns)
{
    const struct instance *i = tag->instance;
    uint64_t section = (uint64_t)((unsigned __int128)tag_offset(tag) * i->sections / i->lun->size);
    uint64_t *counts = buffer_sections(t->boundary.running, i->slot) + section * SECTION_COUNTS +
                       (tag->op == OP_READ ? SECTION_READS : SECTION_CHANGES);

    counts[0]++;
    counts[1] += service_ns;
    if (service_ns > counts[2])
        counts[2] = service_ns;
}

/* What follows from a completion for what is next, where that counts them, and by where it was. Fewer arguments keep
 * registers free where none of this is. */
static __attribute__((noinline)) void count_done(struct thread *t, struct tag *tag, uint64_t now_ns)
{
    struct instance *i = tag->instance;

    if (i->sections)
        count_section(t, tag, now_ns - tag->submit_ns);
    if (i->pacer.drop_after_ns)
        ideal_tags_serve(&i->ideal, i->found_ns - tag->submit_ns);
    if (tag->op == OP_WRITE && flush_is_wanted(&i->parameters.fixed))
        flush_count_write(i, tag_free_since(tag, now_ns));
    skew_let_flush(i);
}

/* A flush is an I/O, but of no kind. */
static void file_flush(struct thread *t, struct tag *tag, uint64_t now_ns)
{
    struct instance *i = tag->instance;
    struct row *row = row_of(t, i);

    row->completed++;
    row->flushes++;
    t->boundary.running->figures.completed++;
    record(t, i, SERIES_FLUSH, now_ns - tag->submit_ns, 0);
    i->failures = 0;
    flush_land(i, tag);
    retire(t, tag, now_ns);
}

/* No read or write of this step. */
static __attribute__((noinline, cold)) void file_other(struct thread *t, struct tag *tag, int64_t result,
                                                       uint64_t now_ns)
{
    if (tag->filed_as == FILED_AS_ORPHAN)
        file_orphan(t, tag, now_ns);
    else if (result == 0)
        file_flush(t, tag, now_ns);
    else
        fail(t, tag, result, now_ns);
}

static void file(struct thread *t, struct tag *tag, int64_t result, uint64_t now_ns)
{
    uint64_t service_ns = now_ns - tag->submit_ns, delay_ns = reap_delay_of(&t->reap_delay, tag->submit_ns, service_ns);
    uint64_t late_ns = tag->late_ns;

    tag->late_ns += delay_ns;
    if (delay_ns && tag->instance->in_step) /* else its share is of an earlier step */
        share_falls_behind(tag->instance->share, tag, delay_ns);
    tag->instance->found_ns = now_ns - delay_ns;
    if (tag->filed_as != FILED_AS_IO) {
        file_other(t, tag, result, now_ns);
    } else if (tag_is_done(tag, result)) {
        tag->instance->failures = 0;
        if (tag->instance->counts_done)
            count_done(t, tag, now_ns);
        tag->fresh &= tag->op != OP_WRITE;
        t->reap.done[t->reap.done_count++] = (struct done){
            .service_ns = service_ns,
            .response_ns = tag->due_ns ? now_ns - tag->due_ns : UNCHANGED,
            .delay_ns = delay_ns,
            .late_ns = late_ns,
            .tag = tag,
            .bytes = tag_bytes(tag),
            .kind = tag->kind,
            .op = tag->op,
        };
        if (--t->reap.until_sample == 0)
            sample(t, tag);
        retire(t, tag, now_ns);
    } else if (result == -EAGAIN && tag->nowait) {
        ready_queue_again(t, tag, now_ns);
    } else {
        fail(t, tag, result, now_ns);
    }
}

void reap_file(struct thread *t, uint32_t count, uint64_t now_ns)
{
    const struct completion *c = t->reap.completions, *end = c + count;

    while (c < end) {
        struct instance *i = c->tag->instance;
        do
            file(t, c->tag, c->result, now_ns);
        while (++c < end && c->tag->instance == i);
        settle(t, i, now_ns);
    }
}

/* What it took, and the least that it may have taken: of the others the two are the same. */
static __attribute__((noinline)) void record_delay(struct thread *t, const struct done *done)
{
    struct buffer *b = t->boundary.running;

    b->figures.reap_delay += done->delay_ns;
    if (done->delay_ns * REAP_DELAY_LEAST_PART < done->service_ns)
        return;
    b->reap_delay[bucket_of(done->delay_ns)]++;
    record(t, done->tag->instance, SERIES_DELAYED, done->service_ns, done->bytes);
    record(t, done->tag->instance, SERIES_UNDELAYED, done->service_ns - done->delay_ns, done->bytes);
}

/* Likewise of a response time, with and without the lateness in it. */
static __attribute__((noinline)) void record_late(struct thread *t, const struct done *done)
{
    uint64_t late_ns = earlier(done->late_ns, done->response_ns);

    if (late_ns * REAP_DELAY_LEAST_PART < done->response_ns)
        return;
    record(t, done->tag->instance, SERIES_LATE, done->response_ns, done->bytes);
    record(t, done->tag->instance, SERIES_PUNCTUAL, done->response_ns - late_ns, done->bytes);
}

/* Of what was written, trimmed or zeroed: the last two move no data. */
static inline void record_change(struct row *row, const struct done *done)
{
    if (!op_moves_data(done->op)) {
        row->bytes -= done->bytes;
        return;
    }
    row->written += done->bytes;
    /* Now rather than when it is due. A tag that was taken again meanwhile was filled then. */
    if (!done->tag->fresh)
        instance_renew(done->tag);
}

void reap_record(struct thread *t)
{
    uint64_t service_ns = 0;

    if (t->reap.done_count == 0)
        return;
    for (uint32_t n = 0; n < t->reap.done_count; n++) {
        const struct done *done = &t->reap.done[n];
        struct instance *i = done->tag->instance;
        struct row *row = row_of(t, i);
        row->completed++;
        row->bytes += done->bytes;
        service_ns += done->service_ns;
        record(t, i, SERIES_SERVICE + done->kind, done->service_ns, done->bytes);
        if (done->response_ns != UNCHANGED) {
            record(t, i, SERIES_RESPONSE + done->kind, done->response_ns, done->bytes);
            if (done->late_ns >= REAP_DELAY_LEAST_NS)
                record_late(t, done);
        }
        if (done->delay_ns >= REAP_DELAY_LEAST_NS)
            record_delay(t, done);
        if (done->op != OP_READ)
            record_change(row, done);
    }
    t->reap.service_sum_ns += service_ns - t->reap.done_count * reap_mean_service_ns(&t->reap);
    t->boundary.running->figures.completed += t->reap.done_count;
    t->reap.done_count = 0;
}

void reap_start(struct thread *t)
{
    t->reap.done_count = 0;
    t->reap.until_sample = 1;
    t->reap.done[0].service_ns = 0;
    t->reap.service_sum_ns = 0;
}

int reap_poll(struct thread *t)
{
    return t->backend->reap(t->context, t->reap.completions, THREAD_REAP);
}

int reap_wait(struct thread *t, uint64_t timeout_ns)
{
    return t->backend->wait(t->context, timeout_ns, t->reap.completions, THREAD_REAP);
}
