"""The engine, as the slave sees it. No Python thread is ever inside it, and no memory is shared with it.

Times are nanoseconds of CLOCK_MONOTONIC. Methods raise OSError with errno (and path, where there is one).
The engine's threads write `fileno()`, an eventfd, whenever something happened that one of the methods below
would report: a buffer handed over, an edit applied, a thread ended or died.

Methods may be called from several threads. What opens, makes or deletes something, and `go`, take turns and may take
long; what steers a step or tells of one takes a moment, whatever another method is at. An open that hangs keeps nobody
else.
"""

from typing import NamedTuple, final

from ...protocol.parameters import EngineFields

class Collected(NamedTuple):
    """One finished subinterval, all threads merged. Layouts: protocol/counters.py.

    After an overrun it covers several: `subinterval` is then the last of them. A step that is halted before its start
    has one result of length 0.
    """

    subinterval: int
    start_ns: int
    length_ns: int
    last: bool
    counts: bytes  # i64 (instances, Count)
    moments: bytes  # u64 (classes, SERIES, Moment)
    spans: bytes  # u32 (classes, SERIES, 2)
    buckets: bytes  # u32 or u64, the used ranges
    bucket_size: int  # 1, 2, 4 or 8 bytes: the least that every count fits in
    threads: bytes  # i64 (threads, ThreadCount)
    faults: list[tuple[int, int, int]]  # number, errno (0: short), count
    missing: list[int]  # threads that had not handed over (only with force)
    sections: bytes  # u64 (instances, sections, SectionCount)

class Ended(NamedTuple):
    """How a step ended, all threads together; see messages.Stopped."""

    reason: str  # "commanded", "lease", "died"
    caught: int  # in flight at the end, and completed well
    failed: int  # in flight at the end, and came back with an error or short
    uncaught: int
    oldest_uncaught_ns: int
    longest_caught_ns: int  # the longest that any took that came back
    dropped: int  # backlog at the end, given up (what results count as dropped is not in it)

class Abilities(NamedTuple):
    """What a backend can do, and what whoever uses it has to know."""

    polled: bool  # it can poll for completions in the device's own queues
    may_block: bool  # a submit call waits where the LUN's driver or file system lacks RWF_NOWAIT
    hands_over: bool  # there, threads of the kernel do its I/Os
    counted_by_diskstats: bool  # the kernel counts its I/Os for the device (/sys/block/NAME/stat)
    buffered: bool  # it drives LUNs that were opened with direct=False
    trims: bool  # it trims and writes zeroes, unless it is `polled`
    needs_aio_nr: bool  # room for its I/Os in flight is taken from fs.aio-max-nr
    needs_io_uring: bool  # kernel.io_uring_disabled is about it, too

