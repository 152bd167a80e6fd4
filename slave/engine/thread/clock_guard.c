#include "clock_guard.h"

#include "thread.h"

#define LOOK_EVERY_NS (10 * NS_PER_MS)

/* More than a suspend of the machine would be missed by, and less than any lasts. */
#define ASLEEP_NS (100 * NS_PER_MS)

/* By how much the thread's clock may be off the kernel's: it follows that at each boundary only, and the kernel may
 * adjust its own by 500 ppm meanwhile. */
static uint64_t most_apart(const struct thread *t)
{
    return NS_PER_S / 4 + t->step->length_ns / 1000;
}

static double seconds(uint64_t ns)
{
    return (double)ns / (double)NS_PER_S;
}

/* A thread that is preempted between two readings must see too little rather than too much. */
static uint64_t most_asleep(void)
{
    uint64_t monotonic_ns = clock_now();

    return clock_read(CLOCK_BOOTTIME) - monotonic_ns;
}

static uint64_t asleep_since(const struct thread *t)
{
    uint64_t boot_ns = clock_read(CLOCK_BOOTTIME), then_ns = clock_now() + t->clock_guard.asleep_ns;

    return boot_ns > then_ns ? boot_ns - then_ns : 0;
}

/* How far the thread's clock is off the kernel's, at least. */
static uint64_t apart(const struct thread *t)
{
    uint64_t before_ns = clock_now(), ns = thread_now(t), after_ns = clock_now();

    return ns < before_ns ? before_ns - ns : ns > after_ns ? ns - after_ns : 0;
}

void clock_guard_start(struct thread *t)
{
    t->clock_guard.asleep_ns = most_asleep();
    t->clock_guard.check_ns = 0;
}

bool clock_guard_is_due(struct thread *t, uint64_t now_ns)
{
    if (now_ns < t->clock_guard.check_ns)
        return false;
    t->clock_guard.check_ns = now_ns + LOOK_EVERY_NS;
    return true;
}

bool clock_guard_finds(const struct thread *t, struct clock_fault *fault)
{
    *fault = (struct clock_fault){.asleep_ns = asleep_since(t), .apart_ns = apart(t)};
    return fault->asleep_ns > ASLEEP_NS || fault->apart_ns > most_apart(t);
}

void clock_guard_die(struct thread *t, struct clock_fault fault)
{
    if (fault.asleep_ns > ASLEEP_NS)
        thread_die(t, "the machine was suspended for %.1f s: all I/O was stopped, as at the end of a lease",
                   seconds(fault.asleep_ns));
    else
        thread_die(t,
                   "the cycle counter is %.1f s off the kernel's clock (was a virtual machine restored?): all I/O was "
                   "stopped, as at the end of a lease",
                   seconds(fault.apart_ns));
}
