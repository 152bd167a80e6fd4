/* Room in a queue of the kernel, counted in requests and shared by the workload threads that submit to it.
 *
 * Rule: a thread takes room in lots when it needs it and gives back what it does not use, so an idle thread leaves its
 * room to a busy one. Each keeps room for one I/O, so whoever has something in flight, and nobody else, ever waits: its
 * next completion asks again, and no thread has to wake another. A thread that waits below its part (by the settings in
 * force) is hungry: then those above theirs give back what completes, and take nothing. Where no I/O can block
 * (RWF_NOWAIT works for all), nothing is refused: the kernel itself says when its queue is full.
 */
#ifndef IVYPY_QUEUE_ROOM_H
#define IVYPY_QUEUE_ROOM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct queue_room {
    _Alignas(64) _Atomic int64_t free; /* below 0: more is held than there is, by I/Os that cannot block */
    _Atomic uint32_t hungry;           /* threads that wait below their part */
    _Atomic uint32_t blocking;         /* instances whose I/Os block where there is no room */
    _Atomic uint32_t reserved;         /* for one I/O of each thread */
    _Atomic uint64_t wanted;           /* by all, as their settings in force are */
    uint32_t limit, lot;
    bool whole; /* it is all that the device has: where it is full, so is the device */
};

/* What one thread holds of it. */
struct holding {
    struct queue_room *room; /* NULL: nothing is limited */
    uint32_t held;
    uint32_t reserve; /* the least that it holds: room for one I/O */
    uint64_t wanted;
    bool hungry;
};

/* For so many threads. */
void queue_room_init(struct queue_room *r, uint32_t limit, uint32_t threads, bool whole);

/* Nothing is wanted yet; from here on it holds room for one request. */
void holding_init(struct holding *h, struct queue_room *room);

/* A thread's instance has other settings now: it wants so much more or less, in I/Os of `weight` requests, and so many
 * more or fewer instances block. */
void holding_demand(struct holding *h, int64_t wanted, uint32_t weight, int blocking);

/* Holds room for what is in flight, whether there is some or not. */
void holding_cover(struct holding *h, uint32_t in_flight);

/* Whether there is room for one more I/O of `weight` requests, which it then holds. */
bool holding_take(struct holding *h, uint32_t in_flight, uint32_t weight);

/* There was none for such an I/O, which waits: to be said each time that it was asked for. */
void holding_wait(struct holding *h, uint32_t in_flight, uint32_t weight);

/* None of its I/Os waits. */
void holding_calm(struct holding *h);

/* Something completed; so much is left in flight. */
void holding_release(struct holding *h, uint32_t in_flight);

/* Whether the device itself has no room for one more. */
bool holding_device_is_full(const struct holding *h, uint32_t in_flight, uint32_t weight);

#endif
