/* A workload instance's parameters, from the dict that the stub calls Fields. */
#include "binding.h"

#include "time/clock.h"

#define LONGEST_DROP_AFTER 86400.0 /* seconds */

static PyObject *field(PyObject *fields, const char *name)
{
    PyObject *key = PyUnicode_FromString(name), *value;

    if (!key)
        return NULL;
    value = PyDict_GetItemWithError(fields, key);
    Py_DECREF(key);
    if (!value && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "parameters lack %s", name);
    return value;
}

static bool unsigned_field(PyObject *fields, const char *name, uint64_t most, uint64_t *value)
{
    PyObject *object = field(fields, name);

    if (!object)
        return false;
    *value = PyLong_AsUnsignedLongLong(object);
    if (PyErr_Occurred())
        return false;
    if (*value > most) {
        PyErr_Format(PyExc_ValueError, "%s is out of range", name);
        return false;
    }
    return true;
}

static bool real_field(PyObject *fields, const char *name, double *value)
{
    PyObject *object = field(fields, name);

    if (!object)
        return false;
    *value = PyFloat_AsDouble(object);
    return !PyErr_Occurred();
}

static bool iosequencer_field(PyObject *fields, enum iosequencer *value)
{
    static const char *const names[] = {"random_steady", "random_independent", "sequential"};
    PyObject *object = field(fields, "iosequencer");

    if (!object)
        return false;
    for (int n = 0; n < 3; n++)
        if (PyUnicode_Check(object) && PyUnicode_CompareWithASCIIString(object, names[n]) == 0) {
            *value = (enum iosequencer)n;
            return true;
        }
    PyErr_Format(PyExc_ValueError, "there is no iosequencer %R", object);
    return false;
}

static bool range_field(PyObject *fields, uint64_t *start, uint64_t *end)
{
    PyObject *object = field(fields, "range");
    unsigned long long first, behind;

    if (!object)
        return false;
    if (!PyTuple_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "range is not a pair of byte offsets");
        return false;
    }
    if (!PyArg_ParseTuple(object, "KK", &first, &behind))
        return false;
    *start = first;
    *end = behind;
    return true;
}

bool parse_parameters(PyObject *fields, struct parameters *p)
{
    enum { FIELDS = 8 };
    uint64_t blocksize, maxtags;
    double drop_after;

    if (!PyDict_Check(fields)) {
        PyErr_SetString(PyExc_TypeError, "parameters are not a dict");
        return false;
    }
    if (!iosequencer_field(fields, &p->iosequencer) ||
        !unsigned_field(fields, "blocksize", MOST_BLOCKSIZE, &blocksize) ||
        !real_field(fields, "fraction_read", &p->setting.fraction_read) ||
        !unsigned_field(fields, "maxtags", 8192, &maxtags) || !real_field(fields, "iops", &p->setting.iops) ||
        !range_field(fields, &p->setting.range_start, &p->setting.range_end) ||
        !unsigned_field(fields, "seed", UINT64_MAX, &p->seed) || !real_field(fields, "drop_after", &drop_after))
        return false;
    if (PyDict_Size(fields) != FIELDS) {
        PyErr_SetString(PyExc_TypeError, "parameters hold a field that the engine does not know");
        return false;
    }
    if (!(drop_after >= 0.0 && drop_after <= LONGEST_DROP_AFTER)) { /* nor is NaN */
        PyErr_SetString(PyExc_ValueError, "drop_after is out of range");
        return false;
    }
    p->drop_after_ns = (uint64_t)(drop_after * (double)NS_PER_S);
    p->setting.blocksize = (uint32_t)blocksize;
    p->setting.maxtags = (uint32_t)maxtags;
    return true;
}
