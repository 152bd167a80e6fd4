#define _GNU_SOURCE
#include "buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Zeroed memory whose pages come into being when first touched: most buckets never are. */
static void *reserve(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static size_t buckets_size(uint32_t series)
{
    return (size_t)series * HISTOGRAM_BUCKETS * sizeof(uint64_t);
}

static size_t sections_size(uint32_t rows, uint32_t sections)
{
    return ((size_t)rows * sections + 1u) * SECTION_COUNTS * sizeof(uint64_t);
}

int buffer_init(struct buffer *b, uint32_t rows, uint32_t series, uint32_t sections)
{
    if (b->rows && b->rows_count == rows && b->series_count == series && b->sections_count == sections) {
        buffer_clear(b);
        return 0;
    }
    buffer_free(b);
    b->rows_count = rows;
    b->series_count = series;
    b->sections_count = sections;
    b->rows = aligned_alloc(64, (rows + 1u) * sizeof *b->rows);
    b->moments = aligned_alloc(64, (series + 1u) * sizeof *b->moments);
    b->buckets = reserve(buckets_size(series + 1u));
    b->sections = reserve(sections_size(rows, sections));
    b->poll_gap = calloc(HISTOGRAM_BUCKETS, sizeof *b->poll_gap);
    b->reap_delay = calloc(HISTOGRAM_BUCKETS, sizeof *b->reap_delay);
    b->faults = calloc(BUFFER_FAULTS, sizeof *b->faults);
    if (!b->rows || !b->moments || !b->buckets || !b->sections || !b->poll_gap || !b->reap_delay || !b->faults) {
        buffer_free(b);
        return -ENOMEM;
    }
    for (uint32_t n = 0; n < series; n++)
        moments_clear(&b->moments[n]);
    for (uint32_t n = 0; n < rows; n++)
        row_clear(&b->rows[n]);
    buffer_clear(b);
    return 0;
}

void buffer_free(struct buffer *b)
{
    free(b->rows);
    free(b->moments);
    if (b->buckets)
        munmap(b->buckets, buckets_size(b->series_count + 1u));
    if (b->sections)
        munmap(b->sections, sections_size(b->rows_count, b->sections_count));
    free(b->poll_gap);
    free(b->reap_delay);
    free(b->faults);
    *b = (struct buffer){.state = BUFFER_READY_TO_RUN};
}

/* Of those rows that have done anything: pages of others stay untouched. */
static void clear_sections(struct buffer *b)
{
    if (!b->sections_count)
        return;
    for (uint32_t n = 0; n < b->rows_count; n++)
        if (b->rows[n].completed)
            memset(buffer_sections(b, n), 0, (size_t)b->sections_count * SECTION_COUNTS * sizeof(uint64_t));
}

void buffer_clear(struct buffer *b)
{
    clear_sections(b);
    for (uint32_t n = 0; n < b->rows_count; n++)
        row_clear(&b->rows[n]);
    for (uint32_t n = 0; n < b->series_count; n++)
        series_clear(&b->moments[n], b->buckets + (size_t)n * HISTOGRAM_BUCKETS);
    memset(b->poll_gap, 0, HISTOGRAM_BUCKETS * sizeof *b->poll_gap);
    memset(b->reap_delay, 0, HISTOGRAM_BUCKETS * sizeof *b->reap_delay);
    if (b->faults_used)
        memset(b->faults, 0, BUFFER_FAULTS * sizeof *b->faults);
    b->faults_used = 0;
    b->figures = (struct thread_figures){0};
}

void buffer_count_fault(struct buffer *b, uint32_t number, int error)
{
    uint32_t place = (number * 2654435761u + (uint32_t)error * 40503u) % BUFFER_FAULTS;

    for (uint32_t tries = 0; tries < BUFFER_FAULTS; tries++, place = (place + 1) % BUFFER_FAULTS) {
        struct fault *fault = &b->faults[place];
        if (fault->count == 0) {
            *fault = (struct fault){.number = number, .error = error};
            b->faults_used++;
        }
        if (fault->number == number && fault->error == error) {
            fault->count++;
            return;
        }
    }
}
