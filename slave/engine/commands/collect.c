/* Collecting: the finished buffers of all threads become one result, and are free at once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "luns/volume.h"
#include "result.h"

/* What one thread contributes to a result. */
struct part {
    struct thread_figures sums;
    uint64_t gaps, *gap_buckets; /* poll gaps: how many, and their histogram */
    struct moments lateness;
    uint64_t *lateness_buckets;
    uint64_t delays, *delay_buckets; /* reap delays */
    bool swapped;
};

static void tally(struct tally *sums, const struct row *row)
{
    sums->backlog += (int64_t)(row->due - row->submitted - (row->dropped - row->withdrawn) - row->expired);
    sums->in_flight += (int64_t)(row->submitted - row->completed - row->errors - row->withdrawn);
    if (row->oldest_submit_ns != UNCHANGED)
        sums->oldest_submit_ns = row->oldest_submit_ns;
    if (row->oldest_due_ns != UNCHANGED)
        sums->oldest_due_ns = row->oldest_due_ns;
    if (row->backlog_since_ns != UNCHANGED)
        sums->backlog_since_ns = row->backlog_since_ns;
    if (row->edit != UNCHANGED)
        sums->edit = row->edit;
}

static void add_row(int64_t *counts, const struct row *row)
{
    counts[COUNT_DUE] += (int64_t)row->due;
    counts[COUNT_SUBMITTED] += (int64_t)row->submitted;
    counts[COUNT_COMPLETED] += (int64_t)row->completed;
    counts[COUNT_BYTES] += (int64_t)row->bytes;
    counts[COUNT_ERRORS] += (int64_t)row->errors;
    counts[COUNT_SHORT] += (int64_t)row->short_transfers;
    counts[COUNT_DROPPED] += (int64_t)row->dropped;
    counts[COUNT_QUEUE_LIMITED] += (int64_t)row->queue_limited;
    counts[COUNT_READS_SAMPLED] += (int64_t)row->reads_sampled;
    counts[COUNT_ZERO_READS] += (int64_t)row->zero_reads;
    counts[COUNT_EAGAIN] += (int64_t)row->again;
    counts[COUNT_WITHDRAWN] += (int64_t)row->withdrawn;
    counts[COUNT_EXPIRED] += (int64_t)row->expired;
    counts[COUNT_WRITTEN] += (int64_t)row->written;
    counts[COUNT_FLUSHES] += (int64_t)row->flushes;
}

/* Each section's two triples: a count, a sum, and what was longest. */
static void add_sections(uint64_t *into, const uint64_t *from, uint32_t sections)
{
    for (uint32_t n = 0; n < sections * SECTION_COUNTS; n += SECTION_CHANGES) {
        into[n] += from[n];
        into[n + 1] += from[n + 1];
        if (from[n + 2] > into[n + 2])
            into[n + 2] = from[n + 2];
    }
}

static void add_rows(struct collector *c, struct result *r, const struct thread *t, const struct buffer *b)
{
    for (uint32_t n = 0; n < t->step_count; n++) {
        const struct instance *i = t->step_instances[n];
        const struct row *row = &b->rows[i->slot];
        struct tally *sums = &c->tallies[i->order];
        add_row(r->counts + (size_t)sums->row * COUNTS, row);
        tally(sums, row);
        if (row->completed && c->sections)
            add_sections(r->sections + (size_t)sums->row * c->sections * SECTION_COUNTS, buffer_sections(b, i->slot),
                         c->sections);
    }
}

static void add_series(struct collector *c, struct part *p, const struct thread *t, const struct buffer *b)
{
    for (uint32_t n = 0; n < t->classes_count; n++)
        for (uint32_t m = 0; m < SERIES; m++) {
            const struct moments *moments = &b->moments[n * SERIES + m];
            const uint64_t *buckets = b->buckets + (size_t)(n * SERIES + m) * HISTOGRAM_BUCKETS;
            size_t into = (size_t)t->classes[n] * SERIES + m;
            series_merge(&c->moments[into], c->buckets + into * HISTOGRAM_BUCKETS, moments, buckets);
            if (m == SERIES_LATENESS)
                series_merge(&p->lateness, p->lateness_buckets, moments, buckets);
        }
}

/* Appends what a buffer counted; merge_faults() then adds up what several threads, or buffers, counted alike. */
static int add_faults(struct result *r, const struct buffer *b)
{
    if (!b->faults_used)
        return 0;
    struct fault *faults = realloc(r->faults, (r->fault_count + b->faults_used) * sizeof *faults);
    if (!faults)
        return -ENOMEM;
    r->faults = faults;
    for (uint32_t n = 0; n < BUFFER_FAULTS; n++)
        if (b->faults[n].count)
            r->faults[r->fault_count++] = b->faults[n];
    return 0;
}

static int compare_faults(const void *a, const void *b)
{
    const struct fault *one = a, *other = b;

    if (one->number != other->number)
        return one->number < other->number ? -1 : 1;
    return (one->error > other->error) - (one->error < other->error);
}

