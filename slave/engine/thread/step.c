#include "step.h"

#include "time/clock.h"

/* All threads must see a placed boundary before one of them passes it. */
#define PLACE_AHEAD_NS NS_PER_MS

void step_init(struct step *s, uint64_t start_ns, uint64_t length_ns)
{
    s->start_ns = start_ns;
    s->length_ns = length_ns;
    s->placed_subinterval = STEP_NEVER;
    s->placed_ns = start_ns;
    atomic_store(&s->cut, 0);
    atomic_store(&s->stop_after, STEP_NEVER);
    atomic_store(&s->cooldown_from, STEP_NEVER);
    atomic_store(&s->released, 0);
    atomic_store(&s->reason, END_NONE);
    atomic_store(&s->cut_ns, 0);
    atomic_store(&s->ended_ns, 0);
    atomic_store(&s->frontier, 0);
    for (uint32_t n = 0; n < STEP_PLACES; n++)
        atomic_store(&s->placed[n], 0);
    for (uint32_t n = 0; n < STEP_DECISIONS; n++)
        atomic_store(&s->decisions[n], 0);
}

static bool near(const struct step *s, uint64_t boundary_ns, uint64_t nominal_ns)
{
    uint64_t distance = boundary_ns > nominal_ns ? boundary_ns - nominal_ns : nominal_ns - boundary_ns;

    return distance <= s->length_ns / 10;
}

uint64_t step_boundary(struct step *s, uint32_t subinterval, uint64_t previous_ns)
{
    uint64_t nominal_ns = previous_ns + s->length_ns;
    uint64_t placed_ns = atomic_load_explicit(&s->placed[subinterval % STEP_PLACES], memory_order_acquire);

    /* What an older subinterval left in this place is a whole ring of lengths away. */
    return near(s, placed_ns, nominal_ns) ? placed_ns : nominal_ns;
}

bool step_place(struct step *s, uint32_t subinterval, uint64_t boundary_ns, uint64_t now_ns)
{
    bool first = s->placed_subinterval == STEP_NEVER;

    if (!first && subinterval <= s->placed_subinterval)
        return false;
    uint64_t lengths = first ? (uint64_t)subinterval + 1 : subinterval - s->placed_subinterval;
    uint64_t nominal_ns = s->placed_ns + lengths * s->length_ns;
    uint64_t earlier_ns = boundary_ns < nominal_ns ? boundary_ns : nominal_ns;

    if (!near(s, boundary_ns, nominal_ns) || earlier_ns <= now_ns + PLACE_AHEAD_NS)
        return false;
    if (earlier_ns > now_ns + (STEP_PLACES / 2) * s->length_ns)
        return false;
    s->placed_subinterval = subinterval;
    s->placed_ns = boundary_ns;
    atomic_store_explicit(&s->placed[subinterval % STEP_PLACES], boundary_ns, memory_order_release);
    step_call(s);
    return true;
}

/* A decision in one word: subinterval + 1, label, outcome. 0: none yet. */
static uint64_t pack(uint32_t subinterval, struct decision d)
{
    return ((uint64_t)subinterval + 1) << 32 | (uint64_t)d.label << 4 | (uint64_t)d.outcome;
}

static struct decision unpack(uint32_t subinterval, uint64_t word)
{
    uint64_t of = word >> 32, wanted = (uint64_t)subinterval + 1;

    if (of < wanted)
        return (struct decision){.outcome = OUTCOME_OPEN};
    if (of > wanted)
        return (struct decision){.outcome = OUTCOME_LOST};
    return (struct decision){.outcome = (enum outcome)(word & 15), .label = (uint32_t)word >> 4};
}

static _Atomic uint64_t *place_of(struct step *s, uint32_t subinterval)
{
    return &s->decisions[subinterval % STEP_DECISIONS];
}

struct decision step_decision(struct step *s, uint32_t subinterval)
{
    return unpack(subinterval, atomic_load_explicit(place_of(s, subinterval), memory_order_acquire));
}

/* The result that a hand-over at the end of `subinterval` would make. */
static uint32_t next_label(struct step *s, uint32_t subinterval)
{
    if (subinterval == 0)
        return 0;
    struct decision before = step_decision(s, subinterval - 1);
    return before.label + (before.outcome == OUTCOME_SWAP);
}

static struct decision propose(struct step *s, uint32_t subinterval, struct decision proposal)
{
    uint64_t word = atomic_load_explicit(place_of(s, subinterval), memory_order_acquire);

    if (unpack(subinterval, word).outcome == OUTCOME_OPEN &&
        atomic_compare_exchange_strong_explicit(place_of(s, subinterval), &word, pack(subinterval, proposal),
                                                memory_order_acq_rel, memory_order_acquire)) {
        atomic_store_explicit(&s->frontier, subinterval + 1, memory_order_relaxed);
        return proposal;
    }
    return unpack(subinterval, word);
}

static void note_end(struct step *s, uint64_t now_ns)
{
    uint64_t never = 0;

    atomic_compare_exchange_strong(&s->ended_ns, &never, now_ns);
}

struct decision step_decide(struct step *s, uint32_t subinterval, uint64_t now_ns)
{
    struct decision d = {.label = next_label(s, subinterval)};
    uint32_t none = END_NONE;

    if (subinterval >= atomic_load_explicit(&s->stop_after, memory_order_acquire))
        d.outcome = OUTCOME_LAST;
    else if (d.label == atomic_load_explicit(&s->released, memory_order_acquire))
        d.outcome = OUTCOME_SWAP; /* all that was handed over was collected: the other buffer is free */
    else
        d.outcome = OUTCOME_OVERRUN;
    d = propose(s, subinterval, d);
    if (d.outcome == OUTCOME_LAST) {
        atomic_compare_exchange_strong(&s->reason, &none, END_COMMANDED);
        note_end(s, now_ns);
    }
    return d;
}

void step_cut(struct step *s, enum end_reason reason, uint64_t at_ns, uint64_t now_ns)
{
    uint32_t none = END_NONE;

    if (!atomic_compare_exchange_strong(&s->reason, &none, reason))
        return;
    atomic_store_explicit(&s->cut_ns, at_ns, memory_order_release);
    atomic_store_explicit(&s->cut, 1, memory_order_release);
    for (uint32_t k = atomic_load_explicit(&s->frontier, memory_order_relaxed);; k++) {
        struct decision d = step_decision(s, k);
        if (d.outcome == OUTCOME_OPEN)
            d = propose(s, k, (struct decision){.outcome = OUTCOME_CUT, .label = next_label(s, k)});
        if (d.outcome == OUTCOME_CUT || d.outcome == OUTCOME_LAST)
            break;
    }
    note_end(s, now_ns);
    step_call(s);
}
