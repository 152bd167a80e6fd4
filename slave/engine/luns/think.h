/* Think time: which tags of a closed loop think between two I/Os.
 *
 * Rule: a tag flies, thinks, is ready (in the instance's free list, the one that has waited longest first), or is
 * spare. All but the spare ones are users, as many as maxtags; after an edit that lowers it, those who end to think
 * leave. Tags think only while their instance is a closed loop: at a rate, or paused, all that do not fly are free.
 */
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

/* The I/O of this tag has ended. */
void think_about(struct tag *tag, uint64_t now_ns);

/* Who ends to think before `until_ns` is ready. */
void think_until(struct instance *i, uint64_t until_ns);

#endif
