#include "idle.h"

#include "thread.h"

/* Reading a thread's CPU time is a system call, so not at every sleep. */
#define WEIGH_NS NS_PER_MS

/* Nor is whether others want the core looked at all the time; it takes less than LOOK_NS. */
#define HEED_NS (20 * NS_PER_MS)
#define HEED_AT_LAST_NS (200 * NS_PER_MS)
#define LOOK_NS UINT64_C(50000)

/* By one completion of each poll, and only here, where there is time: nothing of this is on the way of an I/O. */
static void note_service(struct thread *t, uint64_t active_ns)
{
    uint64_t known_ns = t->idle.service_ns, last_ns = t->reap.done[0].service_ns;

    if (active_ns == t->idle.active_ns)
        return;
    t->idle.active_ns = active_ns;
    t->idle.service_ns = known_ns ? known_ns - known_ns / 16 + last_ns / 16 : last_ns;
}

static struct outlook outlook(const struct thread *t, uint64_t now_ns, uint64_t active_ns)
{
    uint64_t due_ns = due_times_next(&t->due_times), exact_ns = earlier(due_ns, t->boundary.horizon_ns);

    return (struct outlook){
        .now_ns = now_ns,
        .active_ns = active_ns,
        .exact_ns = exact_ns,
        .until_ns = earlier(exact_ns, now_ns + (t->ready_queue.again ? NS_PER_MS : THREAD_LONGEST_WAIT_NS)),
        .service_ns = t->idle.service_ns,
        .due = due_ns != HEAP_EMPTY,
        .in_flight = in_flight_count(&t->in_flight) > 0,
    };
}

/* Whether others want the core: often where there is time to look, else now and then. */
static void heed_others(struct thread *t, const struct outlook *ahead)
{
    bool has_time = ahead->until_ns >= ahead->now_ns + LOOK_NS && !ahead->in_flight;

    if (ahead->now_ns - t->idle.core_use.seen_ns >= (has_time ? HEED_NS : HEED_AT_LAST_NS))
        t->idle.busy_wait.wanted = core_use_wanted(&t->idle.core_use, t->cpu, ahead->now_ns);
}

static int sleep_until(struct thread *t, uint64_t now_ns, uint64_t alarm_ns, uint64_t until_ns)
{
    t->idle.alarm_ns = alarm_ns;
    t->idle.alarm_for_ns = until_ns;
    t->idle.cpu_ns = now_ns >= t->idle.weigh_ns ? clock_thread_cpu() : 0;
    reap_delay_sleeps(t, now_ns);
    t->boundary.running->figures.waits++;
    return reap_wait(t, alarm_ns - now_ns);
}

int idle_until_needed(struct thread *t, uint64_t now_ns, uint64_t active_ns, enum idle_kind *how)
{
    note_service(t, active_ns);
    struct outlook ahead = outlook(t, now_ns, active_ns);
    heed_others(t, &ahead);
    uint64_t alarm_ns = busy_wait_alarm(&t->idle.busy_wait, &ahead);
    *how = alarm_ns <= now_ns ? IDLE_BUSY_WAIT : IDLE_ASLEEP;
    return alarm_ns <= now_ns ? reap_poll(t) : sleep_until(t, now_ns, alarm_ns, ahead.until_ns);
}

void idle_rang(struct thread *t, uint64_t now_ns)
{
    busy_wait_rang(&t->idle.busy_wait, t->idle.alarm_ns, t->idle.alarm_for_ns, now_ns);
    if (t->idle.cpu_ns == 0)
        return;
    wakeups_add_cost(&t->idle.busy_wait.wakeups, clock_thread_cpu() - t->idle.cpu_ns);
    t->idle.weigh_ns = now_ns + WEIGH_NS;
}

void idle_spent(struct thread *t, uint64_t ns)
{
    busy_wait_spend(&t->idle.busy_wait, ns);
}

void idle_set_spin(struct thread *t, enum spin spin)
{
    t->idle.busy_wait.spin = spin;
}

void idle_open(struct thread *t)
{
    wakeups_measure(&t->idle.busy_wait.wakeups);
}

void idle_start(struct thread *t)
{
    busy_wait_start(&t->idle.busy_wait);
    t->idle.service_ns = t->idle.active_ns = t->idle.weigh_ns = 0;
}
