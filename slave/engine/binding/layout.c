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

#define KIND_ENTRY(name) {"kind." #name, KIND_##name},
#define MOMENT_ENTRY(name) {"moment." #name, MOMENT_##name},
#define COUNT_ENTRY(name) {"count." #name, COUNT_##name},
#define THREAD_ENTRY(name) {"thread_count." #name, THREAD_##name},

/* clang-format off */
static const struct column columns[] = {
    {"buckets", HISTOGRAM_BUCKETS}, {"series", SERIES}, {"service", SERIES_SERVICE}, {"response", SERIES_RESPONSE},
    {"lateness", SERIES_LATENESS}, {"delayed", SERIES_DELAYED}, {"undelayed", SERIES_UNDELAYED},
    {"late", SERIES_LATE}, {"punctual", SERIES_PUNCTUAL}, {"kinds", KINDS}, {"moments", MOMENTS}, {"counts", COUNTS},
    {"thread_counts", THREAD_COUNTS},
    KINDS_TABLE(KIND_ENTRY)
    MOMENTS_TABLE(MOMENT_ENTRY)
    COUNTS_TABLE(COUNT_ENTRY)
    THREAD_COUNTS_TABLE(THREAD_ENTRY)
};
/* clang-format on */

PyObject *module_layout(PyObject *self, PyObject *unused)
{
    PyObject *layout = PyDict_New();

    (void)self, (void)unused;
    for (size_t n = 0; layout && n < sizeof columns / sizeof *columns; n++) {
        PyObject *name = PyUnicode_FromString(columns[n].name);
        PyObject *lower = name ? PyObject_CallMethod(name, "lower", NULL) : NULL;
        PyObject *position = PyLong_FromLong(columns[n].position);
        if (!lower || !position || PyDict_SetItem(layout, lower, position) < 0)
            Py_CLEAR(layout);
        Py_XDECREF(name);
        Py_XDECREF(lower);
        Py_XDECREF(position);
    }
    return layout;
}
