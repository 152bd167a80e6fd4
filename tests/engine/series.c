/* Records the latencies of standard input in three series in turn, merges them, and prints the moments (in the order of
 * columns.h), the percentiles 0.01 %, 50 %, 99 % and 99.99 %, and the buckets in use; then clears one and checks that
 * it is as new. */
#include "check.h"
#include "stats/histogram.h"

int main(void)
{
    static uint64_t buckets[4][HISTOGRAM_BUCKETS];
    struct moments m[4];
    unsigned long long ns;
    int turn = 0;

    for (int n = 0; n < 4; n++)
        moments_clear(&m[n]);
    for (; scanf("%llu", &ns) == 1; turn = (turn + 1) % 3)
        series_record(&m[turn], buckets[turn], ns, 4096);
    for (int n = 0; n < 3; n++)
        series_merge(&m[3], buckets[3], &m[n], buckets[n]);
    printf("%llu %llu %llu %llu %llu %llu %llu\n", (unsigned long long)m[3].count, (unsigned long long)m[3].bytes,
           (unsigned long long)m[3].sum, (unsigned long long)m[3].squares_low, (unsigned long long)m[3].squares_high,
           (unsigned long long)m[3].min, (unsigned long long)m[3].max);
    const uint32_t shares[] = {1, 5000, 9900, 9999};
    for (int n = 0; n < 4; n++)
        printf("%llu ", (unsigned long long)histogram_percentile(buckets[3], &m[3], shares[n]));
    printf("\n");
    for (int b = 0; b < HISTOGRAM_BUCKETS; b++)
        if (buckets[3][b])
            printf("%d %llu\n", b, (unsigned long long)buckets[3][b]);
    series_clear(&m[3], buckets[3]);
    for (int b = 0; b < HISTOGRAM_BUCKETS; b++)
        CHECK(buckets[3][b] == 0);
    CHECK(m[3].count == 0 && m[3].min == UINT64_MAX && m[3].max == 0 && m[3].squares_high == 0);
    CHECK(histogram_percentile(buckets[3], &m[3], 9900) == 0);
    return 0;
}
