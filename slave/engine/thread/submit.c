#include "submit.h"

#include <errno.h>
#include <string.h>

#include "luns/flush.h"
#include "luns/volume.h"
#include "stats/columns.h"
#include "thread.h"

enum { CLOSED_LOOP_PARTS = 4 };

/* Of `instance.long_calls`: what one long call counts for, from where on the instance has calls of its own, and the
 * most. */
enum { LONG_CALL = 3, BLOCKING = 4, MOST_BLOCKING = 16 };

/* From when on the wait of an I/O was the generator's own fault: it was due, a tag was free, the queue had room, and
 * the instance did not rest. A tag, or room, that an I/O took too late counts as free by so much earlier: while a
 * thread makes up for a time without its core, I/Os wait for tags that would long be free, and that is its fault as
 * well; but not for longer than the I/Os that were discarded meanwhile would have left free.
 *
 * With one tag, us:  0  A is due, and goes
 *                   50  B is due, and waits for A's tag
 *                  150  A completes, but the thread has no core: lost are 80
 *                  230  A is found, its reap delay being 80; B goes
 *                  300  B completes, and is found; C, due since 60, goes
 * B was late from 230 - 80 = 150 on, when its tag would have been free: by 80. B's own 70 began as much later, so C was
 * late from 300 - 80 = 220 on, by 80 as well, though nothing was found late then. */
static uint64_t late_from(const struct instance *i, uint64_t due_ns)
{
    uint64_t since_ns = due_ns;

    if (i->tag_since_ns > since_ns)
        since_ns = i->tag_since_ns;
    if (i->share->room_since_ns > since_ns)
        since_ns = i->share->room_since_ns;
    if (i->pacer.drop_after_ns) {
        uint64_t ideal_ns = i->ideal.free_ns < i->found_ns ? i->ideal.free_ns : i->found_ns;
        if (ideal_ns > since_ns)
            since_ns = ideal_ns;
    }
    if (i->rest_until_ns > since_ns)
        since_ns = i->rest_until_ns;
    return since_ns;
}

/* Of a tag in the batch, where that says since when it is late. */
static inline uint64_t late_by(const struct tag *tag, uint64_t now_ns)
{
    return now_ns > tag->late_ns ? now_ns - tag->late_ns : 0;
}

static inline bool waited_for_room(const struct share *s, const struct tag *tag)
{
    return s->room_found_ns > tag->due_ns;
}

/* Since when the next I/O of a user that is ready would be on its way, had nothing been late; see think.h. */
static uint64_t user_late_from(const struct instance *i, struct tag *tag, uint64_t now_ns)
{
    struct share *s = i->share;
    uint64_t since_ns = tag->due_ns;

    tag->behind_ns = 0;
    if (!waited_for_room(s, tag)) {
        s->free_ns = now_ns;
        if (tag->due_ns > s->free_due_ns)
            s->free_due_ns = tag->due_ns;
    } else if (tag->due_ns > s->free_due_ns) {
        uint64_t room_ns = s->room_found_ns - earlier((uint64_t)s->behind_ns, s->room_found_ns);
        if (tag->submit_ns >= s->free_ns)
            tag->behind_ns = tag->late_ns;
        since_ns -= tag->behind_ns;
        if (room_ns > since_ns)
            since_ns = room_ns;
    }
    if (i->tag_since_ns > tag->due_ns && i->tag_since_ns > since_ns) /* an edit asked for fewer */
        since_ns = i->tag_since_ns;
    if (i->rest_until_ns > since_ns)
        since_ns = i->rest_until_ns;
    return since_ns;
}

static void put_in_batch(struct thread *t, struct tag *tag)
{
    tag->instance->share->in_flight += tag->weight;
    t->submit.batch[t->submit.batch_size++] = tag;
}

