/* Numbers to weighted histograms over time.
 *
 * Every record has a distribution function F over time: the share of it that lies at or before t. The weight of a
 * quantum is F(its end) - F(its start). F is rounded to 2^-30, so weights are exact binary fractions, add up to
 * exactly one, and a cell's sum is exact (below 2^23 I/Os a cell) whatever the order in which threads add.
 */
#include "rows.h"

#define STEPS 1073741824.0 /* 2^30 */

#define BUCKET_BITS 6 /* protocol/histogram.py's layout */
#define PER_GROUP (1 << BUCKET_BITS)

static double rounded(double share)
{
    return (double)(int64_t)(share * STEPS + 0.5) / STEPS;
}

/* The quantum that holds t: (k * length, (k+1) * length]. */
static int64_t quantum_of(int64_t t, int64_t length)
{
    int64_t last = t - 1, k = last / length;
    return k - (last % length < 0);
}

static double ios_of(const struct records *records, int64_t row)
{
    uint64_t ios = 0;
    for (int64_t i = records->first[row]; i < records->stop[row]; i++)
        ios += records->counts[i];
    return (double)ios;
}

static void spread_uniform(const struct records *records, int64_t row, const struct window *w)
{
    int64_t start = records->starts[row], end = records->ends[row];
    int64_t high = quantum_of(end, w->length);
    int64_t low = end > start ? quantum_of(start + 1, w->length) : high;
    int64_t from = low > w->first ? low : w->first;
    int64_t to = high < w->first + w->quanta - 1 ? high : w->first + w->quanta - 1;
    double span = (double)(end - start);
    double below = from == low ? 0.0 : rounded((double)(from * w->length - start) / span);
    double ios = low < high ? ios_of(records, row) : 0.0;
    for (int64_t k = from; k <= to; k++) {
        double upto = k == high ? 1.0 : rounded((double)((k + 1) * w->length - start) / span);
        double weight = upto - below;
        below = upto;
        double *cells = w->cells + (k - w->first) * w->buckets;
        for (int64_t i = records->first[row]; i < records->stop[row]; i++)
            cells[records->buckets[i]] += weight * (double)records->counts[i];
        if (low < high)
            w->split[k - w->first] += weight * ios;
        else if (w->top[k - w->first] < records->buckets[records->stop[row] - 1])
            w->top[k - w->first] = records->buckets[records->stop[row] - 1];
    }
}

/* F of an I/O in flight: its completion is uniform over `span` ns, and it is spread evenly over the `latency` ns
 * before; the sum of two uniform variables, so a trapezoid. `x` is counted from its earliest possible begin. */
static double in_flight_share(double x, double latency, double span)
{
    double shorter = latency < span ? latency : span, longer = latency < span ? span : latency;
    if (x >= shorter + longer)
        return 1.0;
    if (x <= 0.0)
        return 0.0;
    if (x < shorter)
        return x * x / (2.0 * shorter * longer);
    if (x <= longer)
        return (x - shorter / 2.0) / longer;
    double rest = shorter + longer - x;
    return 1.0 - rest * rest / (2.0 * shorter * longer);
}

static void spread_in_flight(const struct records *records, int64_t row, const double *latencies,
                             const struct window *w)
{
    int64_t start = records->starts[row], end = records->ends[row];
    int64_t high = quantum_of(end, w->length);
    double span = (double)(end - start), length = (double)w->length;
    double behind = (double)(high * w->length - start); /* from the row's start to the last quantum's */
    for (int64_t i = records->first[row]; i < records->stop[row]; i++) {
        uint16_t bucket = records->buckets[i];
        double latency = latencies[bucket], count = (double)records->counts[i];
        double x = behind + latency, above = 1.0;
        /* From the last quantum back, until nothing of the bucket lies before. */
        for (int64_t k = high; above > 0.0 && k >= w->first; k--, x -= length) {
            double below = x <= 0.0 || k <= w->earliest ? 0.0 : rounded(in_flight_share(x, latency, span));
            if (k < w->first + w->quanta)
                w->cells[(k - w->first) * w->buckets + bucket] += (above - below) * count;
            above = below;
        }
    }
}

/* Whether a row can reach into the window at all; `reach` is how long before its start its slowest I/O began. */
static int is_outside(const struct records *records, int64_t row, int64_t reach, const struct window *w)
{
    return quantum_of(records->ends[row], w->length) < w->first ||
           quantum_of(records->starts[row] - reach, w->length) >= w->first + w->quanta;
}

void records_spread(const struct records *records, unsigned mask, const double *latencies, const struct window *window)
{
    for (int64_t row = 0; row < records->rows; row++) {
        int64_t stop = records->stop[row];
        if (!(mask >> records->directions[row] & 1) || stop == records->first[row])
            continue;
        if (is_outside(records, row, latencies ? (int64_t)latencies[records->buckets[stop - 1]] : 0, window))
            continue;
        if (latencies)
            spread_in_flight(records, row, latencies, window);
        else
            spread_uniform(records, row, window);
    }
}

static int64_t bucket_of(uint64_t ns, int64_t buckets)
{
    if (ns < 2 * PER_GROUP)
        return (int64_t)ns;
    int shift = 63 - __builtin_clzll(ns) - BUCKET_BITS;
    int64_t bucket = ((int64_t)(shift + 1) << BUCKET_BITS) + (int64_t)(ns >> shift & (PER_GROUP - 1));
    return bucket < buckets ? bucket : buckets - 1;
}

static void add_sample(const struct window *w, const struct moments *m, int64_t quantum, int64_t value, double weight)
{
    int64_t k = quantum - w->first;
    if (k < 0 || k >= w->quanta)
        return;
    w->cells[k * w->buckets + bucket_of((uint64_t)value, w->buckets)] += weight;
    m->sums[k] += weight * (double)value;
    m->squares[k] += weight * (double)value * (double)value;
    if (value < m->lowest[k])
        m->lowest[k] = value;
    if (value > m->highest[k])
        m->highest[k] = value;
}

void samples_spread(const struct samples *samples, unsigned mask, int in_flight, const struct window *window,
                    const struct moments *moments)
{
    int64_t length = window->length, quantum = 0, after = 0, upto = 0; /* the last sample's quantum: (after, upto] */
    for (int64_t i = 0; i < samples->rows; i++) {
        if (!(mask >> samples->directions[i] & 1))
            continue;
        int64_t end = samples->ends[i], value = samples->values[i];
        if (end <= after || end > upto) {
            quantum = quantum_of(end, length);
            after = quantum * length;
            upto = after + length;
        }
        if (!in_flight || end - value >= after) {
            add_sample(window, moments, quantum, value, 1.0);
            continue;
        }
        double above = 1.0, span = (double)value;
        for (int64_t k = quantum, begin = after; above > 0.0 && k >= window->first; k--, begin -= length) {
            int is_first = begin <= end - value || k <= window->earliest;
            double below = is_first ? 0.0 : rounded((double)(begin - (end - value)) / span);
            add_sample(window, moments, k, value, above - below);
            above = below;
        }
    }
}
