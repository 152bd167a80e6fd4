/* How long a thread was ready to run and had no core, by the kernel's own account (/proc/thread-self/schedstat).
 *
 * Rule: a reading is a system call of half a microsecond, so they are few. Where the kernel keeps no such account,
 * nothing is known and nothing is said.
 */
#ifndef IVYPY_RUNQUEUE_DELAY_H
#define IVYPY_RUNQUEUE_DELAY_H

#include <stdint.h>

/* Of the calling thread: a descriptor, or -1 where there is no account. */
int runqueue_delay_open(void);
void runqueue_delay_close(int fd);

/* Nanoseconds since the thread began; 0 where nothing is known. */
uint64_t runqueue_delay_ns(int fd);

#endif
