/* The binding: parses, releases the interpreter lock, calls the core, converts.
 *
 * Rule: only the files in this folder know Python, in the limited API; and nothing is decided here. Results are copied
 * into bytes, so no memory is shared with Python. The stub, _engine.pyi, says what each function takes and gives.
 */
#ifndef IVYPY_BINDING_H
#define IVYPY_BINDING_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include "commands/engine.h"

#define MOST_BLOCKSIZE (1u << 30)

typedef struct {
    PyObject_HEAD
    struct engine *engine;
} EngineObject;

struct module_state {
    PyObject *collected, *ended, *abilities; /* the named tuples */
};

static inline struct engine *engine_of(PyObject *self)
{
    return ((EngineObject *)self)->engine;
}

static inline struct module_state *state_of(PyObject *self)
{
    return PyType_GetModuleState(Py_TYPE(self));
}

static inline uint32_t backend_options(int polled)
{
    return polled ? BACKEND_POLLED : 0;
}

/* errors.c: NULL, with -`result` as an OSError; `why` and `path` may be NULL. */
PyObject *raise_error(int result, const char *why, const char *path);
/* None; or, where `result` is negative, NULL with the error in the engine's words. */
PyObject *none_or_raise(PyObject *self, int result, const char *path);

/* parameters.c: false with an error set; the name of each parameter, and NULL behind the last. */
bool parse_parameters(PyObject *fields, struct parameters *p);
const char *parameter_name(size_t n);

/* type.c */
extern PyType_Spec engine_spec;

/* Methods of Engine, in type.c, instances.c, steps.c and results.c; and what the module offers beside it. */
/* clang-format off */
#define ENGINE_METHODS(PLAIN, KEYWORDS)                                                                          \
    PLAIN(fileno) KEYWORDS(use) KEYWORDS(spin) KEYWORDS(reserved_pages) KEYWORDS(open_lun) KEYWORDS(close_lun)   \
    KEYWORDS(create) PLAIN(prepare) PLAIN(progress) KEYWORDS(delete) KEYWORDS(edit) PLAIN(edited) KEYWORDS(go)   \
    KEYWORDS(place_boundary) KEYWORDS(cooldown) KEYWORDS(stop) PLAIN(halt) KEYWORDS(set_lease) KEYWORDS(collect) \
    PLAIN(ended) PLAIN(dying_words) KEYWORDS(close)
/* clang-format on */

#define DECLARE_PLAIN(name) PyObject *method_##name(PyObject *self, PyObject *unused);
#define DECLARE_KEYWORDS(name) PyObject *method_##name(PyObject *self, PyObject *arguments, PyObject *keywords);
ENGINE_METHODS(DECLARE_PLAIN, DECLARE_KEYWORDS)

/* backends.c */
PyObject *module_abilities(PyObject *self, PyObject *unused);
PyObject *module_backends(PyObject *self, PyObject *unused);
PyObject *module_probe(PyObject *self, PyObject *arguments);
PyObject *module_missing(PyObject *self, PyObject *arguments);
PyObject *module_uring_features(PyObject *self, PyObject *unused);

/* layout.c */
PyObject *module_bucket_of(PyObject *self, PyObject *argument);
PyObject *module_layout(PyObject *self, PyObject *unused);

/* clocks.c */
PyObject *module_now_ns(PyObject *self, PyObject *unused);
PyObject *module_check_tsc(PyObject *self, PyObject *arguments);
PyObject *module_anchor(PyObject *self, PyObject *arguments);
PyObject *module_reading_cost_ns(PyObject *self, PyObject *arguments);
PyObject *module_fio_window(PyObject *self, PyObject *arguments);
PyObject *module_nominal_hz(PyObject *self, PyObject *unused);

#endif
