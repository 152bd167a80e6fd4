/* The binding: parses, releases the interpreter lock, calls the core, converts.
 *
 * Rule: the only file that knows Python, in the limited API; and nothing is decided here. Results are copied into
 * bytes, so no memory is shared with Python. A core function's -errno becomes OSError, with the core's words if it has
 * some.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "counter.h"
#include "engine.h"
#include "gauge.h"
#include "result.h"

typedef struct {
    PyObject_HEAD
    struct engine *engine;
} EngineObject;

struct module_state {
    PyObject *collected, *ended; /* the named tuples */
};

static struct engine *engine_of(PyObject *self)
{
    return ((EngineObject *)self)->engine;
}

static struct module_state *state_of(PyObject *self)
{
    return PyType_GetModuleState(Py_TYPE(self));
}

static PyObject *raise(int result, const char *why, const char *path)
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

static PyObject *none_or_raise(PyObject *self, int result, const char *path)
{
    if (result < 0)
        return raise(result, engine_why(engine_of(self)), path);
    Py_RETURN_NONE;
}

/* Parameters. */

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

static bool parse_parameters(PyObject *fields, struct parameters *p)
{
    enum { FIELDS = 7 };
    uint64_t blocksize, maxtags;

    if (!PyDict_Check(fields)) {
        PyErr_SetString(PyExc_TypeError, "parameters are not a dict");
        return false;
    }
    if (!iosequencer_field(fields, &p->iosequencer) || !unsigned_field(fields, "blocksize", 1u << 30, &blocksize) ||
        !real_field(fields, "fraction_read", &p->setting.fraction_read) ||
        !unsigned_field(fields, "maxtags", 8192, &maxtags) || !real_field(fields, "iops", &p->setting.iops) ||
        !range_field(fields, &p->range_start, &p->range_end) || !unsigned_field(fields, "seed", UINT64_MAX, &p->seed))
        return false;
    if (PyDict_Size(fields) != FIELDS) {
        PyErr_SetString(PyExc_TypeError, "parameters hold a field that the engine does not know");
        return false;
    }
    p->blocksize = (uint32_t)blocksize;
    p->setting.maxtags = (uint32_t)maxtags;
    return true;
}

/* The engine's life. */

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
    return raise(result, result == -EINVAL ? "a workload thread cannot run on a core that it is to be pinned to" : NULL,
                 NULL);
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

static PyObject *method_close(PyObject *self, PyObject *arguments, PyObject *keywords)
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

static PyObject *method_fileno(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLong(engine_of(self)->eventfd);
}

/* LUNs and instances. */

static PyObject *method_open_lun(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"path", "writable", NULL};
    const char *path;
    int writable, handle;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "sp", names, &path, &writable))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    handle = engine_open_lun(engine_of(self), path, writable != 0);
    Py_END_ALLOW_THREADS
    if (handle < 0)
        return raise(handle, engine_why(engine_of(self)), path);
    return PyLong_FromLong(handle);
}

static PyObject *method_close_lun(PyObject *self, PyObject *arguments, PyObject *keywords)
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

static PyObject *method_create(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"number", "lun", "thread", "ceiling", "parameters", NULL};
    unsigned number, lun, thread, ceiling;
    struct parameters parameters;
    PyObject *fields;
    int result;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "IIIIO", names, &number, &lun, &thread, &ceiling, &fields) ||
        !parse_parameters(fields, &parameters))
        return NULL;
    if (ceiling < 1 || ceiling > 8192)
        return PyErr_Format(PyExc_ValueError, "a ceiling of %u tags; 1 to 8192 are possible", ceiling);
    Py_BEGIN_ALLOW_THREADS
    result = engine_create(engine_of(self), number, lun, thread, ceiling, &parameters);
    Py_END_ALLOW_THREADS
    return none_or_raise(self, result, engine_lun_path(engine_of(self), lun));
}

static PyObject *method_use(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"backend", NULL};
    const char *name;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "s", names, &name))
        return NULL;
    const struct backend *backend = backend_named(name);
    if (!backend)
        return PyErr_Format(PyExc_ValueError, "there is no backend %s", name);
    return none_or_raise(self, engine_use(engine_of(self), backend), NULL);
}

static PyObject *method_delete(PyObject *self, PyObject *arguments, PyObject *keywords)
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

static PyObject *method_edit(PyObject *self, PyObject *arguments, PyObject *keywords)
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

static PyObject *method_edited(PyObject *self, PyObject *unused)
{
    uint64_t taken_ns;
    uint32_t number;
    int result;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    result = engine_edited(engine_of(self), &number, &taken_ns);
    Py_END_ALLOW_THREADS
    if (!result)
        Py_RETURN_NONE;
    return Py_BuildValue("IK", number, (unsigned long long)taken_ns);
}

