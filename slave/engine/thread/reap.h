/* Completions: filing them by their stamp, and recording their times when there is nothing more urgent.
 *
 * Rule: an error or a short transfer is counted and enters no latency. One stamp holds for all completions of one poll
 * of the ring; the time between two polls bounds its error, and is recorded.
 */
#ifndef IVYPY_REAP_H
#define IVYPY_REAP_H

#include "thread.h"

/* What a poll of the ring found: tags are free again, errors are counted, times are kept for reap_record. */
void reap_file(struct thread *t, uint32_t count, uint64_t now_ns);

/* Records the times of what was filed. */
void reap_record(struct thread *t);

/* One I/O that failed with -`result`, or moved only `result` bytes. */
void reap_fail(struct thread *t, struct tag *tag, int64_t result, uint64_t now_ns);

#endif
