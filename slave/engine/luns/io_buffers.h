/* Memory for I/O buffers, in huge pages where they are to be had.
 *
 * Rule: an area below HUGE_PAGE is in ordinary pages, so that thousands of small instances stay small. A larger one takes
 * reserved huge pages if there are enough, else asks for transparent ones, else is ordinary; it works all the same.
 */
#ifndef IVYPY_IO_BUFFERS_H
#define IVYPY_IO_BUFFERS_H

#include <stddef.h>

#define HUGE_PAGE ((size_t)2 << 20)

/* Zeroed and page-aligned; `size` becomes what was mapped, to be given back. NULL: there is no memory. */
char *io_buffers_take(size_t *size);
void io_buffers_free(char *data, size_t size);

#endif
