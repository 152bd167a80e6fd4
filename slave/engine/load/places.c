#include "places.h"

#include <math.h>

#include "random.h"

enum { MOST_DRAWS = 64 };

/* From such a standard deviation on, most of a normal distribution lies outside of the places, where it is flat. */
#define WIDE 0.5

bool uneven_is(const struct uneven *u)
{
    return u->zipf > 0.0 || u->pareto > 0.0 || u->normal > 0.0 || u->working_set > 0;
}

/* Of x**-exponent from 1 on, below 0 before. */
static double integral(const struct zipf *z, double x)
{
    double power = log(x);

    return z->less == 0.0 ? power : expm1(z->less * power) * z->inverse;
}

static inline double integral_inverse(const struct zipf *z, double y)
{
    return exp(z->less == 0.0 ? y : log1p(fmax(y * z->less, -1.0)) * z->inverse);
}

static double weight(const struct zipf *z, double rank)
{
    return exp(-z->exponent * log(rank));
}

static struct zipf zipf_of(double exponent, uint64_t ranks)
{
    struct zipf z = {.exponent = exponent, .less = 1.0 - exponent, .most = (double)ranks};

    if (z.less != 0.0)
        z.inverse = 1.0 / z.less;
    z.integral = integral(&z, z.most + 0.5);
    z.span = integral(&z, 1.5) - 1.0 - z.integral;
    z.squeeze = 2.0 - integral_inverse(&z, integral(&z, 2.5) - weight(&z, 2.0));
    return z;
}

/* Under the curve from half a rank before to half a rank behind it, each has no less than its weight: what is more is
 * drawn again. Nearer than the squeeze none is. */
static inline uint64_t zipf_rank(const struct zipf *z, uint64_t *random)
{
    for (;;) {
        double y = z->integral + random_unit(random) * z->span, x = integral_inverse(z, y);
        double rank = x >= z->most ? z->most : floor(x + 0.5);
        if (rank < 1.0)
            rank = 1.0;
        if (rank - x <= z->squeeze || y >= integral(z, rank + 0.5) - weight(z, rank))
            return (uint64_t)rank - 1;
    }
}

static uint64_t pareto_rank(const struct places *p, uint64_t *random)
{
    uint64_t rank = (uint64_t)((double)p->ranks * pow(random_unit(random), p->power));

    return rank < p->ranks ? rank : p->ranks - 1;
}

/* Marsaglia's polar method. */
static double standard_normal(uint64_t *random)
{
    double a, b, square;

    do {
        a = 2.0 * random_unit(random) - 1.0;
        b = 2.0 * random_unit(random) - 1.0;
        square = a * a + b * b;
    } while (square >= 1.0 || square == 0.0);
    return a * sqrt(-2.0 * log(square) / square);
}

/* Where in all places, as a share of them. */
static double normal_at(double deviation, uint64_t *random)
{
    double off;

    if (deviation < WIDE)
        return 0.5 + deviation * standard_normal(random);
    do
        off = random_unit(random) - 0.5;
    while (random_unit(random) >= exp(-0.5 * (off / deviation) * (off / deviation)));
    return 0.5 + off;
}

static uint64_t normal_place(const struct places *p, uint64_t *random)
{
    double count = (double)p->count;

    for (int n = 0; n < MOST_DRAWS; n++) {
        double place = floor(count * normal_at(p->deviation, random));
        if (place >= 0.0 && place < count)
            return (uint64_t)place;
    }
    return random_below(random, p->count);
}

void places_set(struct places *p, const struct uneven *u, uint64_t count, uint64_t grid)
{
    uint64_t ranks = u->working_set / grid;

    if (ranks == 0 && u->working_set)
        ranks = 1;
    if (ranks == 0 || ranks > count)
        ranks = count;
    *p = (struct places){.count = count, .ranks = ranks, .key = u->key, .permutation = permutation_of(count)};
    if (u->zipf > 0.0) {
        p->law = LAW_ZIPF;
        p->zipf = zipf_of(u->zipf, ranks);
    } else if (u->pareto > 0.0) {
        p->law = LAW_PARETO;
        p->power = log(u->pareto) / log1p(-u->pareto);
    } else if (u->normal > 0.0) {
        p->law = LAW_NORMAL;
        p->deviation = u->normal;
    }
    p->scattered = u->scattered && p->law != LAW_NORMAL;
}

uint64_t places_next(const struct places *p, uint64_t *random)
{
    uint64_t place;

    switch (p->law) {
    case LAW_ZIPF:
        place = zipf_rank(&p->zipf, random);
        break;
    case LAW_PARETO:
        place = pareto_rank(p, random);
        break;
    case LAW_NORMAL:
        return normal_place(p, random);
    default:
        place = random_below(random, p->ranks);
    }
    return p->scattered ? permutation_at(&p->permutation, p->key, place) : place;
}