/* A tag whose I/O is not submitted; `dropped`: nor will it be. */
static void give_back(struct thread *t, struct tag *tag, bool dropped)
{
    struct instance *i = tag->instance;

    tag->next = i->free;
    if (!i->free)
        i->thinking.last_ready = tag;
    i->free = tag;
    if (tag->due_ns && dropped) {
        row_of(t, i)->dropped++;
    } else if (tag->due_ns) {
        row_of(t, i)->backlog_since_ns = tag->due_ns;
        t->submit.dropped++;
    }
}

/* An error of the engine's own, which never happens: better no I/O than a wrong write. Step and thread end. */
static __attribute__((noinline, cold)) void refuse_write(struct thread *t, struct tag *tag)
{
    struct instance *i = tag->instance;

    give_back(t, tag, false);
    i->resting = true;
    i->rest_until_ns = UINT64_MAX;
    thread_die(t,
               "workload instance %u would have written %u bytes at %llu, outside of what was agreed to, and was "
               "stopped: report this fault of ivypy",
               i->number, tag_bytes(tag), (unsigned long long)tag_offset(tag));
}

/* The next write of an instance, of which a size has this `span`. False: it may not. */
static inline bool make_write(struct thread *t, struct tag *tag, uint64_t span)
{
    if (__builtin_expect(!instance_may_write(tag->instance, tag, span), false)) {
        refuse_write(t, tag);
        return false;
    }
    if (tag->op == OP_WRITE && !tag->fresh)
        instance_renew(tag);
    return true;
}

/* What the next of a mix is, and where it goes. False: it may not. */
static inline bool make_row(struct thread *t, struct instance *i, struct tag *tag, const struct mix_row *row,
                            uint64_t offset)
{
    tag->op = row->op;
    tag->iocb.aio_offset = (int64_t)offset;
    tag->kind = row->kind;
    tag->iocb.aio_nbytes = row->bytes;
    tag->weight = row->weight;
    tag->nowait = i->nowait && op_moves_data(row->op);
    if (row->op == OP_READ)
        return true;
    if (!make_write(t, tag, row->writes_span))
        return false;
    if (row->op == OP_WRITE)
        tag_set_stale(tag, row->bytes);
    return true;
}

/* The next of a mix that goes to each place once, or to some more often. */
static __attribute__((noinline)) bool make_elsewhere(struct thread *t, struct instance *i, struct tag *tag)
{
    uint64_t *random = &i->sequencer.random, offset;
    const struct mix_row *row;

    if (i->sequencer.order == UNEVEN) {
        row = mix_next_uneven(i->mix, random, &offset);
    } else {
        row = mix_draw(i->mix, random);
        offset = sequencer_permuted_offset(&i->sequencer);
    }
    return make_row(t, i, tag, row, offset);
}

/* The next of a mix. */
static bool make_part(struct thread *t, struct instance *i, struct tag *tag)
{
    uint64_t offset;

    if (__builtin_expect(i->sequencer.order >= PERMUTED, false))
        return make_elsewhere(t, i, tag);
    const struct mix_row *row = mix_next(i->mix, &i->sequencer.random, &offset);
    return make_row(t, i, tag, row, offset);
}

/* Likewise where all have one size, and this one does so. */
static inline bool make_one(struct thread *t, struct instance *i, struct tag *tag, uint8_t op)
{
    tag->op = op;
    tag->iocb.aio_offset = (int64_t)sequencer_offset(&i->sequencer);
    tag->kind = (uint8_t)(i->kind + op);
    tag->iocb.aio_nbytes = i->sequencer.blocksize;
    tag->weight = i->weight;
    tag->nowait = i->nowait;
    return op == OP_READ || make_write(t, tag, i->writes_span);
}

/* Where it is not all reads, or all writes, of one size. */
static __attribute__((noinline)) bool make_mixed(struct thread *t, struct instance *i, struct tag *tag)
{
    if (i->sequencer.direction == BY_PARTS)
        return make_part(t, i, tag);
    return make_one(t, i, tag, sequencer_writes(&i->sequencer));
}

