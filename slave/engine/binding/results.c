/* Engine's methods that tell: what was collected, how a step ended, why a thread died. */
#include "binding.h"
#include "commands/result.h"

static PyObject *fault_list(const struct result *r)
{
    PyObject *list = PyList_New((Py_ssize_t)r->fault_count);

    for (uint32_t n = 0; list && n < r->fault_count; n++) {
        const struct fault *f = &r->faults[n];
        PyList_SetItem(list, (Py_ssize_t)n, Py_BuildValue("IiK", f->number, f->error, (unsigned long long)f->count));
    }
    return list;
}

static PyObject *missing_list(const struct result *r)
{
    PyObject *list = PyList_New((Py_ssize_t)r->missing_count);

    for (uint32_t n = 0; list && n < r->missing_count; n++)
        PyList_SetItem(list, (Py_ssize_t)n, PyLong_FromUnsignedLong(r->missing[n]));
    return list;
}

static PyObject *pack(PyObject *type, const struct result *r)
{
    Py_ssize_t series = (Py_ssize_t)r->classes * SERIES;
    PyObject *faults = fault_list(r), *missing = missing_list(r);

    if (!faults || !missing) {
        Py_XDECREF(faults);
        Py_XDECREF(missing);
        return NULL;
    }
    return PyObject_CallFunction(
        type, "IKKNy#y#y#y#Iy#NNy#", r->subinterval, (unsigned long long)r->start_ns, (unsigned long long)r->length_ns,
        PyBool_FromLong(r->last), (const char *)r->counts, (Py_ssize_t)r->rows * COUNTS * 8, (const char *)r->moments,
        series * MOMENTS * 8, (const char *)r->spans, series * 2 * 4, (const char *)r->buckets,
        (Py_ssize_t)(r->buckets_length * r->bucket_size), r->bucket_size, (const char *)r->thread_figures,
        (Py_ssize_t)r->threads * THREAD_COUNTS * 8, faults, missing, (const char *)r->sections,
        (Py_ssize_t)r->rows * r->sections_count * SECTION_COUNTS * 8);
}

PyObject *method_collect(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"force", NULL};
    struct result collected;
    int force = 0, result;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|p", names, &force))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    result = engine_collect(engine_of(self), force != 0, &collected);
    Py_END_ALLOW_THREADS
    if (result < 0)
        return PyErr_NoMemory();
    if (result == 0)
        Py_RETURN_NONE;
    PyObject *packed = pack(state_of(self)->collected, &collected);
    result_free(&collected);
    return packed;
}

PyObject *method_ended(PyObject *self, PyObject *unused)
{
    static const char *const reasons[] = {"commanded", "commanded", "lease", "died"}; /* by enum end_reason */
    struct end end;
    int result;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    result = engine_ended(engine_of(self), &end);
    Py_END_ALLOW_THREADS
    if (!result)
        Py_RETURN_NONE;
    return PyObject_CallFunction(state_of(self)->ended, "sKKKKKK", reasons[end.reason],
                                 (unsigned long long)end.sums.caught, (unsigned long long)end.sums.failed,
                                 (unsigned long long)end.sums.uncaught, (unsigned long long)end.sums.oldest_uncaught_ns,
                                 (unsigned long long)end.sums.longest_caught_ns, (unsigned long long)end.sums.dropped);
}

static bool next_words(struct engine *e, uint32_t *thread, char *words, size_t size)
{
    bool found;

    Py_BEGIN_ALLOW_THREADS
    found = engine_dying_words(e, thread, words, size);
    Py_END_ALLOW_THREADS
    return found;
}

PyObject *method_dying_words(PyObject *self, PyObject *unused)
{
    struct engine *e = engine_of(self);
    PyObject *list = PyList_New(0);
    char words[sizeof e->threads->words];
    uint32_t thread;

    (void)unused;
    while (list && next_words(e, &thread, words, sizeof words)) {
        PyObject *pair = Py_BuildValue("Is", thread, words);
        if (!pair || PyList_Append(list, pair) < 0)
            Py_CLEAR(list);
        Py_XDECREF(pair);
    }
    return list;
}
