/* Think time: which tags of a closed loop think between two I/Os.
 *
 * Rule: a tag flies, thinks, is ready (in the instance's free list, the one that has waited longest first), or is
 * spare. All but the spare ones are users, as many as maxtags; after an edit that lowers it, those who end to think
 * leave. Tags think only while their instance is a closed loop: at a rate, or paused, all that do not fly are free.
 *
 * Lateness. In a full queue a user that is ready waits for others. What of that is the generator's doing, not the
 * storage's, is how much further it falls behind the same loop on a machine on which nothing is ever late. Each user is
 * behind by some time, and so are the requests in flight, in the mean, since any room will do:
 *
 *   - found too late, an I/O is behind by its reap delay more (reap.c),
 *   - who did not wait for room is behind by what it goes too late, and all that went before is past,
 *   - who waited for room would be on its way since both it and the room would have been ready (submit.c); who did so
 *     at a rate, or without a think time, is as far behind as the others.
 *
 * So in a queue that is always full, of 12 for 64 users, each I/O's delay adds a twelfth of itself to the 52 waits. */
#ifndef IVYPY_THINK_H
#define IVYPY_THINK_H

#include <stdbool.h>
#include <stdint.h>

struct instance;
struct tag;

/* As the instance becomes a closed loop, in which as many tags fly as in_flight says: where it has a think time, its
 * users begin one after the other from `now_ns` on. */
void think_begin(struct instance *i, uint64_t now_ns);

/* After a change of maxtags: who is new begins within the next think time. */
void think_recruit(struct instance *i, uint64_t now_ns);

/* It is no closed loop any more. */
void think_end(struct instance *i);

/* A tag that an I/O of an earlier step had. */
void think_spare(struct instance *i, struct tag *tag);

/* The I/O of this tag has ended, and a flush is to follow at once. */
void think_keep(struct instance *i, struct tag *tag);

/* The I/O of this tag has ended. */
void think_about(struct tag *tag, uint64_t now_ns);

/* Who ends to think before `until_ns` is ready. */
void think_until(struct instance *i, uint64_t until_ns);

#endif