/* Makes the next I/O of an instance; it counts as in flight from here on. False: it may not. */
static bool issue(struct thread *t, struct instance *i, uint64_t now_ns)
{
    struct tag *tag = i->free;

    i->free = tag->next;
    if (i->pacer.backlog) {
        tag->due_ns = pacer_take(&i->pacer);
        row_of(t, i)->backlog_since_ns = pacer_backlog_since(&i->pacer);
        tag->late_ns = late_from(i, tag->due_ns);
        tag->behind_ns = 0;
        if (!waited_for_room(i->share, tag))
            share_takes(i->share, i->weight, late_by(tag, now_ns), false);
        if (i->pacer.drop_after_ns)
            ideal_tags_take(&i->ideal, 1, tag->due_ns, now_ns);
    } else {
        if (i->thinking.time_ns) {
            tag->late_ns = user_late_from(i, tag, now_ns);
            share_takes(i->share, i->weight, late_by(tag, now_ns), waited_for_room(i->share, tag));
        } else {
            tag->late_ns = 0;
        }
        tag->due_ns = 0;
    }
    bool mixed = __builtin_expect(i->sequencer.direction >= MIXED, false);
    if (!(mixed ? make_mixed(t, i, tag) : make_one(t, i, tag, (uint8_t)i->sequencer.direction)))
        return false;
    tag->again = false;
    tag->submit_ns = now_ns;
    fly(i, tag);
    i->in_flight++;
    put_in_batch(t, tag);
    return true;
}

/* How many I/Os an instance may issue in its turn, `most` of them, as far as it has free tags. */
static inline uint32_t turn_of(const struct instance *i, uint32_t most)
{
    if (!instance_has_work(i))
        return 0;
    if (most > i->turn)
        most = i->turn;
    if (most > i->maxtags - i->in_flight)
        most = i->maxtags - i->in_flight;
    return i->closed_loop || i->pacer.backlog > most ? most : (uint32_t)i->pacer.backlog;
}

/* The next of those that are due, as soon as it may go. While any is, the turns of its instance are for no other I/O.
 */
static void issue_flush(struct thread *t, struct instance *i, uint64_t now_ns)
{
    struct tag *tag = i->free;

    if (!instance_has_work(i))
        return;
    if (!share_has_room(i->share, 1) && !ready_queue_find_room(i->share, 1)) {
        ready_queue_wait_for_room(t, i);
        return;
    }
    i->free = tag->next;
    tag->late_ns = late_from(i, i->flushing.due_ns);
    flush_begin(i, tag);
    tag->due_ns = tag->behind_ns = 0;
    tag->iocb.aio_offset = 0;
    tag->iocb.aio_nbytes = 0;
    tag->weight = 1;
    tag->nowait = tag->again = false;
    tag->submit_ns = now_ns;
    fly(i, tag);
    i->in_flight++;
    put_in_batch(t, tag);
}

/* What it submitted in its turn was the last. */
static void end_by_volume(struct thread *t, struct instance *i)
{
    due_times_end(t, i);
    due_times_set_alarm(t, i);
    ready_queue_resettle(i);
}

/* After the turn of an instance to which it matters; `before` was its newest I/O in flight. */
static __attribute__((noinline, cold)) void count_turn(struct thread *t, struct instance *i, const struct tag *before,
                                                       uint64_t now_ns)
{
    uint32_t ios = i->in_flight - i->flushing.in_flight, issued = 0;
    bool was_spent = volume_is_spent(i);
    const struct tag *first = before ? before->next : i->flying.first;

    for (const struct tag *tag = first; tag; tag = tag->next)
        issued++;
    if (i->pacer.drop_after_ns && ios > i->ideal.at_once)
        i->ideal.at_once = ios;
    volume_spend(i, first);
    if (!was_spent && volume_is_spent(i))
        end_by_volume(t, i);
    if (i->flushing.due)
        issue_flush(t, i, now_ns);
    if (i->skewed.counts)
        skew_count(t, i, issued);
}

