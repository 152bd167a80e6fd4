/* What `ivypy clock` measures on the machine.
 *
 * Rule: nothing here is used while I/O runs: these spin.
 */
#ifndef IVYPY_CLOCK_SELFTEST_H
#define IVYPY_CLOCK_SELFTEST_H

#include <stdbool.h>
#include <stdint.h>

/* What one reading costs, ns: of the counter with its conversion, or of the kernel's clock: of several series
 * of `readings`, the one that was disturbed least. */
double clock_selftest_cost(bool counter, uint32_t readings);

/* One of fio's measurements (its get_cycles_per_msec): the counter against CLOCK_MONOTONIC until at least `least_ns`
 * have gone by, without brackets. */
void clock_selftest_window(uint64_t least_ns, uint64_t *ticks, uint64_t *ns);

#endif
