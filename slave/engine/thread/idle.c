#include "idle.h"

#include "thread.h"

/* A wait shorter than this is not worth a system call. */
#define SHORTEST_WAIT_NS 2000

/* Timers ring late: 1 us on bare metal, 30 us in a virtual machine. The thread learns by how much, sets them that much
 * early, and keeps polling until the instant itself. At most a sixteenth of its time goes into that: at rates that
 * would need more, several I/Os share a timer and its lateness. Up to a millisecond of unused time is saved for bursts. */
#define MOST_EARLY_NS 50000
#define SAVED_NS NS_PER_MS
enum { PART_AWAKE = 16 };

/* Busy-wait time counts sixteen times; the thread has budget for more while that total lies in the past. */
static bool has_budget(struct thread *t, uint64_t now_ns)
{
    if (t->idle.paid_until_ns + SAVED_NS < now_ns)
        t->idle.paid_until_ns = now_ns - SAVED_NS;
    return t->idle.paid_until_ns <= now_ns;
}

static void stay_awake(struct thread *t, uint64_t now_ns, uint64_t until_ns)
{
    t->idle.awake_until_ns = until_ns;
    if (until_ns > now_ns)
        t->idle.paid_until_ns += PART_AWAKE * (until_ns - now_ns);
}

/* The timer rang. How late is learned fast upwards and slowly downwards, so that four in five ring in time. */
void idle_rang(struct thread *t, uint64_t now_ns)
{
    int64_t late_ns = (int64_t)(now_ns - t->idle.alarm_ns), known_ns = (int64_t)t->idle.timer_late_ns;

    known_ns += late_ns > known_ns ? (late_ns - known_ns) / 8 : (late_ns - known_ns) / 32;
    t->idle.timer_late_ns = known_ns < 0 ? 0 : earlier((uint64_t)known_ns, MOST_EARLY_NS);
    if (t->idle.alarm_ns < t->idle.alarm_for_ns)
        stay_awake(t, now_ns, t->idle.alarm_for_ns);
}

int idle_until_needed(struct thread *t, uint64_t now_ns, enum idle_kind *how)
{
    uint64_t next_ns = earlier(due_times_next(&t->due_times), t->boundary.horizon_ns);
    uint64_t until_ns = earlier(next_ns, now_ns + (t->ready_queue.again ? NS_PER_MS : THREAD_LONGEST_WAIT_NS));
    bool awake = (t->idle.spin && due_times_next(&t->due_times) != HEAP_EMPTY) || now_ns < t->idle.awake_until_ns ||
                 until_ns <= now_ns + SHORTEST_WAIT_NS;

    t->idle.alarm_ns = t->idle.alarm_for_ns = until_ns;
    if (!awake && until_ns == next_ns && has_budget(t, now_ns)) {
        t->idle.alarm_ns -= earlier(t->idle.timer_late_ns, until_ns - now_ns);
        awake = t->idle.alarm_ns <= now_ns + SHORTEST_WAIT_NS;
        if (awake)
            stay_awake(t, now_ns, until_ns);
    }
    *how = awake ? IDLE_BUSY_WAIT : IDLE_ASLEEP;
    if (awake)
        return reap_poll(t);
    reap_delay_sleeps(t, now_ns);
    t->boundary.running->figures.waits++;
    return reap_wait(t, t->idle.alarm_ns - now_ns);
}

void idle_set_spin(struct thread *t, bool spin)
{
    t->idle.spin = spin;
}

void idle_start(struct thread *t)
{
    t->idle.awake_until_ns = 0;
}
