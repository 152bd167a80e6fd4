/* Engine's methods that command a step. */
#include "binding.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t *copy_numbers(const char *data, Py_ssize_t size)
{
    uint32_t *numbers = malloc((size_t)size + 1);

    if (numbers)
        memcpy(numbers, data, (size_t)size);
    return numbers;
}

PyObject *method_go(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"start_ns", "length_ns", "order", "classes", "rows", "sections", NULL};
    long long start_ns, length_ns;
    const char *order, *classes, *rows;
    Py_ssize_t size, classes_size, rows_size;
    unsigned sections = 0;
    int result = -ENOMEM;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "LLy#y#y#|I", names, &start_ns, &length_ns, &order, &size,
                                     &classes, &classes_size, &rows, &rows_size, &sections))
        return NULL;
    if (size % 4 || size != classes_size || size != rows_size || start_ns < 0 || length_ns < 0) {
        PyErr_SetString(PyExc_ValueError,
                        "order, classes and rows are not u32 arrays of one length, or a time is negative");
        return NULL;
    }
    uint32_t *numbers = copy_numbers(order, size), *of_class = copy_numbers(classes, size),
             *in_row = copy_numbers(rows, size);
    if (numbers && of_class && in_row) {
        struct roster roster = {numbers, of_class, in_row, (uint32_t)(size / 4), sections};
        Py_BEGIN_ALLOW_THREADS
        result = engine_go(engine_of(self), (uint64_t)start_ns, (uint64_t)length_ns, &roster);
        Py_END_ALLOW_THREADS
    }
    free(numbers);
    free(of_class);
    free(in_row);
    return none_or_raise(self, result, NULL);
}

PyObject *method_place_boundary(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"subinterval", "boundary_ns", NULL};
    unsigned long long boundary_ns;
    unsigned subinterval;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "IK", names, &subinterval, &boundary_ns))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    engine_place_boundary(engine_of(self), subinterval, boundary_ns);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

PyObject *method_cooldown(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"subinterval", NULL};
    unsigned subinterval;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "I", names, &subinterval))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    engine_cooldown(engine_of(self), subinterval);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

PyObject *method_stop(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"last", NULL};
    unsigned last;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "I", names, &last))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    engine_stop(engine_of(self), last);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

PyObject *method_halt(PyObject *self, PyObject *unused)
{
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    engine_halt(engine_of(self));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

PyObject *method_set_lease(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"until_ns", NULL};
    unsigned long long until_ns;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "K", names, &until_ns))
        return NULL;
    engine_set_lease(engine_of(self), until_ns);
    Py_RETURN_NONE;
}
