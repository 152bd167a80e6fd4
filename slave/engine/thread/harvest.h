/* Completions: filing them by their stamp, and recording their times when there is nothing more urgent.
 *
 * Rule: an error or a short transfer is counted and enters no latency. One stamp holds for all completions of one look
 * at the ring; the time between two looks bounds its error, and is recorded.
 */
#ifndef IVYPY_HARVEST_H
#define IVYPY_HARVEST_H

#include "thread.h"

/* What a look at the ring found: tags are free again, errors are counted, times are kept for harvest_record. */
void harvest_file(struct thread *t, uint32_t count, uint64_t now_ns);

/* Records the times of what was filed. */
void harvest_record(struct thread *t);

/* One I/O that failed with -`result`, or moved only `result` bytes. */
void harvest_fail(struct thread *t, struct tag *tag, int64_t result, uint64_t now_ns);

#endif
