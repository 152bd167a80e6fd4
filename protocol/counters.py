"""The columns of the packed arrays in a `result`: what the engine counts, in which order.

Rule: the order here is the order on the wire and in the engine's C structs (a test compares them). All arrays
are row-major, little-endian, 64 bits unless said otherwise.

A *series* is one latency distribution of a merge class. There are service and response time of each kind of I/O, the
generator's lateness, two of the I/Os that were found late (DELAYED), two of those that were submitted late (LATE), and
the service time of flushes. Beside each series' buckets travel its seven moments.
"""

from enum import IntEnum
from typing import Final

from .histogram import BUCKETS

MOST_THREADS: Final = 256  # workload threads of a host
NVME_STATUS: Final = 0x8000  # an I/O fault that is no errno: this plus the status of NVMe (type and code, 11 bits)


class Kind(IntEnum):
    """The kinds of I/O that are recorded apart; all other categories are sums of these."""

    RANDOM_READ = 0
    RANDOM_WRITE = 1
    SEQUENTIAL_READ = 2
    SEQUENTIAL_WRITE = 3
    TRIM = 4
    WRITE_ZEROES = 5


KINDS = len(Kind)
# In the order in which they came to be: the series of a stored run that has fewer are the first ones; 16 and 17 are
# of no kind yet.
LATENESS = 8  # the part of the wait before submission that is the generator's own fault
DELAYED = 9  # service times of those that may have waited for a busy or preempted thread
UNDELAYED = 10  # service times of the same I/Os, less all the time that they may have waited
LATE = 11  # response times of those that were submitted late
PUNCTUAL = 12  # response times of the same I/Os, less their lateness
FLUSH = 13  # submit to completion of flushes, which are in no other
SERIES = 20
SERVICES: Final = (0, 1, 2, 3, 14, 15, FLUSH)  # submit to completion, by kind; and flushes
RESPONSES: Final = (4, 5, 6, 7, 18, 19)  # due to completion, by kind; paced I/O only
SERIES_OF_0_1: Final = 9  # stored runs of 0.1.0 have no reap delay, and do not say how many series they have


class Moment(IntEnum):
    """u64 columns of `moments`, shape (classes, SERIES, len(Moment)); times in nanoseconds.

    An empty series has MIN = 2**64 - 1 and zero elsewhere, so that merging is add, add ..., min, max.
    """

    COUNT = 0
    BYTES = 1
    SUM = 2
    SQUARES_LOW = 3  # sum of squares, bits 0..63: 128 bits, since 64 overflow after 18 I/Os of 1 s
    SQUARES_HIGH = 4  # sum of squares, bits 64..127
    MIN = 5
    MAX = 6


class Count(IntEnum):
    """i64 columns of `counts`, shape (instances, len(Count)), one row per workload instance in `go`'s order.

    No count is ever negative, and over the subintervals from a step's start, whatever is edited and whatever fails:

        DUE = COMPLETED + ERRORS + DROPPED + EXPIRED + BACKLOG + IN_FLIGHT (the last two: at the end)
        SUBMITTED = COMPLETED + ERRORS + WITHDRAWN + IN_FLIGHT
    """

    EDIT = 0  # number of the edit in force at the end of the subinterval (0: as created)
    DUE = 1  # I/Os that fell due; equals SUBMITTED where iops is max
    SUBMITTED = 2  # each once, also where the kernel gave it back (EAGAIN)
    COMPLETED = 3  # without errors and short transfers
    BYTES = 4  # read and written: those of trims and zeroes are none
    ERRORS = 5  # completions with an errno, short transfers included
    SHORT = 6  # completions of fewer bytes than requested
    DROPPED = 7  # discarded: I/Os that were due and will never be done
    BACKLOG = 8  # at the end: due, not submitted
    IN_FLIGHT = 9  # at the end: submitted, not completed
    OLDEST_IN_FLIGHT_NS = 10  # at the end: age since submission, 0 if none
    OLDEST_OUTSTANDING_NS = (
        11  # at the end: age since it fell due of the oldest I/O in the backlog or in flight, 0 if none
    )
    QUEUE_LIMITED = 12  # waits for room, its thread's part of a hardware queue (nr_requests) being full
    EAGAIN = 13  # submissions that the kernel gave back with EAGAIN; they keep their times
    READS_SAMPLED = 14  # reads of which the data was checked, about one of 64
    ZERO_READS = 15  # of these, those that read as zeros
    FOREIGN_BYTES = 16  # the instance's part of what others did on its disk; the slave's to fill in, as the last two
    WITHDRAWN = 17  # of DROPPED: in SUBMITTED too, since the kernel gave them back before a pause discarded them
    EXPIRED = 18  # discarded since they waited for longer than `drop_after`; not in DROPPED
    KEPT_NS = 19  # for which its thread waited for a core that other processes, or a quota, may have kept from it
    STOLEN_NS = 20  # for which the hypervisor took its thread's core; both: of several threads the mean
    LEFT = 21  # at the end: I/Os, bytes or ns of `until` that are not submitted or over; 0 where it has none
    ENDED_NS = 22  # at the end: for how long it has ended, by `until` and its last completion; 0 if it has not
    WRITTEN = 23  # of BYTES
    FLUSHES = 24  # of COMPLETED; in DUE and SUBMITTED, too, but in no figure of IOPS
    CACHED = 25  # of BYTES: read through the page cache without its disk; the slave's to fill in, as the next two
    DIRTY = 26  # at the end: written through the page cache in this step, and not by its disk
    UNSEEN = 27  # of BYTES: through the page cache of a LUN for whose disk the kernel has no counters