/* The next I/Os of an instance, in its turn, as long as the queue has room. Their age is published, so that others see
 * it even if the call that submits them hangs. */
static inline void take_turn(struct thread *t, struct instance *i, uint32_t limit, uint64_t now_ns)
{
    const struct tag *before = i->flying.last;

    for (uint32_t left = turn_of(i, limit - t->submit.batch_size); left && i->free; left--) {
        if (!share_has_room(i->share, i->weight) && !ready_queue_find_room(i->share, i->weight)) {
            i->ideal.at_once = i->in_flight ? i->in_flight : 1;
            ready_queue_wait_for_room(t, i);
            break;
        }
        if (!issue(t, i, now_ns))
            break;
    }
    if (i->counts_turns)
        count_turn(t, i, before, now_ns);
    if (!before)
        publish_age(i);
}

/* Whether it may submit together with what is in the batch. */
static bool fits(const struct submit *s, const struct instance *i)
{
    if (s->batch_size == 0 || s->batch[0]->instance == i)
        return true;
    return i->long_calls < BLOCKING && s->batch[0]->instance->long_calls < BLOCKING;
}

static void gather_from(struct thread *t, struct instance_list *list, uint32_t limit, uint64_t now_ns)
{
    uint32_t before = t->submit.batch_size;
    struct instance *i;

    while (t->submit.batch_size < limit && list->first && fits(&t->submit, list->first)) {
        i = list_take(list);
        i->waiting = NOT_WAITING;
        if (pacer_has_expired(&i->pacer, now_ns))
            due_times_expire(t, i, now_ns);
        take_turn(t, i, limit, now_ns);
        ready_queue_enqueue(t, i);
        if (i->waiting <= WAITING_FOR_OTHERS && i->share->waiting.first &&
            (share_has_room(i->share, 1) || ready_queue_find_room(i->share, 1)))
            ready_queue_wake(
                t, i->share); /* woken for room that it does not take: it was paused, is held, or has no more */
    }
    in_flight_add(&t->in_flight, t->submit.batch_size - before);
}

/* It was not submitted, as far as volume and flushes are concerned. */
static void undo(struct instance *i, struct tag *tag)
{
    if (tag->filed_as == FILED_AS_FLUSH)
        flush_return(i, tag);
    else
        volume_return(i, tag);
}

/* One that the kernel gave back and that is not submitted again, since its instance was paused. */
static void discard_again(struct thread *t, struct tag *tag, uint64_t now_ns)
{
    struct instance *i = tag->instance;
    struct row *row = row_of(t, i);

    undo(i, tag);
    land(i, tag);
    volume_note_end(i, now_ns);
    publish_oldest(row, i);
    i->in_flight--;
    in_flight_add(&t->in_flight, (uint32_t)-1);
    tag->next = i->free;
    i->free = tag;
    row->dropped++;
    row->withdrawn++; /* it was submitted, perhaps in an earlier subinterval */
    if (i->share->waiting.first && share_has_room(i->share, 1))
        ready_queue_wake(t, i->share); /* no completion will: there may be none in flight */
}

/* I/Os that the kernel gave back go first. */
static void gather_again(struct thread *t, uint64_t now_ns)
{
    struct share **share = NULL;
    struct tag *tag;

    while (t->submit.batch_size < t->submit.limit && (tag = ready_queue_take_again(t, &share, now_ns)))
        if (instance_is_paused(tag->instance))
            discard_again(t, tag, now_ns);
        else
            put_in_batch(t, tag);
}

void submit_gather(struct thread *t, uint64_t now_ns)
{
    const struct ready_queue *q = &t->ready_queue;
    struct submit *s = &t->submit;

    s->batch_size = 0;
    if (q->again)
        gather_again(t, now_ns);
    if (q->due.first && !(s->closed_loop_next && q->closed_loop.first))
        gather_from(t, &t->ready_queue.due, q->closed_loop.first ? s->limit - s->limit / CLOSED_LOOP_PARTS : s->limit,
                    now_ns);
    if (q->closed_loop.first) {
        uint32_t before = s->batch_size;
        gather_from(t, &t->ready_queue.closed_loop, s->limit, now_ns);
        s->closed_loop_next = s->batch_size == before;
    }
    if (q->due.first) /* those of iops: max left something of their part */
        gather_from(t, &t->ready_queue.due, s->limit, now_ns);
}

