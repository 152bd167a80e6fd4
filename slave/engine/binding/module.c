/* The module: its functions, types, and state. */
#include "binding.h"

static PyMethodDef module_methods[] = {
    {"now_ns", module_now_ns, METH_NOARGS, "The clock that stamps I/Os, in nanoseconds of CLOCK_MONOTONIC."},
    {"bucket_of", module_bucket_of, METH_O, "The bucket that holds a latency."},
    {"layout", module_layout, METH_NOARGS, "Sizes and column positions that are compiled in."},
    {"backends", module_backends, METH_NOARGS, "The backends that work on this kernel."},
    {"abilities", module_abilities, METH_NOARGS, "What each backend can do, and what it needs."},
    {"uring_features", module_uring_features, METH_NOARGS, "What this kernel's io_uring can do."},
    {"probe", module_probe, METH_VARARGS, "0 if a backend works on this kernel, else an errno."},
    {"missing", module_missing, METH_VARARGS, "What a backend lacks where probe gave this errno."},
    {"check_tsc", module_check_tsc, METH_VARARGS, "Whether the cycle counter is trusted, and its order."},
    {"anchor", module_anchor, METH_VARARGS, "The cycle counter and a clock at one instant."},
    {"reading_cost_ns", module_reading_cost_ns, METH_VARARGS, "What one reading of a clock costs."},
    {"nominal_hz", module_nominal_hz, METH_NOARGS, "The counter's rate as the kernel and the CPU state it."},
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
    if (!own || PyObject_SetAttrString(type, "__module__", own) < 0 || PyObject_SetAttrString(module, name, type) < 0)
        Py_CLEAR(type);
    Py_XDECREF(own);
    return type;
}

static int module_exec(PyObject *module)
{
    struct module_state *state = PyModule_GetState(module);

    state->collected = named_tuple(module, "Collected",
                                   "subinterval start_ns length_ns last counts moments spans buckets bucket_size "
                                   "threads faults missing sections");
    state->ended = named_tuple(module, "Ended",
                               "reason caught failed uncaught oldest_uncaught_ns longest_caught_ns dropped");
#define FIELD(name) #name " "
    state->abilities = named_tuple(module, "Abilities", ABILITIES(FIELD));
    PyObject *type = PyType_FromModuleAndSpec(module, &engine_spec, NULL);
    int result = -1;
    if (state->collected && state->ended && state->abilities && type)
        result = PyObject_SetAttrString(module, "Engine", type);
    Py_XDECREF(type);
    return result;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    struct module_state *state = PyModule_GetState(module);

    Py_VISIT(state->collected);
    Py_VISIT(state->ended);
    Py_VISIT(state->abilities);
    return 0;
}

static int module_clear(PyObject *module)
{
    struct module_state *state = PyModule_GetState(module);

    Py_CLEAR(state->collected);
    Py_CLEAR(state->ended);
    Py_CLEAR(state->abilities);
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
