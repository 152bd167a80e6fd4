/* Text to numbers. Most of a histogram log is "0, 0, 0, ": eight empty cells are passed in one comparison. */
#include "rows.h"

#include <string.h>

#define MAX_DIGITS 18 /* what surely fits in 63 bits */
#define DIRECTIONS 3
#define ZEROS "0, 0, 0, 0, 0, 0, 0, 0, "
#define ZEROS_SIZE 24
#define ZEROS_CELLS 8

static const char *skip_blanks(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\r')
        p++;
    return p;
}

/* One unsigned number at `p`; NULL where there is none, or one too long. */
static inline const char *read_number(const char *p, uint64_t *value)
{
    uint64_t v = (uint64_t)(unsigned char)*p - '0';
    if (v > 9)
        return NULL;
    const char *start = p++;
    for (uint64_t digit; (digit = (uint64_t)(unsigned char)*p - '0') <= 9; p++)
        v = v * 10 + digit;
    *value = v;
    return p - start > MAX_DIGITS ? NULL : p;
}

#define ASCII_ZEROS 0x3030303030303030u
#define NINE_TO_SIGN 0x7676767676767676u /* makes every byte above 9 negative */
#define SIGNS 0x8080808080808080u

/* The same for numbers of one to seven digits, eight bytes at a time: no branch depends on how many there are. */
static inline const char *read_short_number(const char *p, const char *end, uint64_t *value)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (end - p >= 8) {
        uint64_t digits;
        memcpy(&digits, p, 8);
        digits ^= ASCII_ZEROS;
        uint64_t others = ((digits + NINE_TO_SIGN) | digits) & SIGNS;
        int count = others ? __builtin_ctzll(others) / 8 : 8;
        if (count > 0 && count < 8) {
            digits <<= 64 - 8 * count;            /* the digits to the end, zeros before them */
            digits = digits * 10 + (digits >> 8); /* pairs, in every other byte */
            uint64_t low = (digits & 0x000000FF000000FFu) * (100 + (1000000ull << 32));
            uint64_t high = (digits >> 16 & 0x000000FF000000FFu) * (1 + (10000ull << 32));
            *value = (low + high) >> 32;
            return p + count;
        }
    }
#endif
    return read_number(p, value);
}

/* From behind a cell to the next one: a comma and blanks. NULL where the line ends or something else stands. */
static inline const char *next_cell(const char *p)
{
    if (p[0] == ',' && p[1] == ' ' && p[2] != ' ')
        return p + 2;
    p = skip_blanks(p);
    return *p == ',' ? skip_blanks(p + 1) : NULL;
}

static inline const char *end_of_line(const char *p)
{
    if (*p == '\n')
        return p + 1;
    p = skip_blanks(p);
    return *p == '\n' ? p + 1 : NULL;
}

/* The buckets of one row, from `p` to behind its newline; NULL where they are not `columns` numbers. */
static const char *read_buckets(const char *p, const char *end, int columns, uint16_t *buckets, uint64_t *counts,
                                int64_t *found)
{
    int64_t n = 0;
    int column = 0;
    for (;;) {
        while (end - p > ZEROS_SIZE && columns - column > ZEROS_CELLS && memcmp(p, ZEROS, ZEROS_SIZE) == 0) {
            p += ZEROS_SIZE;
            column += ZEROS_CELLS;
        }
        p = skip_blanks(p); /* `ZEROS` ends with one; more may follow */
        /* Between non-empty buckets stand a few empty ones: go on one by one until a cell or two are full. */
        for (int cells = 0; cells < ZEROS_CELLS; cells++) {
            uint64_t count;
            p = read_number(p, &count);
            if (!p)
                return NULL;
            if (count) {
                buckets[n] = (uint16_t)column;
                counts[n++] = count;
            }
            if (++column == columns) {
                *found = n;
                return end_of_line(p);
            }
            p = next_cell(p);
            if (!p)
                return NULL;
        }
    }
}

struct rows_result histogram_rows_parse(const char *text, size_t size, int lead, int columns,
                                        const struct histogram_rows *out)
{
    struct rows_result result = {0};
    const char *p = text, *end = text + size;
    out->first[0] = 0;
    while (p < end) {
        const char *line = p;
        p = skip_blanks(p);
        if (*p == '\n') {
            p++;
            result.lines++;
            result.used = (size_t)(p - text);
            continue;
        }
        if (result.rows == out->max_rows || out->max_entries - result.entries < columns) {
            result.status = ROWS_FULL;
            return result;
        }
        uint64_t leading[3] = {0};
        for (int i = 0; p && i < lead; i++)
            if ((p = read_number(p, &leading[i])))
                p = next_cell(p);
        int64_t found = 0;
        if (p && leading[1] < DIRECTIONS)
            p = read_buckets(p, end, columns, out->buckets + result.entries, out->counts + result.entries, &found);
        else
            p = NULL;
        if (!p) {
            result.status = ROWS_BAD;
            result.used = (size_t)(line - text);
            return result;
        }
        out->stamps[result.rows] = (int64_t)leading[0];
        out->directions[result.rows] = (uint8_t)leading[1];
        out->sizes[result.rows] = lead == 3 ? (int64_t)leading[2] : -1;
        result.entries += found;
        out->first[++result.rows] = result.entries;
        result.lines++;
        result.used = (size_t)(p - text);
    }
    return result;
}