class ThreadCount(IntEnum):
    """i64 columns of `threads`, shape (threads, len(ThreadCount)); times in nanoseconds."""

    CPU = 0  # the core it is pinned to, -1 if none
    SWAPPED = 1  # 1, or 0 if the thread had not handed over its buffer when the result was taken
    OVERRUNS = 2  # boundaries that passed without a free buffer: this result covers 1 + OVERRUNS lengths
    DISPATCH = 3  # boundary to the instant the thread noticed it
    SWITCHOVER = 4  # noticed to running in the other buffer
    LATENESS_P50 = 5  # due (or tag free, whichever is later) to submitted, paced I/O, and I/O after a think time
    LATENESS_P99 = 6
    LATENESS_MAX = 7
    POLL_GAP_P99 = 8  # time between two polls of the completion ring: bounds the error of a completion's stamp
    POLL_GAP_MAX = 9
    IN_SUBMIT = 10  # time spent in submit calls
    SUBMIT_CALLS = 11
    REAPS = 12  # passes that found at least one completion
    SLEEPS = 13  # times the thread slept
    SUBMITTED = 14
    COMPLETED = 15
    CPU_TIME = 16  # CPU time of the thread
    CLOCK_ADJUSTMENT = 17  # how far the clock was moved at this swap, signed
    BUSY_WAIT = 18  # time in which it was awake without need, looking at the clock and the ring
    REAP_DELAY_SUM = 19  # over all completions: for how long the thread was kept from looking before it found them
    REAP_DELAY_P99 = 20  # of these


class SectionCount(IntEnum):
    """u64 columns of `sections`, shape (instances, sections, len(SectionCount)): of the I/Os that completed without
    errors and began in one section of their LUN; times are service times, in nanoseconds.

    The byte at offset b of a LUN lies in section floor(b * sections / size). All reads and changes together are
    COMPLETED less FLUSHES.
    """

    READS = 0
    READ_NS = 1  # together
    LONGEST_READ_NS = 2
    CHANGES = 3  # writes, trims, zeroes
    CHANGE_NS = 4
    LONGEST_CHANGE_NS = 5


MOST_SECTIONS: Final = 1000
LONGEST: Final = (SectionCount.LONGEST_READ_NS, SectionCount.LONGEST_CHANGE_NS)  # merged as a maximum; the others add


def most_bytes(instances: int, classes: int, sections: int) -> int:
    """The most bytes that the arrays of one result can take, unpacked."""
    of_class = SERIES * (8 * len(Moment) + 2 * 4 + 8 * BUCKETS)
    of_instance = 8 * len(Count) + 8 * len(SectionCount) * sections
    return of_instance * instances + of_class * classes + 8 * len(ThreadCount) * MOST_THREADS
