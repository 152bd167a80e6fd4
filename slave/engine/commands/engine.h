/* The engine: its threads, its LUNs and workload instances, its commands.
 *
 * Rule: knows no Python. Functions return 0 or -errno; engine_why() then says in words what was wrong, if there is
 * more to say than errno does. They may come from several threads. What opens, makes or pins something takes turns,
 * since it may last as long as memory and devices do; what steers a step or asks about one waits for no turn, and acts
 * while another command is at work. No command waits for a thread that is in a step, but go (for all to be ready); none
 * waits without a limit for what may hang, but the one that opens it; and close waits for nothing longer than its
 * limit.
 */
#ifndef IVYPY_ENGINE_H
#define IVYPY_ENGINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luns/instance.h"
#include "luns/queue_room.h"
#include "stats/columns.h"
#include "thread/step.h"
#include "thread/thread.h"

enum { ENGINE_THREADS = 256, ENGINE_WORDS = 256 };

/* The state of an instance, or of a part of one, as of the end of the last collected subinterval: what the collector
 * adds up. */
struct tally {
    uint32_t row; /* of the counts that it is in */
    int64_t backlog, in_flight;
    uint64_t oldest_submit_ns, oldest_due_ns, backlog_since_ns, edit;
    uint64_t left, ended_ns; /* with `until` */
    bool timed;              /* what is left is time */
};

/* A merge class's distributions of one result, all threads merged. */
struct collector {
    struct tally *tallies; /* per number of the step, in its order */
    struct moments *moments;
    uint64_t *buckets;
    uint32_t sections;             /* of each row, 0: nothing is counted by address */
    uint64_t *scratch;             /* three histograms of a thread: its lateness, poll gaps and reap delays */
    uint32_t parts, rows, classes; /* numbers of the step; rows of counts: fewer where instances have several parts */
    uint32_t next;                 /* label of the next result */
    uint64_t end_ns;               /* of the last result; the start at first */
    bool last;                     /* the step's last result was taken */
};

struct posted {
    uint32_t edit;
    bool pending; /* not reported yet */
};

struct engine {
    pthread_mutex_t lock;       /* for moments: guards the step, and whose turn it is */
    pthread_cond_t free;        /* the turn is nobody's any more */
    pthread_mutex_t collecting; /* collector and finished buffers; taken before the lock, held for milliseconds */
    bool busy;                  /* a command has the turn: LUNs, instances and threads between steps are its own */
    const struct backend *backend;
    uint32_t options; /* BACKEND_* */
    struct thread *threads;
    uint32_t thread_count;
    int eventfd;
    struct lun **luns; /* by handle; NULL: closed */
    uint32_t lun_count;
    struct instance **by_number; /* NULL: none */
    uint32_t number_count;
    struct queue_room *rooms; /* of the step */
    struct step step;
    struct collector collector;
    struct posted posted;
    uint64_t steps, created; /* how many instances ever were */
    bool counted;            /* threads keep time by the cycle counter */
    struct calibration calibration;
    bool reserved;       /* instances may take huge pages that the administrator reserved */
    bool in_step;        /* from go until ended() has reported the end, */
    bool abandoned;      /* or, where go failed with threads on their way into it, until all wait again */
    uint64_t overdue_ns; /* when the end was first found to be late, 0 before */
    bool halted;         /* since go began: a step that it is still to start ends at once */
    bool closed, released;
    uint64_t ready_ns; /* how long go waits for the threads, which only have to wake up */
    char why[ENGINE_WORDS];
};

/* Threads on `cpus` (-1: not pinned). On failure nothing is left. */
int engine_open(struct engine **engine, const struct backend *backend, const int *cpus, uint32_t count);

/* Ends the threads, and then closes the LUNs and frees all that the kernel does not hold; `left`, of ENGINE_THREADS
 * places, gets the numbers of the threads that did not end in time: all, where another command kept the turn. Returns
 * how many these are. May be called again. */
uint32_t engine_close(struct engine *e, double timeout_s, uint32_t *left);

/* After close, and no other command being at work: frees the engine, unless a thread is left, which still uses it. */
void engine_free(struct engine *e);

/* Another backend, or other options of it, as long as no step has run. */
int engine_use(struct engine *e, const struct backend *backend, uint32_t options);

/* Whether threads busy-wait where they could sleep. */
int engine_spin(struct engine *e, enum spin spin);

/* Whether I/O buffers of instances that are created from now on may take huge pages that the administrator reserved. */
int engine_reserved_pages(struct engine *e, bool may);

/* The handle, or -errno. A device that hangs keeps only this call. Not `direct`: through the page cache. */
int engine_open_lun(struct engine *e, const char *path, const char *name, bool writable, bool direct);
int engine_close_lun(struct engine *e, uint32_t handle);
/* It writes within `agreed` alone; a setting that would have it write elsewhere is refused, here and by engine_edit. */
int engine_create(struct engine *e, uint32_t number, uint32_t lun, uint32_t thread, struct ceiling ceiling,
                  const struct extents *agreed, const struct parameters *parameters);
/* What the instances need for their first step: memory, contexts. `go` does what is left of it, but has less time. */
int engine_prepare(struct engine *e);
/* Grows while threads prepare; takes no turn. */
uint64_t engine_progress(struct engine *e);
int engine_delete(struct engine *e, uint32_t number);
void engine_lun_path(struct engine *e, uint32_t lun, char *path, size_t size); /* "" if there is none */

struct edit {
    uint32_t number;
    struct parameters parameters;
};
int engine_edit(struct engine *e, uint32_t edit, const struct edit *edits, uint32_t count);
/* 1 and the edit with the time at which the last thread took it and how many I/Os of the backlog it discarded, once;
 * else 0. */
int engine_edited(struct engine *e, uint32_t *edit, uint64_t *taken_ns, uint64_t *discarded);

/* What a step is of: numbers of instances, and of each its merge class and its row of counts. Numbers that share a row
 * are parts of one workload instance; rows begin at 0, without a gap. `sections`: in how many of each LUN its I/Os are
 * counted; 0: none. */
struct roster {
    const uint32_t *order, *classes, *rows;
    uint32_t count, sections;
};
int engine_go(struct engine *e, uint64_t start_ns, uint64_t length_ns, const struct roster *roster);
void engine_place_boundary(struct engine *e, uint32_t subinterval, uint64_t boundary_ns);
void engine_cooldown(struct engine *e, uint32_t subinterval);
void engine_stop(struct engine *e, uint32_t last);
void engine_halt(struct engine *e);
void engine_set_lease(struct engine *e, uint64_t until_ns);

struct end {
    enum end_reason reason;
    struct drain sums;
};
/* 1 and how the step ended, once; else 0. */
int engine_ended(struct engine *e, struct end *end);
/* A thread that died and was not reported yet, and its words; false if there is none. */
bool engine_dying_words(struct engine *e, uint32_t *thread, char *words, size_t size);

/* The line that clocks are to follow from now on; slope 0: the kernel's clock. */
struct clock_map engine_anchor(struct engine *e);

/* Describes what went wrong in the last command. */
const char *engine_why(struct engine *e);
__attribute__((format(printf, 3, 4))) int engine_refuse(struct engine *e, int error, const char *format, ...);

#endif