@final
class Engine:
    def __new__(cls, backend: str, cpus: list[int]) -> Engine:
        """Start one workload thread per entry of `cpus`, pinned to that core (-1: unpinned), waiting for commands."""
    def fileno(self) -> int: ...
    def use(self, backend: str, polled: bool = False) -> None:
        """Change the backend, as long as no step has run. io_uring only: completions are `polled` for, which every
        LUN's queue must allow."""
    def spin(self, spin: str) -> None:
        """Whether threads busy-wait where they could sleep: "off", "auto" (within a budget; as opened), or "on" (while
        anything will fall due or is in flight). Between steps."""
    def reserved_pages(self, may: bool) -> None:
        """Whether I/O buffers of instances created from now on may take huge pages that the administrator reserved."""
    def open_lun(self, path: str, writable: bool, name: str | None = None, direct: bool = True) -> int:
        """Open with O_DIRECT, or through the page cache; read-only unless `writable`: a handle for `create`. `name`: in
        messages, for the path."""
    def close_lun(self, lun: int) -> None: ...
    def create(
        self,
        number: int,
        lun: int,
        thread: int,
        ceiling: int,
        blocksize_ceiling: int,
        parameters: EngineFields,
        extents: tuple[tuple[int, int], ...] = (),
    ) -> None:
        """A workload instance, assigned to `thread`, with buffers for `ceiling` tags of `blocksize_ceiling` bytes,
        the most that it reads or writes at once (not trims or zeroes), which `prepare` or `go` allocates. Only between
        steps.

        `extents`: first byte, and the one behind the last, of what may be written, ascending and apart. Unless all
        it does is read, the range must lie within one of them, from the start and after every edit: else this
        raises PermissionError, and an edit OSError (EINVAL). The thread looks at each write, trim and zeroing
        once more, and dies rather
        than write elsewhere.

        Random streams are of (seed, number of the instance, number of the step): instances of one workload differ, and
        no step repeats the addresses of the one before. What is scattered is so by scatter_seed alone: all have one
        hot set. Instances of one LUN with a skew are held in proportion on one thread, not across threads.
        """
    def prepare(self) -> None:
        """Allocate what the instances need for a step: I/O buffers (touched, and for io_uring pinned), tags, contexts
        of the backend; on all threads at once, each on its own NUMA node. `go` does what is left of it."""
    def progress(self) -> int:
        """Grows while `prepare` or `go` advances. Takes no lock."""
    def delete(self, number: int) -> None:
        """Only between steps."""
    def edit(self, edit: int, settings: list[tuple[int, EngineFields]]) -> None:
        """Post new settings (of what is live; maxtags and blocksize up to their ceilings) to the threads, which take
        them between two I/Os, within 10 ms. What is in flight keeps its size. Also between steps.

        Raises BlockingIOError while an earlier edit has not been taken by every thread.
        """
    def edited(self) -> tuple[int, int, int] | None:
        """(edit, time at which the last thread took it, I/Os of the backlog that it discarded) of an edit that all have
        taken, once; else None."""
    def go(
        self, start_ns: int, length_ns: int, order: bytes, classes: bytes, rows: bytes, *, sections: int = 0
    ) -> None:
        """Start a step at `start_ns`. `order`, `classes` and `rows`, each u32: numbers of instances, the merge class of
        each, and its row of `Collected.counts`. Numbers that share a row are parts of one workload instance.
        `sections`: of each LUN, equal; I/Os are counted by the one that they begin in.

        Returns when every thread is ready.
        """
    def place_boundary(self, subinterval: int, boundary_ns: int) -> None:
        """The boundary that ends `subinterval`; ignored when it is already past, or not in 10 % of the length of
        where it would be."""
    def cooldown(self, subinterval: int) -> None: ...
    def stop(self, last: int) -> None: ...
    def halt(self) -> None:
        """Also while `go` is at work: the step that it starts ends as it begins."""
    def set_lease(self, until_ns: int) -> None:
        """Nothing is submitted at or after `until_ns`, compared immediately before every submit call. Before the first
        one nothing is. Takes no lock: may be called while another method is at work in another thread."""
    def collect(self, force: bool = False) -> Collected | None:
        """The oldest finished subinterval once every thread has handed it over (or `force`); frees its buffers."""
    def ended(self) -> Ended | None:
        """Once per step, after its last subinterval was collected and in-flight I/Os were caught; else None.

        Where the kernel holds a thread, 11 s after the end was decided, without a signal on fileno(): ask on a timer.
        What that thread has in flight is uncaught, and its last subinterval comes only by force.
        """
    def dying_words(self) -> list[tuple[int, str]]:
        """(thread, words) of the threads that died since the last call."""
    def close(self, timeout_s: float) -> list[int]:
        """Halt, and join the threads; the numbers of those that did not end in time (the kernel holds them; or all,
        where another method is still at work in another thread)."""

def now_ns() -> int:
    """The clock that stamps I/Os, on CLOCK_MONOTONIC's scale."""

def bucket_of(ns: int) -> int:
    """The C twin of protocol.histogram.bucket_of."""

def layout() -> dict[str, int]:
    """Sizes and positions compiled in: buckets, kinds, series, service, response, lateness ... flush, moments,
    counts, thread_counts, and every column's position by table and lower-case name ("moment.sum", "count.edit",
    "thread_count.cpu", "kind.random_read"); compared with protocol/counters.py by a test."""

def backends() -> list[str]:
    """The backends that work on this kernel."""

def uring_features() -> list[str]:
    """What this kernel's io_uring can do beyond its beginnings, tried out; empty where there is none."""

def abilities() -> dict[str, Abilities]:
    """Of every backend, by name."""

def probe(backend: str, polled: bool = False, /) -> int:
    """0 if this backend works so on this kernel, else an errno."""

def missing(backend: str, error: int, /) -> str:
    """What a backend lacks where `probe` gave this errno, and what to do; "" where errno says it."""

def check_tsc(turns: int, most_ns: int, /) -> tuple[str, int, int, int, int, int]:
    """Why the cycle counter is not used ("": it is), and its order across cores, from a test of its own: cores, turns
    of the core with the fewest, how often one read less than another had before, by how many ticks at most, the
    shortest step from one core to another in ticks.

    Spins on every core until each has had `turns`, at most for `most_ns`.
    """

def anchor(raw: bool, /) -> tuple[int, int, int]:
    """(ticks of the cycle counter, ns of CLOCK_MONOTONIC or CLOCK_MONOTONIC_RAW, width of the bracket in ticks)."""

def reading_cost_ns(counter: bool, readings: int, /) -> float:
    """What one reading costs: of the cycle counter with its conversion, or of CLOCK_MONOTONIC."""

def nominal_hz() -> tuple[float, float]:
    """The counter's rate by the kernel's factors (the perf page), and by CPUID leaf 0x15; 0.0 where there are none."""

def fio_window(least_ns: int, /) -> tuple[int, int]:
    """(ticks, ns) of one of fio's measurements, at least so long; spins."""
