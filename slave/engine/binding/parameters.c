/* A workload instance's parameters, from a dict: protocol/parameters.py has their ranges and what they mean. */
#include "binding.h"

#include <string.h>

#include "time/clock.h"

/* uint64_t, uint32_t, double; ns of seconds; a word; a pair of offsets; true or false; a pair of a word and a number,
 * both uint64_t; the parts of a mix; zones. */
enum form { WHOLE, SMALL, REAL, SECONDS, CHOICE, RANGE, FLAG, VOLUME, MIX, ZONES };

struct taken {
    const char *name;
    enum form form;
    size_t place;             /* in struct parameters */
    uint64_t most;            /* of whole numbers and seconds */
    const char *const *words; /* by number, ended by NULL */
};

#define PLACE(member) offsetof(struct parameters, member)

static const char *const sequencers[] = {"random_steady", "random_independent", "sequential", NULL};
static const char *const ends[] = {"never", "time", "ios", "bytes", "read", "written", NULL};
static const char *const syncs[] = {"none", "dsync", "sync", NULL};
static const char *const flushes[] = {"fsync", "fdatasync", NULL};
static const char *const operations[] = {"read", "write", "trim", "write_zeroes", NULL};
static const char *const cursors[] = {"shared", "by_operation", NULL};

/* clang-format off */
static const struct taken rows[] = {
    {"iosequencer", CHOICE, PLACE(fixed.iosequencer), 0, sequencers},
    {"blocksize", SMALL, PLACE(setting.blocksize), MOST_BLOCKSIZE, NULL},
    {"fraction_read", REAL, PLACE(setting.fraction_read), 0, NULL},
    {"operations", MIX, PLACE(setting), MOST_BLOCKSIZE, operations},
    {"align", WHOLE, PLACE(fixed.align), MOST_BLOCKSIZE, NULL},
    {"sequential", REAL, PLACE(fixed.sequential), 0, NULL},
    {"streams", WHOLE, PLACE(fixed.streams), MOST_STREAMS, NULL},
    {"cursors", CHOICE, PLACE(fixed.cursors), 0, cursors},
    {"maxtags", SMALL, PLACE(setting.maxtags), 8192, NULL},
    {"iops", REAL, PLACE(setting.iops), 0, NULL},
    {"range", RANGE, PLACE(setting.range_start), 0, NULL},
    {"seed", WHOLE, PLACE(fixed.seed), UINT64_MAX, NULL},
    {"drop_after", SECONDS, PLACE(fixed.drop_after_ns), 86400, NULL},
    {"think_time", SECONDS, PLACE(fixed.think_ns), 86400, NULL},
    {"zipf", REAL, PLACE(fixed.zipf), 0, NULL},
    {"pareto", REAL, PLACE(fixed.pareto), 0, NULL},
    {"normal", REAL, PLACE(fixed.normal), 0, NULL},
    {"hot_zones", ZONES, PLACE(fixed), 0, NULL},
    {"working_set", WHOLE, PLACE(fixed.working_set), UINT64_MAX, NULL},
    {"scattered", FLAG, PLACE(fixed.scattered), 1, NULL},
    {"scatter_seed", WHOLE, PLACE(fixed.scatter_seed), UINT64_MAX, NULL},
    {"start", WHOLE, PLACE(fixed.start), UINT64_MAX, NULL},
    {"skew", REAL, PLACE(setting.skew), 0, NULL},
    {"start_after", SECONDS, PLACE(fixed.start_ns), 86400, NULL},
    {"bursty", RANGE, PLACE(fixed.on_ns), 0, NULL},
    {"random_map", FLAG, PLACE(fixed.random_map), 1, NULL},
    {"until", VOLUME, PLACE(fixed.until), INT64_MAX, ends},
    {"sync", CHOICE, PLACE(fixed.sync), 0, syncs},
    {"flush", VOLUME, PLACE(fixed.flush), UINT32_MAX, flushes},
    {"end_fsync", FLAG, PLACE(fixed.end_fsync), 1, NULL},
};
/* clang-format on */

enum { ROWS = sizeof rows / sizeof *rows };

_Static_assert(PLACE(setting.range_end) == PLACE(setting.range_start) + sizeof(uint64_t), "a range is a pair");
_Static_assert(PLACE(fixed.off_ns) == PLACE(fixed.on_ns) + sizeof(uint64_t), "as are the times of bursts");
_Static_assert(PLACE(fixed.until.amount) == PLACE(fixed.until) + sizeof(uint64_t), "likewise what until is");
_Static_assert(PLACE(fixed.flush.every) == PLACE(fixed.flush) + sizeof(uint64_t), "and how often a flush goes");

const char *parameter_name(size_t n)
{
    return n < ROWS ? rows[n].name : NULL;
}

static bool out_of_range(const char *name)
{
    PyErr_Format(PyExc_ValueError, "%s is out of range", name);
    return false;
}

static bool whole(PyObject *value, const struct taken *row, uint64_t *number)
{
    *number = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred())
        return false;
    return *number <= row->most || out_of_range(row->name);
}

static bool choice(PyObject *value, const struct taken *row, uint64_t *number)
{
    for (*number = 0; row->words[*number]; ++*number)
        if (PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, row->words[*number]) == 0)
            return true;
    PyErr_Format(PyExc_ValueError, "there is no %s %R", row->name, value);
    return false;
}

static bool flag(PyObject *value, const struct taken *row, uint64_t *number)
{
    *number = value == Py_True;
    if (PyBool_Check(value))
        return true;
    PyErr_Format(PyExc_TypeError, "%s is neither True nor False", row->name);
    return false;
}