/* It was one of these, or the thread was preempted: who is in such calls again and again, and in few others, blocks. */
static __attribute__((noinline)) void suspect(struct submit *s)
{
    for (uint32_t n = 0; n < s->batch_size; n++)
        if (s->batch[n]->instance->long_calls < MOST_BLOCKING)
            s->batch[n]->instance->long_calls += LONG_CALL;
}

/* How long a call is to last at most. */
static uint64_t longest_call_ns(uint64_t service_ns, uint64_t call_ns)
{
    uint64_t part_ns = service_ns / SUBMIT_CALL_PART;
    uint64_t least_ns = service_ns < 2 * call_ns ? SUBMIT_WHOLE_NS : SUBMIT_CALL_NS;

    return part_ns > least_ns ? part_ns : least_ns;
}

void submit_adapt(struct thread *t, uint64_t call_ns)
{
    struct submit *s = &t->submit;
    uint64_t longest_ns = longest_call_ns(reap_mean_service_ns(&t->reap), call_ns);
    bool too_long = call_ns > longest_ns + longest_ns / 4;

    if (call_ns > 2 * longest_ns)
        suspect(s);
    if (too_long && s->was_long && s->batch_size > 1)
        s->limit = s->batch_size / 2;
    else if (s->batch_size == s->limit && s->limit < THREAD_BATCH && call_ns + call_ns / s->limit <= longest_ns)
        s->limit++;
    s->was_long = too_long;
}

/* After the call: the exact instant of submission, and what the taken I/Os count for. Whether it is one that had not
 * been submitted before. */
static inline bool account(struct thread *t, struct tag *tag, uint64_t stamp_ns)
{
    struct instance *i = tag->instance;
    struct row *row = row_of(t, i);
    uint64_t gathered_ns = tag->submit_ns;

    if (i->long_calls)
        i->long_calls--;
    if (tag->again)
        return false;
    tag->submit_ns = stamp_ns;
    if (i->flying.first == tag)
        publish_oldest(row, i);
    row->submitted++;
    if (!tag->due_ns)
        row->due++;
    if (tag->late_ns) { /* until now since when, see late_from */
        tag->late_ns = late_by(tag, stamp_ns);
        if (tag->filed_as == FILED_AS_FLUSH) /* late or not, it has no lateness of its own: those behind it have */
            return true;
        share_falls_behind(i->share, tag, stamp_ns - gathered_ns);
        record(t, i, SERIES_LATENESS, tag->late_ns - earlier(tag->behind_ns, tag->late_ns), tag_bytes(tag));
    }
    return true;
}

/* An answer to a submit call that is a fault of ours or of the kernel, not of a LUN. */
static bool is_fatal(int error)
{
    return error == EFAULT || error == EBADF || error == ENOSYS;
}

/* What the kernel did not take. */
static __attribute__((noinline, cold)) void account_refused(struct thread *t, uint64_t stamp_ns)
{
    int fatal = 0;

    for (uint32_t n = 0; n < t->submit.batch_size; n++) {
        int refused = t->submit.refused[n];
        t->submit.refused[n] = 0;
        if (refused == 0)
            continue;
        if (is_fatal(-refused))
            fatal = -refused;
        if (fatal || refused == -EAGAIN)
            ready_queue_again(t, t->submit.batch[n], stamp_ns);
        else
            reap_fail(t, t->submit.batch[n], refused, stamp_ns);
    }
    t->submit.any_refused = false;
    if (fatal)
        thread_die(t, "the kernel refused a submission: %s", strerror(fatal));
}