/* The priority column may be 0x0000; every other one is decimal. */
static inline const char *read_field(const char *p, const char *end, uint64_t *value)
{
    if (p[0] != '0' || p[1] != 'x')
        return read_short_number(p, end, value);
    const char *start = p += 2;
    uint64_t v = 0;
    for (;; p++) {
        unsigned c = (unsigned char)*p;
        unsigned digit = c - '0' <= 9 ? c - '0' : (c | 0x20) - 'a' <= 5 ? (c | 0x20) - 'a' + 10 : 16;
        if (digit == 16)
            break;
        v = v * 16 + digit;
    }
    *value = v;
    return p == start || p - start > 15 ? NULL : p;
}

struct rows_result latency_rows_parse(const char *text, size_t size, int fields, int direction_at,
                                      const struct sample_rows *out)
{
    struct rows_result result = {0};
    const char *p = text, *end = text + size;
    const char *rest = NULL; /* the end of the last row, from behind its direction to its newline */
    size_t rest_size = 0;
    while (p < end) {
        const char *line = p;
        p = skip_blanks(p);
        if (*p == '\n') {
            p++;
            result.lines++;
            result.used = (size_t)(p - text);
            continue;
        }
        if (result.rows == out->max_rows) {
            result.status = ROWS_FULL;
            return result;
        }
        uint64_t stamp = 0, value = 0, direction = DIRECTIONS, field;
        for (int i = 0; i <= direction_at; i++) {
            p = read_field(p, end, &field);
            p = p && i < direction_at ? next_cell(p) : p;
            if (!p)
                break;
            stamp = i == 0 ? field : stamp;
            value = i == 1 ? field : value;
            direction = i == direction_at ? field : direction;
        }
        /* What follows (block size, priority) is mostly the same in every row: then it needs no second look. */
        if (p && rest_size && (size_t)(end - p) >= rest_size && memcmp(p, rest, rest_size) == 0) {
            p += rest_size;
        } else if (p) {
            rest = p;
            for (int i = direction_at + 1; p && i < fields; i++)
                if ((p = next_cell(p)))
                    p = read_field(p, end, &field);
            p = p ? end_of_line(p) : NULL;
            rest_size = p ? (size_t)(p - rest) : 0;
        }
        if (!p || direction >= DIRECTIONS) {
            result.status = ROWS_BAD;
            result.used = (size_t)(line - text);
            return result;
        }
        out->stamps[result.rows] = (int64_t)stamp;
        out->values[result.rows] = (int64_t)value;
        out->directions[result.rows] = (uint8_t)direction;
        result.rows++;
        result.lines++;
        result.used = (size_t)(p - text);
    }
    return result;
}

/* Seconds with at most nine decimals that count, as nanoseconds: exact, where a double would round. */
static const char *read_seconds(const char *p, int64_t *ns)
{
    uint64_t whole, scale = 100000000, fraction = 0;
    p = read_number(p, &whole);
    if (!p || whole > 9000000000u)
        return NULL;
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9'; p++, scale /= 10)
            fraction += (uint64_t)(*p - '0') * scale;
    *ns = (int64_t)(whole * 1000000000u + fraction);
    return p;
}

struct rows_result smallfile_rows_parse(const char *text, size_t size, const struct sample_rows *out)
{
    struct rows_result result = {0};
    const char *p = text, *end = text + size;
    while (p < end) {
        const char *line = p;
        p = skip_blanks(p);
        if (*p == '\n') {
            p++;
            result.lines++;
            result.used = (size_t)(p - text);
            continue;
        }
        if (result.rows == out->max_rows) {
            result.status = ROWS_FULL;
            return result;
        }
        int64_t start = 0, response = 0;
        while (*p != ',' && *p != '\n')
            p++;
        p = next_cell(p);
        if (p && (p = read_seconds(p, &start)) && (p = next_cell(p)) && (p = read_seconds(p, &response)))
            p = end_of_line(p);
        if (!p) {
            result.status = ROWS_BAD;
            result.used = (size_t)(line - text);
            return result;
        }
        out->stamps[result.rows] = start + response;
        out->values[result.rows] = response;
        out->directions[result.rows] = 0;
        result.rows++;
        result.lines++;
        result.used = (size_t)(p - text);
    }
    return result;
}
