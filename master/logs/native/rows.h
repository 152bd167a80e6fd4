/* Rows of latency logs: text to numbers, numbers to weighted histograms over time. Knows no Python.
 *
 * Rule: nothing is allocated here and nothing is explained here. A line that is not right stops the parser at
 * its first byte; the caller finds out what is wrong with it, slowly, for the message. Every text given ends
 * with a newline. Times and latencies are nanoseconds, except that a parser's stamps are as they stand in the log.
 */
#ifndef IVYPY_ROWS_H
#define IVYPY_ROWS_H

#include <stddef.h>
#include <stdint.h>

enum rows_status {
    ROWS_DONE = 0, /* the whole text was read */
    ROWS_BAD = 1,  /* the line that starts at `used` is not a row */
    ROWS_FULL = 2, /* the output has no room for another row; go on at `used` */
};

struct rows_result {
    int64_t rows;    /* rows read */
    int64_t entries; /* non-empty buckets read */
    int64_t lines;   /* lines passed, blank ones included */
    size_t used;     /* bytes passed: whole lines only */
    enum rows_status status;
};

/* A sparse histogram a row: row r has the entries first[r] .. first[r+1], ascending in bucket. */
struct histogram_rows {
    int64_t max_rows, max_entries;
    int64_t *stamps;     /* max_rows */
    uint8_t *directions; /* max_rows */
    int64_t *sizes;      /* max_rows; -1 where the log has no block size */
    int64_t *first;      /* max_rows + 1 */
    uint16_t *buckets;   /* max_entries */
    uint64_t *counts;    /* max_entries */
};

/* `lead` is 3 (stamp, direction, block size) or 2 (no block size); `columns` counts the buckets behind. */
struct rows_result histogram_rows_parse(const char *text, size_t size, int lead, int columns,
                                        const struct histogram_rows *out);

struct sample_rows {
    int64_t max_rows;
    int64_t *stamps;     /* as in the log; for smallfile the completion, ns */
    int64_t *values;     /* as in the log; for smallfile ns */
    uint8_t *directions; /* 0 for smallfile */
};

/* fio's latency logs: `fields` columns, the direction in column `direction_at` (2, or 3 behind a maximum). */
struct rows_result latency_rows_parse(const char *text, size_t size, int fields, int direction_at,
                                      const struct sample_rows *out);

/* smallfile: operation, start, response time, both in seconds with a decimal point. */
struct rows_result smallfile_rows_parse(const char *text, size_t size, const struct sample_rows *out);

/* Quanta [first, first + quanta) of a histogram over time; quantum k is (k * length, (k+1) * length]. */
struct window {
    int64_t length; /* ns */
    int64_t first, quanta, buckets;
    int64_t earliest; /* quantum: nothing is in flight before it, so what would be counts there */
    double *cells;    /* quanta x buckets */
    double *split;    /* a quantum: the I/Os that are there as a share of a row that other quanta share; or NULL */
    int64_t *top;     /* a quantum: the highest bucket of its unsplit rows, -1 before any; NULL with `split` */
};

struct records {
    int64_t rows;
    const int64_t *starts, *ends; /* (start, end], ns; equal where the row is a moment */
    const uint8_t *directions;
    const int64_t *first, *stop; /* entries of a row */
    const uint16_t *buckets;
    const uint64_t *counts;
};

/* Add the records whose direction's bit is in `mask`. `latencies` (ns a bucket) makes the weighting in-flight, which
 * leaves `split` and `top` alone. */
void records_spread(const struct records *records, unsigned mask, const double *latencies, const struct window *window);

struct samples {
    int64_t rows;
    const int64_t *ends, *values; /* completion and latency, ns */
    const uint8_t *directions;
};

/* What exact samples leave beside the buckets, a row per quantum: weight x value, weight x value squared, min, max. */
struct moments {
    double *sums, *squares;
    int64_t *lowest, *highest;
};

/* Add samples, by completion, or (in_flight) by the overlap of (end - value, end] with each quantum. */
void samples_spread(const struct samples *samples, unsigned mask, int in_flight, const struct window *window,
                    const struct moments *moments);

#endif
