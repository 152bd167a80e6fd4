/* The binding of rows.h: parses arguments, checks every size and index, releases the GIL, calls. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include "rows.h"

#define MAX_ARRAYS 12

/* The arrays of one call: taken in order, released together. */
struct arrays {
    Py_buffer views[MAX_ARRAYS];
    int taken;
};

static void release(struct arrays *arrays)
{
    while (arrays->taken > 0)
        PyBuffer_Release(&arrays->views[--arrays->taken]);
}

/* A contiguous array of `item` bytes an element; NULL with an exception set where it is something else. */
static Py_buffer *take(struct arrays *arrays, PyObject *object, Py_ssize_t item, int writable)
{
    Py_buffer *view = &arrays->views[arrays->taken];
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0)) < 0)
        return NULL;
    arrays->taken++;
    if (view->itemsize == item)
        return view;
    PyErr_Format(PyExc_ValueError, "array %d has elements of %zd bytes, not %zd", arrays->taken, view->itemsize, item);
    return NULL;
}

static int64_t length_of(const Py_buffer *view)
{
    return view->len / view->itemsize;
}

static int refuse(const char *what)
{
    PyErr_SetString(PyExc_ValueError, what);
    return 0;
}

/* The text must end with a newline: the parsers look for nothing else to stop at. */
static int is_whole_lines(const Py_buffer *text)
{
    if (text->len == 0 || ((const char *)text->buf)[text->len - 1] == '\n')
        return 1;
    return refuse("the text does not end with a newline");
}

static PyObject *result_tuple(const struct rows_result *r)
{
    return Py_BuildValue("(LLLnO)", (long long)r->rows, (long long)r->entries, (long long)r->lines, (Py_ssize_t)r->used,
                         r->status == ROWS_BAD ? Py_True : Py_False);
}

static PyObject *parse_histograms(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *object[7];
    int lead, columns;
    if (!PyArg_ParseTuple(args, "OiiOOOOOO", &object[0], &lead, &columns, &object[1], &object[2], &object[3],
                          &object[4], &object[5], &object[6]))
        return NULL;
    static const Py_ssize_t items[] = {1, 8, 1, 8, 8, 2, 8};
    struct arrays arrays = {.taken = 0};
    PyObject *answer = NULL;
    for (int i = 0; i < 7; i++)
        if (!take(&arrays, object[i], items[i], i > 0))
            goto out;
    Py_buffer *view = arrays.views;
    struct histogram_rows out = {.max_rows = length_of(&view[1]),
                                 .max_entries = length_of(&view[5]),
                                 .stamps = view[1].buf,
                                 .directions = view[2].buf,
                                 .sizes = view[3].buf,
                                 .first = view[4].buf,
                                 .buckets = view[5].buf,
                                 .counts = view[6].buf};
    if (!is_whole_lines(&view[0]))
        goto out;
    if ((lead != 2 && lead != 3) || columns < 1 || columns > 65536 || length_of(&view[2]) < out.max_rows ||
        length_of(&view[3]) < out.max_rows || length_of(&view[4]) < out.max_rows + 1 ||
        length_of(&view[6]) < out.max_entries) {
        refuse("lead, columns or the arrays' sizes do not fit together");
        goto out;
    }
    struct rows_result result;
    Py_BEGIN_ALLOW_THREADS
    result = histogram_rows_parse(view[0].buf, (size_t)view[0].len, lead, columns, &out);
    Py_END_ALLOW_THREADS
    answer = result_tuple(&result);
out:
    release(&arrays);
    return answer;
}

