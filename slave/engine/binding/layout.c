/* What is compiled in: sizes, positions of columns, buckets. */
#include "binding.h"
#include "stats/columns.h"
#include "stats/histogram.h"

PyObject *module_bucket_of(PyObject *self, PyObject *argument)
{
    unsigned long long ns = PyLong_AsUnsignedLongLong(argument);

    (void)self;
    if (PyErr_Occurred())
        return NULL;
    return PyLong_FromUnsignedLong(bucket_of(ns));
}

struct column {
    const char *name;
    int position;
};

#define KIND_ENTRY(name, series) {"kind." #name, series},
#define MOMENT_ENTRY(name) {"moment." #name, MOMENT_##name},
#define COUNT_ENTRY(name) {"count." #name, COUNT_##name},
#define THREAD_ENTRY(name) {"thread_count." #name, THREAD_##name},
#define SECTION_ENTRY(name) {"section_count." #name, SECTION_##name},

/* clang-format off */
static const struct column columns[] = {
    {"buckets", HISTOGRAM_BUCKETS}, {"series", SERIES}, {"service", SERIES_SERVICE}, {"response", SERIES_RESPONSE},
    {"lateness", SERIES_LATENESS}, {"delayed", SERIES_DELAYED}, {"undelayed", SERIES_UNDELAYED},
    {"late", SERIES_LATE}, {"punctual", SERIES_PUNCTUAL}, {"flush", SERIES_FLUSH},
    {"moments", MOMENTS}, {"counts", COUNTS}, {"thread_counts", THREAD_COUNTS},
    {"section_counts", SECTION_COUNTS},
    KINDS_TABLE(KIND_ENTRY)
    MOMENTS_TABLE(MOMENT_ENTRY)
    COUNTS_TABLE(COUNT_ENTRY)
    THREAD_COUNTS_TABLE(THREAD_ENTRY)
    SECTIONS_TABLE(SECTION_ENTRY)
};
/* clang-format on */

static bool put(PyObject *layout, const char *prefix, const char *name, long position)
{
    PyObject *key = PyUnicode_FromFormat("%s%s", prefix, name);
    PyObject *lower = key ? PyObject_CallMethod(key, "lower", NULL) : NULL;
    PyObject *value = PyLong_FromLong(position);
    bool is_put = lower && value && PyDict_SetItem(layout, lower, value) == 0;

    Py_XDECREF(key);
    Py_XDECREF(lower);
    Py_XDECREF(value);
    return is_put;
}

PyObject *module_layout(PyObject *self, PyObject *unused)
{
    PyObject *layout = PyDict_New();
    const char *name;

    (void)self, (void)unused;
    for (size_t n = 0; layout && n < sizeof columns / sizeof *columns; n++)
        if (!put(layout, "", columns[n].name, columns[n].position))
            Py_CLEAR(layout);
    for (size_t n = 0; layout && (name = parameter_name(n)); n++)
        if (!put(layout, "parameter.", name, (long)n))
            Py_CLEAR(layout);
    return layout;
}