/* Steps. */

static uint32_t *copy_numbers(const char *data, Py_ssize_t size)
{
    uint32_t *numbers = malloc((size_t)size + 1);

    if (numbers)
        memcpy(numbers, data, (size_t)size);
    return numbers;
}

static PyObject *method_go(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"start_ns", "length_ns", "order", "classes", NULL};
    long long start_ns, length_ns;
    const char *order, *classes;
    Py_ssize_t order_size, classes_size;
    int result = -ENOMEM;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "LLy#y#", names, &start_ns, &length_ns, &order, &order_size,
                                     &classes, &classes_size))
        return NULL;
    if (order_size % 4 || order_size != classes_size || start_ns < 0 || length_ns < 0) {
        PyErr_SetString(PyExc_ValueError, "order and classes are not u32 arrays of one length, or a time is negative");
        return NULL;
    }
    uint32_t *numbers = copy_numbers(order, order_size), *merge_classes = copy_numbers(classes, classes_size);
    if (numbers && merge_classes) {
        Py_BEGIN_ALLOW_THREADS
        result = engine_go(engine_of(self), (uint64_t)start_ns, (uint64_t)length_ns, numbers, merge_classes,
                           (uint32_t)(order_size / 4));
        Py_END_ALLOW_THREADS
    }
    free(numbers);
    free(merge_classes);
    return none_or_raise(self, result, NULL);
}

static PyObject *method_place_boundary(PyObject *self, PyObject *arguments, PyObject *keywords)
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

static PyObject *method_cooldown(PyObject *self, PyObject *arguments, PyObject *keywords)
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

static PyObject *method_stop(PyObject *self, PyObject *arguments, PyObject *keywords)
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

static PyObject *method_halt(PyObject *self, PyObject *unused)
{
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    engine_halt(engine_of(self));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *method_set_lease(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"until_ns", NULL};
    unsigned long long until_ns;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "K", names, &until_ns))
        return NULL;
    engine_set_lease(engine_of(self), until_ns);
    Py_RETURN_NONE;
}

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
        type, "IKKNy#y#y#y#Iy#NN", r->subinterval, (unsigned long long)r->start_ns, (unsigned long long)r->length_ns,
        PyBool_FromLong(r->last), (const char *)r->counts, (Py_ssize_t)r->instances * COUNTS * 8,
        (const char *)r->moments, series * MOMENTS * 8, (const char *)r->spans, series * 2 * 4,
        (const char *)r->buckets, (Py_ssize_t)(r->buckets_length * r->bucket_size), r->bucket_size,
        (const char *)r->thread_figures, (Py_ssize_t)r->threads * THREAD_COUNTS * 8, faults, missing);
}

static PyObject *method_collect(PyObject *self, PyObject *arguments, PyObject *keywords)
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

static PyObject *method_ended(PyObject *self, PyObject *unused)
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
    return PyObject_CallFunction(
        state_of(self)->ended, "sKKKKK", reasons[end.reason], (unsigned long long)end.sums.caught,
        (unsigned long long)end.sums.uncaught, (unsigned long long)end.sums.oldest_uncaught_ns,
        (unsigned long long)end.sums.longest_caught_ns, (unsigned long long)end.sums.dropped);
}

static PyObject *method_dying_words(PyObject *self, PyObject *unused)
{
    struct engine *e = engine_of(self);
    PyObject *list = PyList_New(0);
    char words[sizeof e->threads->words];

    (void)unused;
    for (uint32_t n = 0; list && n < e->thread_count; n++) {
        if (!engine_dying_words(e, n, words, sizeof words))
            continue;
        PyObject *pair = Py_BuildValue("Is", n, words);
        if (!pair || PyList_Append(list, pair) < 0)
            Py_CLEAR(list);
        Py_XDECREF(pair);
    }
    return list;
}

static PyObject *method_oldest_in_flight_ns(PyObject *self, PyObject *unused)
{
    uint64_t oldest_ns;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    oldest_ns = engine_oldest_in_flight(engine_of(self));
    Py_END_ALLOW_THREADS
    return PyLong_FromUnsignedLongLong(oldest_ns);
}

#define KEYWORDS(name) {#name, (PyCFunction)(void (*)(void))method_##name, METH_VARARGS | METH_KEYWORDS, NULL}
#define PLAIN(name) {#name, method_##name, METH_NOARGS, NULL}

