/* The columns of the packed arrays: the C twin of protocol/counters.py, which a test compares by name.
 *
 * Rule: each table is written once, as a list of names; the enum and layout() are made from it.
 */
#ifndef IVYPY_COLUMNS_H
#define IVYPY_COLUMNS_H

/* Each with the series of its service times; that of its response times is SERIES_RESPONSE further on. */
#define KINDS_TABLE(X) \
    X(RANDOM_READ, 0) X(RANDOM_WRITE, 1) X(SEQUENTIAL_READ, 2) X(SEQUENTIAL_WRITE, 3) X(TRIM, 14) X(WRITE_ZEROES, 15)

#define MOMENTS_TABLE(X) X(COUNT) X(BYTES) X(SUM) X(SQUARES_LOW) X(SQUARES_HIGH) X(MIN) X(MAX)

/* clang-format off */
#define COUNTS_TABLE(X)                                                                                       \
    X(EDIT) X(DUE) X(SUBMITTED) X(COMPLETED) X(BYTES) X(ERRORS) X(SHORT) X(DROPPED) X(BACKLOG) X(IN_FLIGHT)   \
    X(OLDEST_IN_FLIGHT_NS) X(OLDEST_OUTSTANDING_NS) X(QUEUE_LIMITED) X(EAGAIN) X(READS_SAMPLED) X(ZERO_READS) \
    X(FOREIGN_BYTES) X(WITHDRAWN) X(EXPIRED) X(KEPT_NS) X(STOLEN_NS) X(LEFT)                 \
    X(ENDED_NS) X(WRITTEN) X(FLUSHES) X(CACHED) X(DIRTY) X(UNSEEN)

#define THREAD_COUNTS_TABLE(X)                                                                                \
    X(CPU) X(SWAPPED) X(OVERRUNS) X(DISPATCH) X(SWITCHOVER) X(LATENESS_P50) X(LATENESS_P99) X(LATENESS_MAX)   \
    X(POLL_GAP_P99) X(POLL_GAP_MAX) X(IN_SUBMIT) X(SUBMIT_CALLS) X(REAPS) X(SLEEPS) X(SUBMITTED) X(COMPLETED) \
    X(CPU_TIME) X(CLOCK_ADJUSTMENT) X(BUSY_WAIT) X(REAP_DELAY_SUM) X(REAP_DELAY_P99)
/* clang-format on */

/* Of the I/Os that begin in one section of their LUN: its count, what they took together, and the longest. CHANGES:
 * whatever is no read, flushes apart. */
#define SECTIONS_TABLE(X) X(READS) X(READ_NS) X(LONGEST_READ_NS) X(CHANGES) X(CHANGE_NS) X(LONGEST_CHANGE_NS)

#define KIND_COLUMN(name, series) KIND_##name = series,
#define MOMENT_COLUMN(name) MOMENT_##name,
#define COUNT_COLUMN(name) COUNT_##name,
#define THREAD_COLUMN(name) THREAD_##name,
#define SECTION_COLUMN(name) SECTION_##name,

enum kind { KINDS_TABLE(KIND_COLUMN) };
enum moment { MOMENTS_TABLE(MOMENT_COLUMN) MOMENTS };
enum count { COUNTS_TABLE(COUNT_COLUMN) COUNTS };
enum thread_count { THREAD_COUNTS_TABLE(THREAD_COLUMN) THREAD_COUNTS };
enum section_count { SECTIONS_TABLE(SECTION_COLUMN) SECTION_COUNTS };

enum {
    SERIES_SERVICE = 0,
    SERIES_RESPONSE = 4,
    SERIES_LATENESS = 8,
    SERIES_DELAYED = 9,
    SERIES_UNDELAYED = 10,
    SERIES_LATE = 11,
    SERIES_PUNCTUAL = 12,
    SERIES_FLUSH = 13,
    SERIES = 20,
};

#endif