/* By number and errno, each once. */
static void merge_faults(struct result *r)
{
    uint32_t kept = 0;

    if (r->fault_count == 0)
        return;
    qsort(r->faults, r->fault_count, sizeof *r->faults, compare_faults);
    for (uint32_t n = 1; n < r->fault_count; n++) {
        if (compare_faults(&r->faults[kept], &r->faults[n]) == 0)
            r->faults[kept].count += r->faults[n].count;
        else
            r->faults[++kept] = r->faults[n];
    }
    r->fault_count = kept + 1;
}

static void add_figures(struct part *p, const struct buffer *b)
{
    const struct thread_figures *f = &b->figures;
    struct thread_figures *s = &p->sums;

    s->overruns += f->overruns;
    s->dispatch = f->dispatch;
    s->switchover = f->switchover;
    s->in_submit += f->in_submit;
    s->submit_calls += f->submit_calls;
    s->reaps += f->reaps;
    s->waits += f->waits;
    s->submitted += f->submitted;
    s->completed += f->completed;
    s->cpu_time += f->cpu_time;
    s->clock_adjustment += f->clock_adjustment;
    s->busy_wait += f->busy_wait;
    s->reap_delay += f->reap_delay;
    if (f->poll_gap_max > s->poll_gap_max)
        s->poll_gap_max = f->poll_gap_max;
    for (uint32_t n = 0; n < HISTOGRAM_BUCKETS; n++) {
        p->gap_buckets[n] += b->poll_gap[n];
        p->gaps += b->poll_gap[n];
        p->delay_buckets[n] += b->reap_delay[n];
        p->delays += b->reap_delay[n];
    }
}

/* A finished buffer of the thread that belongs to this result, or was late for an earlier one; the older one first. */
static struct buffer *finished(struct thread *t, uint32_t label)
{
    struct buffer *oldest = NULL;

    for (int n = 0; n < 2; n++) {
        struct buffer *b = &t->buffers[n];
        if (atomic_load_explicit(&b->state, memory_order_acquire) == BUFFER_READY_TO_SEND && b->label <= label &&
            (!oldest || b->label < oldest->label))
            oldest = b;
    }
    return oldest;
}

static int take_part(struct engine *e, struct thread *t, const struct clock_map *anchor, struct part *p,
                     struct result *r)
{
    struct collector *c = &e->collector;
    struct buffer *b;
    int result = 0;

    while ((b = finished(t, c->next))) {
        atomic_store_explicit(&b->state, BUFFER_SENDING, memory_order_relaxed);
        add_rows(c, r, t, b);
        add_series(c, p, t, b);
        add_figures(p, b);
        int of_faults = add_faults(r, b);
        result = result ? result : of_faults;
        if (b->label == c->next)
            p->swapped = true;
        buffer_clear(b);
        b->anchor = *anchor;
        atomic_store_explicit(&b->state, BUFFER_READY_TO_RUN, memory_order_release);
    }
    return result;
}

/* Of `until` by time: how much is left at the end of the result. */
static uint64_t time_left(const struct thread *t, const struct instance *i, uint64_t end_ns)
{
    uint64_t until_ns = t->step->start_ns + i->parameters.fixed.until.amount;

    return until_ns > end_ns ? until_ns - end_ns : 0;
}

/* How far its instances are with `until`: by now, which may be later than the boundary. */
static void note_volumes(struct collector *c, const struct thread *t, uint64_t end_ns, bool swapped)
{
    for (uint32_t n = 0; n < t->step_count; n++) {
        const struct instance *i = t->step_instances[n];
        struct tally *sums = &c->tallies[i->order];
        sums->timed = volume_is_timed(i);
        sums->left = sums->timed ? time_left(t, i, end_ns) : volume_left(i);
        if (swapped) /* else its last I/Os are in a later result */
            sums->ended_ns = atomic_load_explicit(&i->volume.ended_ns, memory_order_relaxed);
    }
}

/* Of all completions: those whose delay is not recorded count as none. */
static uint64_t reap_delay_p99(struct part *p)
{
    struct moments all = {.count = p->sums.completed, .max = UINT64_MAX};

    p->delay_buckets[0] += p->sums.completed - p->delays;
    return histogram_percentile(p->delay_buckets, &all, 9900);
}