static PyMethodDef engine_methods[] = {
    PLAIN(fileno), KEYWORDS(use), KEYWORDS(open_lun), KEYWORDS(close_lun), KEYWORDS(create), KEYWORDS(delete), KEYWORDS(edit),
    PLAIN(edited), KEYWORDS(go), KEYWORDS(place_boundary), KEYWORDS(cooldown), KEYWORDS(stop), PLAIN(halt),
    KEYWORDS(set_lease), KEYWORDS(collect), PLAIN(ended), PLAIN(dying_words), PLAIN(oldest_in_flight_ns),
    KEYWORDS(close), {0},
};

static PyType_Slot engine_slots[] = {
    {Py_tp_new, engine_new},
    {Py_tp_dealloc, engine_dealloc},
    {Py_tp_methods, engine_methods},
    {Py_tp_doc, "Workload threads, and the I/O that they drive; see _engine.pyi."},
    {0, NULL},
};

static PyType_Spec engine_spec = {
    .name = "ivypy.slave.engine._engine.Engine",
    .basicsize = sizeof(EngineObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = engine_slots,
};

/* The module. */

static PyObject *module_now_ns(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return PyLong_FromUnsignedLongLong(clock_now());
}

static PyObject *module_bucket_of(PyObject *self, PyObject *argument)
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

static const struct column columns[] = {
    {"buckets", HISTOGRAM_BUCKETS}, {"series", SERIES}, {"service", SERIES_SERVICE}, {"response", SERIES_RESPONSE},
    {"lateness", SERIES_LATENESS}, {"kinds", KINDS}, {"moments", MOMENTS}, {"counts", COUNTS},
    {"thread_counts", THREAD_COUNTS}, KINDS_TABLE(KIND_ENTRY) MOMENTS_TABLE(MOMENT_ENTRY) COUNTS_TABLE(COUNT_ENTRY)
    THREAD_COUNTS_TABLE(THREAD_ENTRY)
};

static PyObject *module_layout(PyObject *self, PyObject *unused)
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

static PyObject *module_probe(PyObject *self, PyObject *argument)
{
    PyObject *bytes = PyUnicode_AsUTF8String(argument);
    const char *name = bytes ? PyBytes_AsString(bytes) : NULL;

    (void)self;
    if (!name)
        return NULL;
    const struct backend *backend = backend_named(name);
    Py_DECREF(bytes);
    if (!backend)
        return PyErr_Format(PyExc_ValueError, "there is no backend %S", argument);
    return PyLong_FromLong(-backend->probe());
}

static PyObject *module_backends(PyObject *self, PyObject *unused)
{
    PyObject *list = PyList_New(0);

    (void)self, (void)unused;
    for (const struct backend *const *b = backends; list && *b; b++) {
        if ((*b)->probe() != 0)
            continue;
        PyObject *name = PyUnicode_FromString((*b)->name);
        if (!name || PyList_Append(list, name) < 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

/* The clock, measured. */

static PyObject *module_judge_counter(PyObject *self, PyObject *arguments)
{
    unsigned long long turns, most_ns;
    char why[COUNTER_WORDS];
    struct order order;
    int result;

    (void)self;
    if (!PyArg_ParseTuple(arguments, "KK", &turns, &most_ns))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    result = counter_order(&order, turns, most_ns);
    counter_judge(&order, why);
    Py_END_ALLOW_THREADS
    if (result < 0)
        return raise(result, NULL, NULL);
    return Py_BuildValue("sIKKKK", why, order.cores, (unsigned long long)order.least_turns,
                         (unsigned long long)order.backwards, (unsigned long long)order.worst_ticks,
                         (unsigned long long)order.least_step);
}

static PyObject *module_anchor(PyObject *self, PyObject *arguments)
{
    struct reading reading;
    int raw;

    (void)self;
    if (!PyArg_ParseTuple(arguments, "p", &raw))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    reading = counter_bracket(raw ? CLOCK_MONOTONIC_RAW : CLOCK_MONOTONIC);
    Py_END_ALLOW_THREADS
    return Py_BuildValue("KKK", (unsigned long long)reading.ticks, (unsigned long long)reading.ns,
                         (unsigned long long)reading.width);
}

static PyObject *module_reading_cost_ns(PyObject *self, PyObject *arguments)
{
    unsigned readings;
    int counter;
    double cost_ns;

    (void)self;
    if (!PyArg_ParseTuple(arguments, "pI", &counter, &readings))
        return NULL;
    if (readings == 0) {
        PyErr_SetString(PyExc_ValueError, "no readings, no cost");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    cost_ns = gauge_cost(counter != 0, readings);
    Py_END_ALLOW_THREADS
    return PyFloat_FromDouble(cost_ns);
}

static PyObject *module_fio_window(PyObject *self, PyObject *arguments)
{
    unsigned long long least_ns;
    uint64_t ticks, ns;

    (void)self;
    if (!PyArg_ParseTuple(arguments, "K", &least_ns))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    gauge_window(least_ns, &ticks, &ns);
    Py_END_ALLOW_THREADS
    return Py_BuildValue("KK", (unsigned long long)ticks, (unsigned long long)ns);
}

static PyMethodDef module_methods[] = {
    {"now_ns", module_now_ns, METH_NOARGS, "The clock that stamps I/Os, in nanoseconds of CLOCK_MONOTONIC."},
    {"bucket_of", module_bucket_of, METH_O, "The bucket that holds a latency."},
    {"layout", module_layout, METH_NOARGS, "Sizes and column positions that are compiled in."},
    {"backends", module_backends, METH_NOARGS, "The backends that work on this kernel."},
    {"probe", module_probe, METH_O, "0 if a backend works on this kernel, else an errno."},
    {"judge_counter", module_judge_counter, METH_VARARGS, "Whether the cycle counter is trusted, and its order."},
    {"anchor", module_anchor, METH_VARARGS, "The cycle counter and a clock at one instant."},
    {"reading_cost_ns", module_reading_cost_ns, METH_VARARGS, "What one reading of a clock costs."},
    {"fio_window", module_fio_window, METH_VARARGS, "One of fio's measurements of the cycle counter."},
    {0},
};

static PyObject *named_tuple(PyObject *module, const char *name, const char *fields)
{
    PyObject *collections = PyImport_ImportModule("collections"), *type = NULL, *own = NULL;

    if (collections)
        type = PyObject_CallMethod(collections, "namedtuple", "ss", name, fields);
    Py_XDECREF(collections);
    own = type ? PyModule_GetNameObject(module) : NULL;
    if (!own || PyObject_SetAttrString(type, "__module__", own) < 0 || PyModule_AddObjectRef(module, name, type) < 0)
        Py_CLEAR(type);
    Py_XDECREF(own);
    return type;
}

/* The type that the stub calls Fields: a TypedDict of what parse_parameters asks for. */
static PyObject *fields_type(PyObject *module)
{
    PyObject *typing = PyImport_ImportModule("typing"), *type = NULL, *own = NULL;
    PyObject *pair = Py_BuildValue("(OO)", &PyLong_Type, &PyLong_Type);
    PyObject *range = pair ? PyObject_GetItem((PyObject *)&PyTuple_Type, pair) : NULL;

    if (typing && range)
        type = PyObject_CallMethod(typing, "TypedDict", "s{sOsOsOsOsOsOsO}", "Fields", "iosequencer", &PyUnicode_Type,
                                   "blocksize", &PyLong_Type, "fraction_read", &PyFloat_Type, "maxtags", &PyLong_Type,
                                   "iops", &PyFloat_Type, "range", range, "seed", &PyLong_Type);
    own = type ? PyModule_GetNameObject(module) : NULL;
    if (own && PyObject_SetAttrString(type, "__module__", own) < 0)
        Py_CLEAR(type);
    Py_XDECREF(typing);
    Py_XDECREF(pair);
    Py_XDECREF(range);
    Py_XDECREF(own);
    return type;
}

static int module_exec(PyObject *module)
{
    struct module_state *state = PyModule_GetState(module);

    state->collected = named_tuple(module, "Collected",
                                   "subinterval start_ns length_ns last counts moments spans buckets bucket_size "
                                   "threads faults missing");
    state->ended = named_tuple(module, "Ended",
                               "reason caught uncaught oldest_uncaught_ns longest_caught_ns dropped");
    PyObject *type = PyType_FromModuleAndSpec(module, &engine_spec, NULL), *fields = fields_type(module);
    int result = -1;
    if (state->collected && state->ended && type && fields && PyModule_AddObjectRef(module, "Engine", type) == 0)
        result = PyModule_AddObjectRef(module, "Fields", fields);
    Py_XDECREF(type);
    Py_XDECREF(fields);
    return result;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    struct module_state *state = PyModule_GetState(module);

    Py_VISIT(state->collected);
    Py_VISIT(state->ended);
    return 0;
}

static int module_clear(PyObject *module)
{
    struct module_state *state = PyModule_GetState(module);

    Py_CLEAR(state->collected);
    Py_CLEAR(state->ended);
    return 0;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_engine",
    .m_doc = "The binding of the I/O engine.",
    .m_size = sizeof(struct module_state),
    .m_methods = module_methods,
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
};

PyMODINIT_FUNC PyInit__engine(void)
{
    return PyModuleDef_Init(&module_definition);
}