/* Text and three arrays that take what was read; `fields` 0 means smallfile. */
static PyObject *parse_samples(PyObject *object[4], int fields, int direction_at)
{
    static const Py_ssize_t items[] = {1, 8, 8, 1};
    struct arrays arrays = {.taken = 0};
    PyObject *answer = NULL;
    for (int i = 0; i < 4; i++)
        if (!take(&arrays, object[i], items[i], i > 0))
            goto out;
    Py_buffer *view = arrays.views;
    struct sample_rows out = {
        .max_rows = length_of(&view[1]), .stamps = view[1].buf, .values = view[2].buf, .directions = view[3].buf};
    if (!is_whole_lines(&view[0]))
        goto out;
    if (length_of(&view[2]) < out.max_rows || length_of(&view[3]) < out.max_rows) {
        refuse("the arrays' sizes do not fit together");
        goto out;
    }
    struct rows_result result;
    Py_BEGIN_ALLOW_THREADS
    result = fields ? latency_rows_parse(view[0].buf, (size_t)view[0].len, fields, direction_at, &out)
                    : smallfile_rows_parse(view[0].buf, (size_t)view[0].len, &out);
    Py_END_ALLOW_THREADS
    answer = result_tuple(&result);
out:
    release(&arrays);
    return answer;
}

static PyObject *parse_latencies(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *object[4];
    int fields, direction_at;
    if (!PyArg_ParseTuple(args, "OiiOOO", &object[0], &fields, &direction_at, &object[1], &object[2], &object[3]))
        return NULL;
    if (fields < 4 || fields > 16 || direction_at < 2 || direction_at >= fields)
        return refuse("fields or direction_at is out of range"), NULL;
    return parse_samples(object, fields, direction_at);
}

static PyObject *parse_smallfile(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *object[4];
    if (!PyArg_ParseTuple(args, "OOOO", &object[0], &object[1], &object[2], &object[3]))
        return NULL;
    return parse_samples(object, 0, 0);
}

/* Every entry of every row lies in the arrays, and every bucket in the window. */
static int is_sound(const struct records *r, int64_t entries, int64_t buckets)
{
    for (int64_t row = 0; row < r->rows; row++)
        if (r->first[row] < 0 || r->stop[row] < r->first[row] || r->stop[row] > entries || r->directions[row] > 7 ||
            r->starts[row] > r->ends[row])
            return refuse("a row's entries, direction or times are out of range");
    uint16_t highest = 0;
    for (int64_t i = 0; i < entries; i++)
        highest = r->buckets[i] > highest ? r->buckets[i] : highest;
    return highest < buckets ? 1 : refuse("a bucket lies outside the window");
}

/* `cells` is flat; what it holds must be whole quanta. */
static int fill_window(struct window *window, const Py_buffer *cells, long long earliest, long long length,
                       long long first, long long buckets)
{
    if (length < 1 || buckets < 1 || length_of(cells) % buckets)
        return refuse("the window's length, buckets or cells do not fit together");
    *window = (struct window){.length = length,
                              .first = first,
                              .quanta = length_of(cells) / buckets,
                              .buckets = buckets,
                              .earliest = earliest,
                              .cells = cells->buf};
    return 1;
}