/* A word and how much of that. */
static bool volume(PyObject *value, const struct taken *row, uint64_t *pair)
{
    if (!PyTuple_Check(value) || PyTuple_Size(value) != 2) {
        PyErr_Format(PyExc_TypeError, "%s is not a pair of a word and a number", row->name);
        return false;
    }
    return choice(PyTuple_GetItem(value, 0), row, &pair[0]) && whole(PyTuple_GetItem(value, 1), row, &pair[1]);
}

/* An operation, its size and its share. */
static bool part(PyObject *value, const struct taken *row, struct mix_part *part)
{
    uint64_t op, bytes;

    if (!PyTuple_Check(value) || PyTuple_Size(value) != 3) {
        PyErr_Format(PyExc_TypeError, "%s holds what is not a word, a size and a share", row->name);
        return false;
    }
    if (!choice(PyTuple_GetItem(value, 0), row, &op) || !whole(PyTuple_GetItem(value, 1), row, &bytes))
        return false;
    part->op = (uint32_t)op;
    part->bytes = (uint32_t)bytes;
    part->share = PyFloat_AsDouble(PyTuple_GetItem(value, 2));
    return !PyErr_Occurred();
}

static bool mix(PyObject *value, const struct taken *row, struct setting *s)
{
    memset(s->parts, 0, sizeof s->parts);
    if (!PyTuple_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s is not a tuple of parts", row->name);
        return false;
    }
    if (PyTuple_Size(value) > MOST_PARTS)
        return out_of_range(row->name);
    s->parts_count = (uint32_t)PyTuple_Size(value);
    for (uint32_t n = 0; n < s->parts_count; n++)
        if (!part(PyTuple_GetItem(value, n), row, &s->parts[n]))
            return false;
    return true;
}

/* Where it begins and ends, and its shares. */
static bool zone(PyObject *value, const struct taken *row, struct mix_zone *zone)
{
    const struct taken offset = {.name = row->name, .most = UINT64_MAX};

    if (!PyTuple_Check(value) || PyTuple_Size(value) != 4) {
        PyErr_Format(PyExc_TypeError, "%s holds what is not two byte offsets and two shares", row->name);
        return false;
    }
    if (!whole(PyTuple_GetItem(value, 0), &offset, &zone->start) ||
        !whole(PyTuple_GetItem(value, 1), &offset, &zone->end))
        return false;
    zone->reads = PyFloat_AsDouble(PyTuple_GetItem(value, 2));
    if (PyErr_Occurred())
        return false;
    zone->others = PyFloat_AsDouble(PyTuple_GetItem(value, 3));
    return !PyErr_Occurred();
}

static bool zones(PyObject *value, const struct taken *row, struct fixed *f)
{
    memset(f->zones, 0, sizeof f->zones);
    if (!PyTuple_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s is not a tuple of zones", row->name);
        return false;
    }
    if (PyTuple_Size(value) > MOST_ZONES)
        return out_of_range(row->name);
    f->zones_count = (uint64_t)PyTuple_Size(value);
    for (uint32_t n = 0; n < f->zones_count; n++)
        if (!zone(PyTuple_GetItem(value, n), row, &f->zones[n]))
            return false;
    return true;
}

static bool range(PyObject *value, const struct taken *row, uint64_t *ends)
{
    unsigned long long first, behind;

    if (!PyTuple_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s is not a pair of numbers", row->name);
        return false;
    }
    if (!PyArg_ParseTuple(value, "KK", &first, &behind))
        return false;
    ends[0] = first;
    ends[1] = behind;
    return true;
}

static bool parse(PyObject *value, const struct taken *row, void *place)
{
    uint64_t number;
    double real;

    switch (row->form) {
    case WHOLE:
        return whole(value, row, place);
    case CHOICE:
        return choice(value, row, place);
    case FLAG:
        return flag(value, row, place);
    case VOLUME:
        return volume(value, row, place);
    case RANGE:
        return range(value, row, place);
    case MIX:
        return mix(value, row, place);
    case ZONES:
        return zones(value, row, place);
    case SMALL:
        if (!whole(value, row, &number))
            return false;
        *(uint32_t *)place = (uint32_t)number;
        return true;
    default:
        real = PyFloat_AsDouble(value);
        if (PyErr_Occurred())
            return false;
        if (row->form == REAL) {
            *(double *)place = real;
            return true;
        }
        if (!(real >= 0.0 && real <= (double)row->most)) /* nor is NaN */
            return out_of_range(row->name);
        *(uint64_t *)place = (uint64_t)(real * (double)NS_PER_S);
        return true;
    }
}

bool parse_parameters(PyObject *fields, struct parameters *p)
{
    if (!PyDict_Check(fields)) {
        PyErr_SetString(PyExc_TypeError, "parameters are not a dict");
        return false;
    }
    for (const struct taken *row = rows; row < rows + ROWS; row++) {
        PyObject *name = PyUnicode_FromString(row->name);
        PyObject *value = name ? PyDict_GetItemWithError(fields, name) : NULL; /* borrowed */
        Py_XDECREF(name);
        if (!value && !PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "parameters lack %s", row->name);
        if (!value || !parse(value, row, (char *)p + row->place))
            return false;
    }
    if (PyDict_Size(fields) != ROWS) {
        PyErr_SetString(PyExc_TypeError, "parameters hold a field that the engine does not know");
        return false;
    }
    return true;
}
