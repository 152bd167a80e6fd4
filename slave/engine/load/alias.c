#include "alias.h"

static uint64_t as_threshold(double probability)
{
    return probability < 1.0 ? (uint64_t)(probability * 0x1p64) : UINT64_MAX;
}

/* Vose's method: a row whose part has less than a row's room gets the rest of it from one that has more. */
void alias_fill(struct alias *rows, const double *shares, uint32_t count)
{
    double room[MOST_ALIASES], sum = 0.0;
    uint8_t less[MOST_ALIASES], more[MOST_ALIASES];
    uint32_t less_count = 0, more_count = 0;

    for (uint32_t n = 0; n < count; n++)
        sum += shares[n];
    for (uint32_t n = 0; n < count; n++) {
        room[n] = shares[n] * count / sum;
        rows[n] = (struct alias){.threshold = UINT64_MAX, .other = (uint8_t)n};
        if (room[n] < 1.0)
            less[less_count++] = (uint8_t)n;
        else
            more[more_count++] = (uint8_t)n;
    }
    while (less_count && more_count) {
        uint8_t small = less[--less_count], large = more[more_count - 1];
        rows[small] = (struct alias){.threshold = as_threshold(room[small]), .other = large};
        room[large] -= 1.0 - room[small];
        if (room[large] < 1.0) {
            more_count--;
            less[less_count++] = large;
        }
    }
}
