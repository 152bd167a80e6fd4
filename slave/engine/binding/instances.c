/* Engine's methods for LUNs and workload instances. */
#include "binding.h"

#include <stdlib.h>

PyObject *method_open_lun(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"path", "writable", "name", "direct", NULL};
    const char *path, *name = NULL;
    int writable, direct = true, handle;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "sp|zp", names, &path, &writable, &name, &direct))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    handle = engine_open_lun(engine_of(self), path, name ? name : path, writable != 0, direct != 0);
    Py_END_ALLOW_THREADS
    if (handle < 0)
        return raise_error(handle, engine_why(engine_of(self)), name ? name : path);
    return PyLong_FromLong(handle);
}

PyObject *method_close_lun(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"lun", NULL};
    unsigned lun;
    int result;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "I", names, &lun))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    result = engine_close_lun(engine_of(self), lun);
    Py_END_ALLOW_THREADS
    return none_or_raise(self, result, NULL);
}

/* A pair of byte offsets. "K" alone would take a negative one for a huge one. */
static bool parse_extent(PyObject *pair, struct extent *extent)
{
    PyObject *start, *end;

    if (!PyTuple_Check(pair) || !PyArg_ParseTuple(pair, "OO", &start, &end)) {
        PyErr_Clear();
        PyErr_SetString(PyExc_TypeError, "an extent is not a pair of byte offsets");
        return false;
    }
    extent->start = PyLong_AsUnsignedLongLong(start);
    if (!PyErr_Occurred())
        extent->end = PyLong_AsUnsignedLongLong(end);
    return !PyErr_Occurred();
}

/* False with an error set; else the list is to be freed. `pairs`: a tuple, or NULL. */
static bool parse_extents(PyObject *pairs, struct extents *extents)
{
    Py_ssize_t count = pairs ? PyTuple_Size(pairs) : 0;

    *extents = (struct extents){.list = malloc(((size_t)count + 1) * sizeof *extents->list), .count = (uint32_t)count};
    if (!extents->list) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t n = 0; n < count; n++)
        if (!parse_extent(PyTuple_GetItem(pairs, n), &extents->list[n])) {
            free(extents->list);
            return false;
        }
    return true;
}

PyObject *method_create(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"number", "lun", "thread", "ceiling", "blocksize_ceiling", "parameters", "extents", NULL};
    unsigned number, lun, thread;
    struct ceiling ceiling;
    struct parameters parameters;
    struct extents agreed;
    PyObject *fields, *extents = NULL;
    int result;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "IIIIIO|O!", names, &number, &lun, &thread, &ceiling.tags,
                                     &ceiling.blocksize, &fields, &PyTuple_Type, &extents) ||
        !parse_parameters(fields, &parameters))
        return NULL;
    if (ceiling.tags < 1 || ceiling.tags > 8192)
        return PyErr_Format(PyExc_ValueError, "a ceiling of %u tags; 1 to 8192 are possible", ceiling.tags);
    if (ceiling.blocksize > MOST_BLOCKSIZE)
        return PyErr_Format(PyExc_ValueError, "a ceiling of %u bytes; %u are possible", ceiling.blocksize,
                            MOST_BLOCKSIZE);
    if (!parse_extents(extents, &agreed))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    result = engine_create(engine_of(self), number, lun, thread, ceiling, &agreed, &parameters);
    Py_END_ALLOW_THREADS
    free(agreed.list);
    char path[4096];
    engine_lun_path(engine_of(self), lun, path, sizeof path);
    return none_or_raise(self, result, path);
}

PyObject *method_prepare(PyObject *self, PyObject *unused)
{
    int result;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    result = engine_prepare(engine_of(self));
    Py_END_ALLOW_THREADS
    return none_or_raise(self, result, NULL);
}

PyObject *method_progress(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(engine_progress(engine_of(self)));
}

PyObject *method_delete(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"number", NULL};
    unsigned number;
    int result;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "I", names, &number))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    result = engine_delete(engine_of(self), number);
    Py_END_ALLOW_THREADS
    return none_or_raise(self, result, NULL);
}

static struct edit *parse_edits(PyObject *list)
{
    Py_ssize_t count = PyList_Size(list);
    struct edit *edits = malloc(((size_t)count + 1) * sizeof *edits);

    if (!edits) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *pair = PyList_GetItem(list, n), *fields;
        unsigned number;
        if (!PyTuple_Check(pair) || !PyArg_ParseTuple(pair, "IO", &number, &fields) ||
            !parse_parameters(fields, &edits[n].parameters)) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "a setting is not a pair of number and parameters");
            free(edits);
            return NULL;
        }
        edits[n].number = number;
    }
    return edits;
}

PyObject *method_edit(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"edit", "settings", NULL};
    unsigned number;
    PyObject *list;
    int result;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "IO!", names, &number, &PyList_Type, &list))
        return NULL;
    struct edit *edits = parse_edits(list);
    if (!edits)
        return NULL;
    uint32_t count = (uint32_t)PyList_Size(list);
    Py_BEGIN_ALLOW_THREADS
    result = engine_edit(engine_of(self), number, edits, count);
    Py_END_ALLOW_THREADS
    free(edits);
    return none_or_raise(self, result, NULL);
}

PyObject *method_edited(PyObject *self, PyObject *unused)
{
    uint64_t taken_ns, discarded;
    uint32_t number;
    int result;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    result = engine_edited(engine_of(self), &number, &taken_ns, &discarded);
    Py_END_ALLOW_THREADS
    if (!result)
        Py_RETURN_NONE;
    return Py_BuildValue("IKK", number, (unsigned long long)taken_ns, (unsigned long long)discarded);
}
