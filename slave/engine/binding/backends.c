/* What the module says of the backends. */
#include "binding.h"

#include <errno.h>

#include "backends/uring_features.h"

/* Steals the value. False with an error set, also where there is no value. */
static bool put(PyObject *dict, const char *key, PyObject *value)
{
    bool is_put = value && PyDict_SetItemString(dict, key, value) == 0;

    Py_XDECREF(value);
    return is_put;
}

static PyObject *pack(PyObject *type, const struct abilities *a)
{
#define FORMAT(name) "N"
#define VALUE(name) , PyBool_FromLong(a->name)
    return PyObject_CallFunction(type, ABILITIES(FORMAT) ABILITIES(VALUE));
}

PyObject *module_abilities(PyObject *self, PyObject *unused)
{
    const struct module_state *state = PyModule_GetState(self);
    PyObject *all = PyDict_New();

    (void)unused;
    for (const struct backend *const *b = backends; all && *b; b++)
        if (!put(all, (*b)->name, pack(state->abilities, &(*b)->abilities)))
            Py_CLEAR(all);
    return all;
}

static int probe(const struct backend *backend, uint32_t options)
{
    if (options & BACKEND_POLLED && !backend->abilities.polled)
        return -EINVAL;
    return backend->probe(options);
}

PyObject *module_probe(PyObject *self, PyObject *arguments)
{
    int polled = 0, result;
    const char *name;

    (void)self;
    if (!PyArg_ParseTuple(arguments, "s|p", &name, &polled))
        return NULL;
    const struct backend *backend = backend_named(name);
    if (!backend)
        return PyErr_Format(PyExc_ValueError, "there is no backend %s", name);
    Py_BEGIN_ALLOW_THREADS
    result = probe(backend, backend_options(polled));
    Py_END_ALLOW_THREADS
    return PyLong_FromLong(-result);
}

PyObject *module_missing(PyObject *self, PyObject *arguments)
{
    const char *name, *why = NULL;
    int error;

    (void)self;
    if (!PyArg_ParseTuple(arguments, "si", &name, &error))
        return NULL;
    const struct backend *backend = backend_named(name);
    if (!backend)
        return PyErr_Format(PyExc_ValueError, "there is no backend %s", name);
    if (backend->missing)
        why = backend->missing(-error);
    return PyUnicode_FromString(why ? why : "");
}

/* Into a list, or NULL for a list that could not be extended. */
static PyObject *with(PyObject *list, const char *text)
{
    PyObject *name = list ? PyUnicode_FromString(text) : NULL;

    if (!name || PyList_Append(list, name) < 0)
        Py_CLEAR(list);
    Py_XDECREF(name);
    return list;
}

PyObject *module_backends(PyObject *self, PyObject *unused)
{
    PyObject *list = PyList_New(0);

    (void)self, (void)unused;
    for (const struct backend *const *b = backends; list && *b; b++)
        if ((*b)->probe(0) == 0)
            list = with(list, (*b)->name);
    return list;
}

PyObject *module_uring_features(PyObject *self, PyObject *unused)
{
    PyObject *list = PyList_New(0);

    (void)self, (void)unused;
    for (const struct uring_feature *a = uring_features; list && a->name; a++)
        if (a->works(a))
            list = with(list, a->name);
    return list;
}
