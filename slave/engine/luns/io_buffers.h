/* Memory for I/O buffers, in huge pages where they are to be had.
 *
 * Rule: an area below HUGE_PAGE is in ordinary pages, so that thousands of small instances stay small. A larger one
 * asks for transparent ones, or takes reserved ones if it may and there are enough: an administrator may have reserved
 * them for a database or virtual machines. Without either its pages are ordinary; it works all the same. It is whole
 * huge pages: with small ones at its end, io_uring would pin it in a time that grows with the square of its size.
 */
#ifndef IVYPY_IO_BUFFERS_H
#define IVYPY_IO_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>

#define HUGE_PAGE ((size_t)2 << 20)

/* Zeroed and page-aligned; `size` becomes what was mapped, to be given back. NULL: there is no memory. */
char *io_buffers_take(size_t *size, bool from_reserved);
void io_buffers_free(char *data, size_t size);

#endif
