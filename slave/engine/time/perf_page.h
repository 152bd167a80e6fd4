/* What others say of the counter's rate: shown beside our own measurement, never used for stamps.
 *
 * Both are what was known when the machine started: the kernel's factor is rounded to 32 bits and does not follow NTP,
 * and the CPU's is the nominal frequency of a crystal.
 */
#ifndef IVYPY_PERF_PAGE_H
#define IVYPY_PERF_PAGE_H

/* By the factors in the perf page (perf_event_open(2), cap_user_time), Hz; 0: there are none. */
double perf_page_kernel_hz(void);

/* By CPUID leaf 0x15, Hz; 0: this CPU does not say. */
double perf_page_cpuid_hz(void);

#endif
