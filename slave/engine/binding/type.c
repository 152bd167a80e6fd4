/* The type Engine: how it comes and goes, and the table of its methods. */
#include "binding.h"

#include <errno.h>
#include <string.h>

static bool parse_cpus(PyObject *list, int *cpus, uint32_t *count)
{
    Py_ssize_t length = PyList_Size(list);

    if (length < 1 || length > ENGINE_THREADS) {
        PyErr_Format(PyExc_ValueError, "%zd workload threads; 1 to %d are possible", length, ENGINE_THREADS);
        return false;
    }
    for (Py_ssize_t n = 0; n < length; n++) {
        long cpu = PyLong_AsLong(PyList_GetItem(list, n));
        if (cpu == -1 && PyErr_Occurred())
            return false;
        cpus[n] = (int)cpu;
    }
    *count = (uint32_t)length;
    return true;
}

static PyObject *engine_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"backend", "cpus", NULL};
    const char *name;
    PyObject *list;
    int cpus[ENGINE_THREADS], result;
    uint32_t count;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "sO!", names, &name, &PyList_Type, &list) ||
        !parse_cpus(list, cpus, &count))
        return NULL;
    const struct backend *backend = backend_named(name);
    if (!backend)
        return PyErr_Format(PyExc_ValueError, "there is no backend %s", name);
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    EngineObject *self = (EngineObject *)allocate(type, 0);
    if (!self)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    result = engine_open(&self->engine, backend, cpus, count);
    Py_END_ALLOW_THREADS
    if (result == 0)
        return (PyObject *)self;
    Py_DECREF(self);
    return raise_error(
        result, result == -EINVAL ? "a workload thread cannot run on a core that it is to be pinned to" : NULL, NULL);
}

static void engine_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    struct engine *engine = engine_of(self);
    uint32_t left[ENGINE_THREADS];

    if (engine) {
        Py_BEGIN_ALLOW_THREADS
        engine_close(engine, 1.0, left);
        engine_free(engine);
        Py_END_ALLOW_THREADS
    }
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

PyObject *method_close(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"timeout_s", NULL};
    uint32_t left[ENGINE_THREADS], count;
    double timeout_s;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "d", names, &timeout_s))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    count = engine_close(engine_of(self), timeout_s, left);
    Py_END_ALLOW_THREADS
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint32_t n = 0; list && n < count; n++)
        PyList_SetItem(list, (Py_ssize_t)n, PyLong_FromUnsignedLong(left[n]));
    return list;
}

PyObject *method_spin(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"spin", NULL};
    static const char *const words[] = {"auto", "off", "on"}; /* enum spin */
    const char *word;
    int spin = 0, result;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "s", names, &word))
        return NULL;
    while (spin <= SPIN_ON && strcmp(words[spin], word) != 0)
        spin++;
    if (spin > SPIN_ON)
        return PyErr_Format(PyExc_ValueError, "spin is off, auto or on, not %s", word);
    Py_BEGIN_ALLOW_THREADS
    result = engine_spin(engine_of(self), (enum spin)spin);
    Py_END_ALLOW_THREADS
    return none_or_raise(self, result, NULL);
}

PyObject *method_reserved_pages(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"may", NULL};
    int may, result;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "p", names, &may))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    result = engine_reserved_pages(engine_of(self), may != 0);
    Py_END_ALLOW_THREADS
    return none_or_raise(self, result, NULL);
}

PyObject *method_use(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"backend", "polled", NULL};
    int polled = 0, result;
    const char *name;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "s|p", names, &name, &polled))
        return NULL;
    const struct backend *backend = backend_named(name);
    if (!backend)
        return PyErr_Format(PyExc_ValueError, "there is no backend %s", name);
    Py_BEGIN_ALLOW_THREADS
    result = engine_use(engine_of(self), backend, backend_options(polled));
    Py_END_ALLOW_THREADS
    return none_or_raise(self, result, NULL);
}

PyObject *method_fileno(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLong(engine_of(self)->eventfd);
}

#define PLAIN_ENTRY(name) {#name, method_##name, METH_NOARGS, NULL},
#define KEYWORDS_ENTRY(name) {#name, (PyCFunction)(void (*)(void))method_##name, METH_VARARGS | METH_KEYWORDS, NULL},

static PyMethodDef engine_methods[] = {ENGINE_METHODS(PLAIN_ENTRY, KEYWORDS_ENTRY){0}};

static PyType_Slot engine_slots[] = {
    {Py_tp_new, engine_new},
    {Py_tp_dealloc, engine_dealloc},
    {Py_tp_methods, engine_methods},
    {Py_tp_doc, "Workload threads, and the I/O that they drive; see _engine.pyi."},
    {0, NULL},
};

PyType_Spec engine_spec = {
    .name = "ivypy.slave.engine._engine.Engine",
    .basicsize = sizeof(EngineObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = engine_slots,
};