static inline void account_batch(struct thread *t, uint64_t stamp_ns)
{
    uint64_t submitted = 0;

    for (uint32_t n = 0; n < t->submit.batch_size; n++)
        submitted += account(t, t->submit.batch[n], stamp_ns);
    t->boundary.running->figures.submitted += submitted;
    if (t->submit.any_refused)
        account_refused(t, stamp_ns);
}

void submit_account(struct thread *t, uint64_t stamp_ns)
{
    account_batch(t, stamp_ns);
    t->submit.batch_size = 0;
}

static bool may_submit(const struct thread *t, uint64_t now_ns)
{
    return now_ns < atomic_load_explicit(&t->step->lease_ns, memory_order_acquire) &&
           !atomic_load_explicit(&t->step->cut, memory_order_acquire);
}

/* The end came while the kernel had taken `n` of the batch: only what it did not take is left in it. */
static __attribute__((noinline)) void cut_short(struct thread *t, uint32_t n, uint64_t stamp_ns)
{
    uint32_t left = t->submit.batch_size - n;

    t->submit.batch_size = n;
    account_batch(t, stamp_ns);
    memmove(t->submit.batch, t->submit.batch + n, left * sizeof *t->submit.batch);
    t->submit.batch_size = left;
}

/* Notes why the kernel took none from `n` on. Where it is to be asked again. */
static uint32_t refuse(struct thread *t, uint32_t n, int answer)
{
    if (answer == -EINTR)
        return n;
    t->submit.any_refused = true;
    if (answer != 0 && answer != -EAGAIN && !is_fatal(-answer)) {
        t->submit.refused[n] = answer; /* this one; the others may be all right */
        return n + 1;
    }
    for (; n < t->submit.batch_size; n++)
        t->submit.refused[n] = answer == 0 ? -EAGAIN : answer;
    return n;
}

bool submit_batch(struct thread *t, uint64_t stamp_ns)
{
    bool may = may_submit(t, stamp_ns);
    uint32_t n = 0;

    while (may && n < t->submit.batch_size) {
        int taken = t->backend->submit(t->context, t->submit.batch + n, t->submit.batch_size - n);
        t->boundary.running->figures.submit_calls++;
        if (taken > 0)
            n += (uint32_t)taken;
        else
            n = refuse(t, n, taken);
        if (n < t->submit.batch_size) /* a call may hang for as long as it likes */
            may = may_submit(t, thread_now(t));
    }
    if (!may && n > 0)
        cut_short(t, n, stamp_ns);
    return may;
}

void submit_take_back(struct thread *t, bool dropped)
{
    while (t->submit.batch_size > 0) {
        struct tag *tag = t->submit.batch[--t->submit.batch_size];
        struct instance *i = tag->instance;
        if (tag->again) {
            ready_queue_put_again(t, tag);
            continue;
        }
        i->share->in_flight -= tag->weight;
        i->in_flight--;
        in_flight_add(&t->in_flight, (uint32_t)-1);
        land(i, tag);
        publish_oldest(row_of(t, i), i);
        undo(i, tag);
        give_back(t, tag, dropped);
    }
}

void submit_note_backlog(struct thread *t, bool waits)
{
    for (uint32_t n = t->submit.batch_size; n-- > 0;) { /* the first of an instance has waited longest: it is last */
        const struct tag *tag = t->submit.batch[n];
        if (tag->due_ns && !tag->again)
            row_of(t, tag->instance)->backlog_since_ns = waits ? tag->due_ns
                                                               : pacer_backlog_since(&tag->instance->pacer);
    }
}

void submit_start(struct thread *t)
{
    t->submit.batch_size = 0;
    t->submit.limit = THREAD_BATCH;
    t->submit.closed_loop_next = t->submit.was_long = false;
    t->submit.dropped = 0;
}

void submit_prepare(struct thread *t)
{
    t->backend->prepare(t->context, t->submit.batch, t->submit.batch_size);
}
