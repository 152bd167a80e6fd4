/* Each thread's share of the kernel's queues, settled before a step.
 *
 * Rule: of a queue that cannot hold what all instances may want, each thread gets a part in proportion to what its own
 * want; so no thread needs to know of the others. Threads whose cores submit to different hardware queues of a device
 * share nothing. One that may submit to any of them (not pinned; sqpoll) counts in each, and gets what the busiest
 * leaves it.
 */
#ifndef IVYPY_QUEUE_SHARES_H
#define IVYPY_QUEUE_SHARES_H

#include "engine.h"

/* By what each thread was dealt. 0 or -errno. */
int queue_shares_settle(struct engine *e);

#endif
