/* What all threads of a step agree on without waiting for each other: where boundaries lie, and what happens there.
 *
 * Rule: every boundary has one outcome, the same for all threads. Whoever passes it first decides, by compare and
 * swap in a ring that holds the outcomes of the last few thousand boundaries; the others follow, however late.
 * So a result covers the same subintervals on every thread, a step ends at the same boundary everywhere, and a halt
 * or an expired lease cuts the same subinterval at the same instant.
 */
#ifndef IVYPY_STEP_H
#define IVYPY_STEP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { STEP_PLACES = 16, STEP_DECISIONS = 4096 };

#define STEP_NEVER UINT32_MAX

enum outcome {
    OUTCOME_OPEN,    /* nobody was there yet */
    OUTCOME_SWAP,    /* hand over the running buffer, go on in the other one */
    OUTCOME_OVERRUN, /* the collector holds the other one: go on counting */
    OUTCOME_LAST,    /* hand over, and end */
    OUTCOME_CUT,     /* end at the instant of the cut instead */
    OUTCOME_LOST,    /* so long ago that it is forgotten */
};

struct decision {
    enum outcome outcome;
    uint32_t label; /* the result that ends here, if one does */
};

enum end_reason { END_NONE, END_COMMANDED, END_LEASE, END_DIED };

struct step {
    /* Written once per step, before it starts. */
    uint64_t start_ns, length_ns;

    /* Settled when the engine is opened. */
    uint64_t catch_ns; /* how long what is in flight at the end may take */

    /* Read by the threads in every pass. */
    _Atomic uint32_t attention; /* changes when anything below or a mailbox did */
    _Atomic uint32_t cut;       /* a cut was decided: submit nothing */
    _Atomic uint64_t lease_ns;  /* nothing is submitted at or after it; outlives steps */

    _Atomic uint32_t stop_after;    /* the last subinterval, STEP_NEVER if not known yet */
    _Atomic uint32_t cooldown_from; /* nothing falls due from this subinterval on */
    _Atomic uint32_t released;      /* results that the collector has taken */
    _Atomic uint32_t reason;        /* enum end_reason */
    _Atomic uint64_t cut_ns;
    _Atomic uint64_t ended_ns; /* when the end was decided, 0 before */
    _Atomic uint32_t frontier; /* a boundary that is open, or lies shortly before the first that is */
    _Atomic uint64_t placed[STEP_PLACES];
    _Atomic uint64_t decisions[STEP_DECISIONS];

    /* The commanding thread's: the last boundary that was placed. */
    uint32_t placed_subinterval; /* STEP_NEVER: none was; then placed_ns is the start */
    uint64_t placed_ns;
};

void step_init(struct step *s, uint64_t start_ns, uint64_t length_ns);

/* The boundary that ends `subinterval`, which began at `previous_ns`. */
uint64_t step_boundary(struct step *s, uint32_t subinterval, uint64_t previous_ns);

/* Moves a boundary. False if it was ignored: a boundary before one that was placed, too close to `now_ns`
 * for all threads to see it, or further than a tenth of the length from where it would be. */
bool step_place(struct step *s, uint32_t subinterval, uint64_t boundary_ns, uint64_t now_ns);

struct decision step_decision(struct step *s, uint32_t subinterval);

/* Decides what happens at the end of `subinterval`, all boundaries before which are decided, unless another thread
 * was first: the decision that holds. */
struct decision step_decide(struct step *s, uint32_t subinterval, uint64_t now_ns);

/* Ends the step at `at_ns`, in the subinterval that no thread has finished. Without effect if it ends already. */
void step_cut(struct step *s, enum end_reason reason, uint64_t at_ns, uint64_t now_ns);

/* Makes the threads apply what changed. */
static inline void step_call(struct step *s)
{
    atomic_fetch_add_explicit(&s->attention, 1, memory_order_release);
}

#endif