static PyObject *spread_records(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *object[11];
    unsigned mask;
    long long earliest, length, first, buckets;
    if (!PyArg_ParseTuple(args, "OOOOOOOIOLLLLOOO", &object[0], &object[1], &object[2], &object[3], &object[4],
                          &object[5], &object[6], &mask, &object[7], &earliest, &length, &first, &buckets, &object[8],
                          &object[9], &object[10]))
        return NULL;
    static const Py_ssize_t items[] = {8, 8, 1, 8, 8, 2, 8};
    struct arrays arrays = {.taken = 0};
    PyObject *answer = NULL;
    for (int i = 0; i < 7; i++)
        if (!take(&arrays, object[i], items[i], 0))
            goto out;
    Py_buffer *cells = take(&arrays, object[8], 8, 1);
    Py_buffer *split = cells ? take(&arrays, object[9], 8, 1) : NULL;
    Py_buffer *top = split ? take(&arrays, object[10], 8, 1) : NULL;
    if (!top)
        goto out;
    const Py_buffer *latencies = NULL;
    if (object[7] != Py_None && !(latencies = take(&arrays, object[7], 8, 0)))
        goto out;
    Py_buffer *view = arrays.views;
    struct records records = {.rows = length_of(&view[0]),
                              .starts = view[0].buf,
                              .ends = view[1].buf,
                              .directions = view[2].buf,
                              .first = view[3].buf,
                              .stop = view[4].buf,
                              .buckets = view[5].buf,
                              .counts = view[6].buf};
    struct window window;
    if (!fill_window(&window, cells, earliest, length, first, buckets))
        goto out;
    if (length_of(split) != window.quanta || length_of(top) != window.quanta) {
        refuse("what is known of splits has another number of quanta than the cells");
        goto out;
    }
    window.split = split->buf;
    window.top = top->buf;
    for (int i = 1; i < 5; i++)
        if (length_of(&view[i]) != records.rows) {
            refuse("the arrays of rows differ in length");
            goto out;
        }
    if (length_of(&view[5]) != length_of(&view[6]) || (latencies && length_of(latencies) != buckets)) {
        refuse("the arrays of entries, or of latencies, differ in length");
        goto out;
    }
    if (!is_sound(&records, length_of(&view[5]), buckets))
        goto out;
    Py_BEGIN_ALLOW_THREADS
    records_spread(&records, mask, latencies ? latencies->buf : NULL, &window);
    Py_END_ALLOW_THREADS
    answer = Py_None;
    Py_INCREF(answer);
out:
    release(&arrays);
    return answer;
}

static PyObject *spread_samples(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *object[8];
    unsigned mask;
    int in_flight;
    long long earliest, length, first, buckets;
    if (!PyArg_ParseTuple(args, "OOOIpLLLLOOOOO", &object[0], &object[1], &object[2], &mask, &in_flight, &earliest,
                          &length, &first, &buckets, &object[3], &object[4], &object[5], &object[6], &object[7]))
        return NULL;
    static const Py_ssize_t items[] = {8, 8, 1, 8, 8, 8, 8, 8};
    struct arrays arrays = {.taken = 0};
    PyObject *answer = NULL;
    for (int i = 0; i < 8; i++)
        if (!take(&arrays, object[i], items[i], i > 2))
            goto out;
    Py_buffer *view = arrays.views;
    struct samples samples = {
        .rows = length_of(&view[0]), .ends = view[0].buf, .values = view[1].buf, .directions = view[2].buf};
    struct window window;
    if (!fill_window(&window, &view[3], earliest, length, first, buckets))
        goto out;
    if (length_of(&view[1]) != samples.rows || length_of(&view[2]) != samples.rows) {
        refuse("the arrays of samples differ in length");
        goto out;
    }
    for (int i = 4; i < 8; i++)
        if (length_of(&view[i]) != window.quanta) {
            refuse("the moments have another number of quanta than the cells");
            goto out;
        }
    struct moments moments = {
        .sums = view[4].buf, .squares = view[5].buf, .lowest = view[6].buf, .highest = view[7].buf};
    Py_BEGIN_ALLOW_THREADS
    samples_spread(&samples, mask, in_flight, &window, &moments);
    Py_END_ALLOW_THREADS
    answer = Py_None;
    Py_INCREF(answer);
out:
    release(&arrays);
    return answer;
}

static PyMethodDef methods[] = {
    {"parse_histograms", parse_histograms, METH_VARARGS, NULL},
    {"parse_latencies", parse_latencies, METH_VARARGS, NULL},
    {"parse_smallfile", parse_smallfile, METH_VARARGS, NULL},
    {"spread_records", spread_records, METH_VARARGS, NULL},
    {"spread_samples", spread_samples, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_rows", .m_size = 0, .m_methods = methods,
                                        .m_slots = slots};

PyMODINIT_FUNC PyInit__rows(void)
{
    return PyModuleDef_Init(&definition);
}
