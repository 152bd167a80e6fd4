/* A pacer that is told what to do on standard input, a command a line, and answers a line each:
 *
 *   start SEED IOPS AT     a fresh start: nothing
 *   due UNTIL              counts what falls due before: how many, the backlog, when the oldest of it fell due
 *   expire NOW             how many waited too long, the backlog, when the oldest of it fell due
 *   take COUNT             the due times of the next to submit
 *   retime IOPS AT         a new rate: how many were discarded
 *   next                   when the next one falls due: nanoseconds, and their fraction in 2**-64
 *   stop                   how many were discarded
 */
#include <string.h>

#include "check.h"
#include "load/pacer.h"

int main(int count, char **words)
{
    struct pacer p;
    char command[16];

    CHECK(count == 5); /* even, or exponential; how long they may wait, of bursts on and off, ns */
    pacer_init(&p, strcmp(words[1], "exponential") == 0, strtoull(words[2], NULL, 10), strtoull(words[3], NULL, 10),
               strtoull(words[4], NULL, 10));
    while (scanf("%15s", command) == 1) {
        unsigned long long a = 0;
        double iops = 0;
        if (strcmp(command, "start") == 0) {
            unsigned long long seed;
            CHECK(scanf("%llu %lf %llu", &seed, &iops, &a) == 3);
            pacer_start(&p, seed, iops, a);
        } else if (strcmp(command, "due") == 0) {
            CHECK(scanf("%llu", &a) == 1);
            unsigned long long fallen = pacer_fall_due(&p, a, UINT64_MAX);
            printf("%llu %llu %llu", fallen, (unsigned long long)p.backlog,
                   (unsigned long long)pacer_backlog_since(&p));
        } else if (strcmp(command, "expire") == 0) {
            CHECK(scanf("%llu", &a) == 1);
            unsigned long long expired = pacer_expire(&p, a);
            printf("%llu %llu %llu", expired, (unsigned long long)p.backlog,
                   (unsigned long long)pacer_backlog_since(&p));
        } else if (strcmp(command, "take") == 0) {
            CHECK(scanf("%llu", &a) == 1);
            while (a-- > 0)
                printf("%llu ", (unsigned long long)pacer_take(&p));
        } else if (strcmp(command, "retime") == 0) {
            CHECK(scanf("%lf %llu", &iops, &a) == 2);
            printf("%llu", (unsigned long long)pacer_retime(&p, iops, a));
        } else if (strcmp(command, "next") == 0) {
            printf("%llu %llu", (unsigned long long)pacer_next_due(&p), (unsigned long long)p.head.due_fraction);
        } else {
            CHECK(strcmp(command, "stop") == 0);
            printf("%llu", (unsigned long long)pacer_stop(&p));
        }
        printf("\n");
    }
    return 0;
}
