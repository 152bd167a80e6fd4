/* Whether others want a thread's core: how much of the time that the thread left to it the core was idle.
 *
 * By the kernel's account of the core's idle states. Where there is none (a virtual machine without cpuidle), or the
 * thread is not pinned to a core, nothing is known, and the scheduler alone shares the core out.
 */
#ifndef IVYPY_CORE_USE_H
#define IVYPY_CORE_USE_H

#include <stdbool.h>
#include <stdint.h>

struct core_use {
    uint64_t seen_ns, cpu_ns, idle_ns; /* when it was last looked at, CPU time of the thread, idle time of its core */
};

/* Whether others used more than half of what the calling thread left of its core since the last call; false where that
 * is not known. Some system calls, 10 us. */
bool core_use_wanted(struct core_use *c, int cpu, uint64_t now_ns);

#endif
