/* What went wrong, as Python says it: -errno becomes OSError, with the core's words if it has some. */
#include "binding.h"

#include <string.h>

PyObject *raise_error(int result, const char *why, const char *path)
{
    const char *text = why && *why ? why : strerror(-result);
    PyObject *error = path && *path ? PyObject_CallFunction(PyExc_OSError, "iss", -result, text, path)
                                    : PyObject_CallFunction(PyExc_OSError, "is", -result, text);

    if (error) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
    return NULL;
}

PyObject *none_or_raise(PyObject *self, int result, const char *path)
{
    if (result < 0)
        return raise_error(result, engine_why(engine_of(self)), path);
    Py_RETURN_NONE;
}
