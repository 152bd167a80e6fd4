#include "think.h"

#include "instance.h"
#include "load/random.h"

static struct tag *take(struct tag **list)
{
    struct tag *tag = *list;

    *list = tag->next;
    return tag;
}

static void put(struct tag **list, struct tag *tag)
{
    tag->next = *list;
    *list = tag;
}

void think_recruit(struct instance *i, uint64_t now_ns)
{
    struct thinking *t = &i->thinking;
    uint32_t most = t->users < i->maxtags ? i->maxtags - t->users : 0, wanted = 0;
    struct tag **place = &t->first;

    for (struct tag *tag = t->spare; tag && wanted < most; tag = tag->next)
        wanted++;
    for (uint32_t n = 0; n < wanted; n++) {
        struct tag *tag = take(&t->spare);
        double part = ((double)n + random_unit(&i->pacer.head.random)) / (double)wanted;
        tag->due_ns = now_ns + (uint64_t)(part * (double)t->time_ns);
        tag->late_ns = 0;
        while (*place && (*place)->due_ns <= tag->due_ns)
            place = &(*place)->next;
        put(place, tag);
        place = &tag->next;
        if (!tag->next)
            t->last = tag;
        t->users++;
        i->in_flight++;
    }
}

void think_begin(struct instance *i, uint64_t now_ns)
{
    uint64_t time_ns = i->parameters.fixed.think_ns;

    i->thinking = (struct thinking){.time_ns = time_ns, .users = i->in_flight};
    if (time_ns == 0)
        return;
    i->thinking.spare = i->free;
    i->free = NULL;
    think_recruit(i, now_ns);
}

void think_end(struct instance *i)
{
    struct thinking *t = &i->thinking;

    while (t->first) {
        put(&i->free, take(&t->first));
        i->in_flight--;
    }
    while (t->spare)
        put(&i->free, take(&t->spare));
    *t = (struct thinking){0};
}

void think_spare(struct instance *i, struct tag *tag)
{
    put(&i->thinking.spare, tag);
}

void think_keep(struct instance *i, struct tag *tag)
{
    if (!i->free)
        i->thinking.last_ready = tag;
    put(&i->free, tag);
    i->in_flight--;
}

void think_about(struct tag *tag, uint64_t now_ns)
{
    struct thinking *t = &tag->instance->thinking;

    tag->due_ns = now_ns + t->time_ns;
    tag->next = NULL;
    if (t->first)
        t->last->next = tag;
    else
        t->first = tag;
    t->last = tag;
}

/* Behind those that have waited for longer. */
static void be_ready(struct instance *i, struct tag *tag)
{
    tag->next = NULL;
    if (i->free)
        i->thinking.last_ready->next = tag;
    else
        i->free = tag;
    i->thinking.last_ready = tag;
}

void think_until(struct instance *i, uint64_t until_ns)
{
    struct thinking *t = &i->thinking;

    while (t->first && t->first->due_ns < until_ns) {
        struct tag *tag = take(&t->first);
        if (i->in_flight-- == i->maxtags) /* who was ready, and one too many, goes from now on */
            i->tag_since_ns = tag->due_ns;
        if (t->users > i->maxtags) {
            t->users--;
            put(&t->spare, tag);
        } else {
            be_ready(i, tag);
        }
    }
}