static void pack_thread(const struct thread *t, struct part *p, int64_t *figures)
{
    struct moments gaps = {.count = p->gaps, .max = p->sums.poll_gap_max}; /* what is known of these histograms */

    figures[THREAD_CPU] = t->cpu;
    figures[THREAD_SWAPPED] = p->swapped;
    figures[THREAD_OVERRUNS] = (int64_t)p->sums.overruns;
    figures[THREAD_DISPATCH] = (int64_t)p->sums.dispatch;
    figures[THREAD_SWITCHOVER] = (int64_t)p->sums.switchover;
    figures[THREAD_LATENESS_P50] = (int64_t)histogram_percentile(p->lateness_buckets, &p->lateness, 5000);
    figures[THREAD_LATENESS_P99] = (int64_t)histogram_percentile(p->lateness_buckets, &p->lateness, 9900);
    figures[THREAD_LATENESS_MAX] = (int64_t)p->lateness.max;
    figures[THREAD_POLL_GAP_P99] = (int64_t)histogram_percentile(p->gap_buckets, &gaps, 9900);
    figures[THREAD_POLL_GAP_MAX] = (int64_t)p->sums.poll_gap_max;
    figures[THREAD_IN_SUBMIT] = (int64_t)p->sums.in_submit;
    figures[THREAD_SUBMIT_CALLS] = (int64_t)p->sums.submit_calls;
    figures[THREAD_REAPS] = (int64_t)p->sums.reaps;
    figures[THREAD_SLEEPS] = (int64_t)p->sums.waits;
    figures[THREAD_SUBMITTED] = (int64_t)p->sums.submitted;
    figures[THREAD_COMPLETED] = (int64_t)p->sums.completed;
    figures[THREAD_CPU_TIME] = (int64_t)p->sums.cpu_time;
    figures[THREAD_CLOCK_ADJUSTMENT] = p->sums.clock_adjustment;
    figures[THREAD_BUSY_WAIT] = (int64_t)p->sums.busy_wait;
    figures[THREAD_REAP_DELAY_SUM] = (int64_t)p->sums.reap_delay;
    figures[THREAD_REAP_DELAY_P99] = (int64_t)reap_delay_p99(p);
}

static int collect_thread(struct engine *e, struct thread *t, const struct clock_map *anchor, struct result *r)
{
    uint64_t *scratch = e->collector.scratch;
    struct part p = {.lateness_buckets = scratch,
                     .gap_buckets = scratch + HISTOGRAM_BUCKETS,
                     .delay_buckets = scratch + 2 * HISTOGRAM_BUCKETS};

    moments_clear(&p.lateness);
    memset(scratch, 0, 3 * HISTOGRAM_BUCKETS * sizeof *scratch);
    int result = take_part(e, t, anchor, &p, r);
    note_volumes(&e->collector, t, e->collector.end_ns + r->length_ns, p.swapped);
    pack_thread(t, &p, r->thread_figures + (size_t)t->number * THREAD_COUNTS);
    if (!p.swapped)
        r->missing[r->missing_count++] = t->number;
    return result;
}

/* Where the next result ends: all threads have passed that or, with `force`, one. It may have had no free buffer to
 * hand over, having been late itself the time before: the result ends there all the same. NULL: not yet. */
static const struct passed *finish_line(const struct engine *e, bool force)
{
    const struct passed *line = NULL;
    uint32_t count = 0;

    for (uint32_t n = 0; n < e->thread_count; n++) {
        const struct thread *t = &e->threads[n];
        if (atomic_load_explicit(&t->boundary.progress, memory_order_acquire) <= e->collector.next)
            continue;
        line = &t->boundary.passed[e->collector.next % 2];
        count++;
    }
    return count == e->thread_count || force ? line : NULL;
}

/* As finish_line; a step that is over has none. */
static const struct passed *next_line(struct engine *e, bool force)
{
    engine_hold(e);
    const struct passed *line = e->in_step && !e->collector.last ? finish_line(e, force) : NULL;
    engine_let_go(e);
    return line;
}

/* `ended` may report the end of the step from now on, if this was its last result. */
static void take_note(struct engine *e, const struct result *r)
{
    struct collector *c = &e->collector;

    engine_hold(e);
    c->last = r->last;
    c->next++;
    atomic_store_explicit(&e->step.released, c->next, memory_order_release);
    engine_let_go(e);
}

static int collect(struct engine *e, bool force, struct result *r)
{
    struct collector *c = &e->collector;
    const struct passed *line = next_line(e, force);
    int result;

    if (!line)
        return 0;
    result = result_init(r, e);
    if (result != 0)
        return result;
    r->subinterval = line->subinterval;
    r->length_ns = line->end_ns - c->end_ns;
    r->last = line->last;
    struct clock_map anchor = engine_anchor(e);
    for (uint32_t n = 0; n < e->thread_count; n++) {
        int of_thread = collect_thread(e, &e->threads[n], &anchor, r);
        result = result ? result : of_thread;
    }
    r->start_ns = c->end_ns;
    c->end_ns += r->length_ns;
    merge_faults(r);
    int of_series = result_pack(c, r);
    result = result ? result : of_series;
    take_note(e, r);
    if (result != 0)
        result_free(r);
    return result ? result : 1;
}

int engine_collect(struct engine *e, bool force, struct result *r)
{
    pthread_mutex_lock(&e->collecting);
    int result = collect(e, force, r);
    pthread_mutex_unlock(&e->collecting);
    return result;
}

void collect_wait(struct engine *e)
{
    pthread_mutex_lock(&e->collecting);
    pthread_mutex_unlock(&e->collecting);
}
