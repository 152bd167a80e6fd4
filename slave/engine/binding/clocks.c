/* The clock that stamps I/Os, and what measures it. */
#include "binding.h"

#include "time/clock.h"
#include "time/clock_selftest.h"
#include "time/perf_page.h"
#include "time/tsc.h"

PyObject *module_now_ns(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return PyLong_FromUnsignedLongLong(clock_now());
}

PyObject *module_check_tsc(PyObject *self, PyObject *arguments)
{
    unsigned long long turns, most_ns;
    char why[TSC_WORDS];
    struct tsc_order order;
    int result;

    (void)self;
    if (!PyArg_ParseTuple(arguments, "KK", &turns, &most_ns))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    result = tsc_order(&order, turns, most_ns);
    tsc_check(&order, why);
    Py_END_ALLOW_THREADS
    if (result < 0)
        return raise_error(result, NULL, NULL);
    return Py_BuildValue("sIKKKK", why, order.cores, (unsigned long long)order.least_turns,
                         (unsigned long long)order.backwards, (unsigned long long)order.worst_ticks,
                         (unsigned long long)order.least_step);
}

PyObject *module_anchor(PyObject *self, PyObject *arguments)
{
    struct reading reading;
    int raw;

    (void)self;
    if (!PyArg_ParseTuple(arguments, "p", &raw))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    reading = tsc_bracket(raw ? CLOCK_MONOTONIC_RAW : CLOCK_MONOTONIC);
    Py_END_ALLOW_THREADS
    return Py_BuildValue("KKK", (unsigned long long)reading.ticks, (unsigned long long)reading.ns,
                         (unsigned long long)reading.width);
}

PyObject *module_reading_cost_ns(PyObject *self, PyObject *arguments)
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
    cost_ns = clock_selftest_cost(counter != 0, readings);
    Py_END_ALLOW_THREADS
    return PyFloat_FromDouble(cost_ns);
}

PyObject *module_fio_window(PyObject *self, PyObject *arguments)
{
    unsigned long long least_ns;
    uint64_t ticks, ns;

    (void)self;
    if (!PyArg_ParseTuple(arguments, "K", &least_ns))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    clock_selftest_window(least_ns, &ticks, &ns);
    Py_END_ALLOW_THREADS
    return Py_BuildValue("KK", (unsigned long long)ticks, (unsigned long long)ns);
}

PyObject *module_nominal_hz(PyObject *self, PyObject *unused)
{
    double kernel_hz, cpuid_hz;

    (void)self, (void)unused;
    Py_BEGIN_ALLOW_THREADS
    kernel_hz = perf_page_kernel_hz();
    cpuid_hz = perf_page_cpuid_hz();
    Py_END_ALLOW_THREADS
    return Py_BuildValue("dd", kernel_hz, cpuid_hz);
}
