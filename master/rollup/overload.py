"""Decides whether a load was sustained: whether its outstanding I/O grew by more than a tolerance and chance allow.

Rule: outstanding I/O is everything that was due and is not done, whether it waits in the backlog or is in flight. Its
growth is due minus done (completed, failed, dropped), over exactly the subintervals that are checked. It is not the
difference of two queue lengths, so I/O that was outstanding before them does not count. What waited for longer than
`drop_after` and was discarded (expired) is not done either: else no load would ever be too much.

Each workload instance is checked alone, because the growth of one is hidden in a sum. Sums of instances are also
checked, because a small growth of each of many shows only there. An instance with `iops: max` is never checked: nothing
falls due there.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...protocol.counters import Count
from .arrays import Floats, Ints
from .merge_layout import MergeLayout

FALSE_ALARM: Final = 3e-5  # the probability that any instance of a steady load is reported as not sustained
MOST_SWING: Final = 0.05  # of the due I/O: the largest swing of a queue that is excused
SUDDEN: Final = 0.05  # of the due I/O: growth that a single subinterval shows, apart from a stall at its end
FEWEST_OF_PART: Final = 4  # subintervals that show how a queue swings
UNEVEN: Final = 6.0  # how far the deviation of a steady load's queue may differ between two parts of a window
SURGE: Final = (
    2.0  # growth, as a multiple of what was outstanding: a change of the load at most doubles what is in flight
)
EARLIER: Final = 0.005  # of the I/Os that completed: half of those beyond their p99
EARLIER_BY_CHANCE: Final = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Outstanding:
    """Due and outstanding I/O of I workload instances in one subinterval; (I,) each."""

    due: Ints
    growth: Ints  # of the outstanding I/O: due minus done
    backlog_growth: Ints  # of that: due minus submitted
    in_flight: Ints  # at the end
    backlog: Ints  # at the end: due, not submitted
    expired: Ints  # of the growth: no longer outstanding, since discarded
    known: NDArray[np.bool_]  # whether its host's result is in: all else is 0 where it is not

    @classmethod
    def of(cls, counts: Ints, known: NDArray[np.bool_] | None = None) -> "Outstanding":
        """`counts`: (I, Count); `known`: (I,), all if None"""
        left = counts[:, Count.DUE] - counts[:, Count.DROPPED]
        return cls(
            due=counts[:, Count.DUE],
            growth=left - counts[:, Count.COMPLETED] - counts[:, Count.ERRORS],
            backlog_growth=left + counts[:, Count.WITHDRAWN] - counts[:, Count.SUBMITTED],
            in_flight=counts[:, Count.IN_FLIGHT],
            backlog=counts[:, Count.BACKLOG],
            expired=counts[:, Count.EXPIRED],
            known=np.ones(len(counts), bool) if known is None else known,
        )

    @classmethod
    def none(cls) -> "Outstanding":
        return cls.of(np.zeros((0, len(Count)), np.int64))

    def of_paced(self, paced: NDArray[np.bool_]) -> "Outstanding":
        """0 where iops is max: nothing falls due there. `paced`: (I,)"""
        if paced.all():
            return self
        parts = self.due, self.growth, self.backlog_growth, self.in_flight, self.backlog, self.expired
        due, growth, backlog_growth, in_flight, backlog, expired = (part * paced for part in parts)
        return Outstanding(due, growth, backlog_growth, in_flight, backlog, expired, self.known)

    def surged(self) -> NDArray[np.bool_]:
        """(I,) instances whose growth in this subinterval alone is more than a change of the load explains."""
        bound = allowed(self.due, SUDDEN, self.in_flight + 1, 0, len(self.due))
        before = self.in_flight + self.backlog - (self.growth - self.expired)
        found: NDArray[np.bool_] = (self.backlog_growth > bound) | (self.growth > np.maximum(bound, SURGE * before))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class EndSums:
    """Sums of the outstanding I/O at the ends of consecutive subintervals, for a line through them; (I,) each."""

    subintervals: int
    total: Ints
    rising: Floats  # each end times its subinterval's number from 0
    squares: Floats

    @classmethod
    def none(cls, instances: int) -> "EndSums":
        return cls(0, np.zeros(instances, np.int64), np.zeros(instances), np.zeros(instances))

    @classmethod
    def of(cls, ends: Ints) -> "EndSums":
        """`ends`: (N, I)"""
        numbers = np.arange(len(ends), dtype=np.float64)
        return cls(len(ends), ends.sum(axis=0), numbers @ ends, np.square(ends, dtype=np.float64).sum(axis=0))

    def plus(self, end: Ints) -> "EndSums":
        """With one more subinterval."""
        return EndSums(
            self.subintervals + 1,
            self.total + end,
            self.rising + self.subintervals * end,
            self.squares + np.square(end, dtype=np.float64),
        )

    def begun_with(self, end: Ints) -> "EndSums":
        """The same, as if all subintervals so far had ended with this more."""
        n = self.subintervals
        squares = self.squares + n * np.square(end, dtype=np.float64)
        return EndSums(n, self.total + n * end, self.rising + n * (n - 1) / 2 * end, squares)

    def after(self, first: "EndSums") -> "EndSums":
        """The sums without the `first` subintervals."""
        total = self.total - first.total
        rising = self.rising - first.rising - first.subintervals * total
        return EndSums(self.subintervals - first.subintervals, total, rising, self.squares - first.squares)

    def of_paced(self, paced: NDArray[np.bool_]) -> "EndSums":
        return EndSums(self.subintervals, self.total * paced, self.rising * paced, self.squares * paced)

    def variance(self) -> Floats:
        """(I,) variance about the least-squares line; the line itself is the steady growth. 0 for fewer than 3 ends."""
        n = self.subintervals
        if n < 3:
            return np.zeros(len(self.total))
        mean = self.total / n
        spread = n * (n * n - 1) / 12  # of the numbers 0 .. n - 1 about their mean
        slope = (self.rising - (n - 1) / 2 * self.total) / spread
        found: Floats = np.maximum(self.squares - n * mean**2 - slope**2 * spread, 0.0) / (n - 2)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Account:
    """Due I/O, growth and number in flight over consecutive subintervals, of workload instances; (I,) each."""

    subintervals: int
    due: Ints
    growth: Ints
    in_flight: Ints  # summed over the subintervals' ends
    expired: Ints
    before: Ints  # outstanding when the first of them began
    last: Ints  # outstanding at the last end that is known, and in the next line in flight: a host may not be in
    last_in_flight: Ints
    seen: NDArray[np.bool_]  # an end is known
    ends: EndSums
    first: EndSums  # of the first subintervals: a power of two of them, between a quarter and half of all
    doubled: EndSums  # likewise, of twice as many

    @classmethod
    def none(cls, instances: int) -> "Account":
        zero, ends = np.zeros(instances, np.int64), EndSums.none(instances)
        return cls(0, zero, zero, zero, zero, zero, zero, zero, np.zeros(instances, bool), ends, ends, ends)

    def plus(self, ended: Outstanding) -> "Account":
        """With one more subinterval. An end that is not known is as the one before, or as the first that is: the growth
        until then is in a later result, and zeros would look like a queue that swings."""
        at_end = np.where(ended.known, ended.in_flight + ended.backlog, self.last)
        in_flight = np.where(ended.known, ended.in_flight, self.last_in_flight)
        new = at_end * (ended.known & ~self.seen)
        before, first, doubled = (part.begun_with(new) if new.any() else part for part in self._parts)
        ends = before.plus(at_end)
        doubles = ends.subintervals & (ends.subintervals - 1) == 0
        return Account(
            subintervals=self.subintervals + 1,
            due=self.due + ended.due,
            growth=self.growth + ended.growth,
            in_flight=self.in_flight + in_flight,
            expired=self.expired + ended.expired,
            before=np.where(self.seen | ~ended.known, self.before, at_end - (ended.growth - ended.expired)),
            last=at_end,
            last_in_flight=in_flight,
            seen=self.seen | ended.known,
            ends=ends,
            first=doubled if doubles else first,
            doubled=ends if doubles else doubled,
        )

    @property
    def _parts(self) -> tuple[EndSums, EndSums, EndSums]:
        return self.ends, self.first, self.doubled

    def of_paced(self, paced: NDArray[np.bool_]) -> "Account":
        """0 where iops is max: nothing falls due there. `paced`: (I,)"""
        if paced.all():
            return self
        counts = self.due, self.growth, self.in_flight, self.expired, self.before, self.last, self.last_in_flight
        due, growth, in_flight, expired, before, last, last_in_flight = (part * paced for part in counts)
        ends, first, doubled = (part.of_paced(paced) for part in self._parts)
        return Account(
            self.subintervals, due, growth, in_flight, expired, before, last, last_in_flight, self.seen, ends, first,
            doubled,
        )  # fmt: skip

    def variance(self) -> Floats:
        """(I,) variance of the outstanding I/O, bounded by the calmer of the window's two parts.

        The queue of a sustained load swings alike in both parts. If the load stopped being sustained at some point, one
        part is close to a straight line; without the bound, that break would count as a swing and raise the bound.
        """
        variances = self.ends.variance()
        if self.first.subintervals < FEWEST_OF_PART:
            return variances
        calmer = np.minimum(self.first.variance(), self.ends.after(self.first).variance())
        return np.minimum(variances, UNEVEN**2 * calmer)


@dataclass(frozen=True, slots=True, eq=False)
class GrowthCheck:
    """Growth against its bound, of rows or of workload instances: (n,) each."""

    due: Ints
    growth: Ints
    bound: Floats  # the most that `growth` may be

    @property
    def unsustained(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.growth > self.bound
        return found

    @property
    def ahead(self) -> NDArray[np.bool_]:
        """(n,) where more was done than fell due: I/O that was outstanding before the window.

        Twice the bound, because the queue may have any length when the window begins, and its tail is long.
        """
        found: NDArray[np.bool_] = -self.growth > 2 * self.bound
        return found


def account(parts: Iterable[Outstanding]) -> Account:
    """The account of consecutive subintervals, at least one: that of `plus`, from one to the next, but all at once. A
    search asks for it in every subinterval."""
    ended = list(parts)
    known = np.stack([part.known for part in ended])  # (N, I), as all that follow
    due, growth, in_flight, backlog, expired = (
        np.stack(column)
        for column in zip(
            *((part.due, part.growth, part.in_flight, part.backlog, part.expired) for part in ended), strict=True
        )
    )
    seen, first_known = np.asarray(known.any(axis=0)), known.argmax(axis=0)[np.newaxis]
    newest = np.maximum.accumulate(np.where(known, np.arange(len(ended))[:, np.newaxis], -1), axis=0)
    of_newest = np.take_along_axis(in_flight, np.maximum(newest, 0), axis=0) * (newest >= 0)
    at_end = np.take_along_axis(in_flight + backlog, np.where(newest < 0, first_known, newest), axis=0) * seen
    before = np.take_along_axis(at_end - growth + expired, first_known, axis=0)[0] * seen
    doubled = 1 << len(ended).bit_length() - 1
    ends, first, twice = (EndSums.of(at_end[:count]) for count in (len(ended), doubled // 2, doubled))
    return Account(
        len(ended), due.sum(axis=0), growth.sum(axis=0), of_newest.sum(axis=0), expired.sum(axis=0), before,
        at_end[-1], of_newest[-1], seen, ends, first, twice,
    )  # fmt: skip


def check_each(account: Account, tolerance: float) -> GrowthCheck:
    """Checks each workload instance alone."""
    bound = allowed(account.due, tolerance, _in_flight(account), account.variance(), len(account.due))
    return GrowthCheck(account.due, account.growth, bound)


def check_together(account: Account, tolerance: float, rows: Ints, size: int, instances: ArrayLike) -> GrowthCheck:
    """Checks `size` rows, sums of workload instances. `rows`: (I,) row of each; `instances`: (size,) in each row.

    The instances' swings count as independent: their variances add. Each instance may have one I/O that is about to be
    submitted.
    """

    def total(values: Ints | Floats) -> Floats:
        found: Floats = np.bincount(rows, weights=values.astype(np.float64), minlength=size).astype(np.float64)
        return found

    due, growth = total(account.due), total(account.growth)
    in_flight, variance = total(_in_flight(account)), total(account.variance())
    bound = np.maximum(allowed(due, tolerance, in_flight, variance, len(account.due)), instances)
    return GrowthCheck(due.astype(np.int64), growth.astype(np.int64), bound)


def why_not_sustained(account: Account, tolerance: float) -> str:
    """Why the load of these instances was not sustained, together or one of them alone; "" if it was.

    For control, whatever the tolerance: a load that discards I/Os, since they waited for too long, is not sustained.
    """
    count = len(account.due)
    if not count:
        return ""
    if expired := int(account.expired.sum()):
        return f"{expired:,} of {account.due.sum():,} due I/Os waited for longer than drop_after, and were discarded"
    each = check_each(account, tolerance)
    (unsustained,) = np.nonzero(each.unsustained)
    if len(unsustained):
        worst = unsustained[np.argmax(each.growth[unsustained] / np.maximum(each.due[unsustained], 1))]
        others = f" of {count:,} workload instances; of the worst" if count > 1 else ""
        grew = f"grew by {each.growth[worst]:,} of {each.due[worst]:,} due"
        return f"{len(unsustained):,}{others} outstanding I/O {grew}" if others else f"outstanding I/O {grew}"
    together = check_together(account, tolerance, np.zeros(count, np.int64), 1, count)
    if together.unsustained[0]:
        return f"outstanding I/O grew by {together.growth[0]:,} of {together.due[0]:,} due"
    return ""


def allowed(due: ArrayLike, tolerance: float, in_flight: ArrayLike, variance: ArrayLike, checked: int) -> Floats:
    """The largest growth of the outstanding I/O that is allowed while `due` I/Os fall due: the share `tolerance` of it,
    or what chance may cause, whichever is more. `checked`: number of instances, because the largest growth by chance is
    larger among many.

    Two effects count as chance. First, the number in flight at one instant has a Poisson distribution of mean
    `in_flight`, so the difference between two instants has a Skellam distribution; Chernoff's bound of its tail holds
    for small means, too. Growth that is itself in flight raises the mean, but the bound only with its square root: with
    2,000 in flight, 250 may be chance, and 3,000 is not. Second, a queue near saturation swings by more. Its length has
    an exponential tail, with the `variance` of the whole window; at most a share MOST_SWING of the due I/O is allowed.
    """
    unlikely = np.log(max(checked, 1) / FALSE_ALARM)
    due, mean = np.asarray(due, np.float64), np.asarray(in_flight, np.float64)
    swing = unlikely * np.sqrt(np.maximum(np.asarray(variance, np.float64) - mean, 0.0))
    chance = np.maximum(_skellam(mean, unlikely), np.minimum(swing, MOST_SWING * due))
    found: Floats = np.maximum(tolerance * due, chance)
    return found


def _in_flight(account: Account) -> Floats:
    """(I,) mean number in flight at the ends, the sum raised by one: none seen does not mean that there are none."""
    found: Floats = (account.in_flight + (account.due > 0)) / max(account.subintervals, 1)
    return found


def _skellam(mean: Floats, unlikely: float) -> Floats:
    """The bound that the difference of two Poisson numbers of one mean exceeds with a probability of at most
    exp(-unlikely).

    Chernoff: P(X >= b) <= exp(-2 mean (u asinh u - sqrt(1 + u^2) + 1)) with u = b / (2 mean); solved for b by Newton's
    method from Bernstein's bound, which lies above; the function is convex, so no step goes too far.
    """
    twice = 2 * np.maximum(mean, 1e-9)
    wanted = unlikely / twice
    u = 2 / 3 * wanted + np.sqrt(2 * wanted)
    for _ in range(12):
        slope = np.arcsinh(u)
        step = (u * slope - np.sqrt(1 + u * u) + 1 - wanted) / slope
        u = u - step
        if (np.abs(step) <= 1e-10 * u).all():  # the next one would be of its square
            break
    found: Floats = np.where(mean > 0, u * twice, 0.0)
    return found


def rows_behind(layout: MergeLayout, account: Account, tolerance: float) -> dict[int, str]:
    """The rows whose load was not sustained, and why: that of an instance in them, or of their sum, was not.

    An instance, or a row, whose load was not sustained makes every row that contains it not sustained.
    """
    rows_of = layout.class_rows[layout.class_of]  # (I, T)
    each = check_each(account, tolerance)
    words_of = _rows_of_instances(
        layout, rows_of, each, each.unsustained, "outstanding I/O of {} grew by {:,} of {:,} due"
    )
    for kind in range(rows_of.shape[1]):
        together = check_together(account, tolerance, rows_of[:, kind], len(layout.rollups.rows), layout.instance_count)
        for row in np.flatnonzero(together.unsustained).tolist():
            if row in words_of:
                continue
            why = f"outstanding I/O grew by {together.growth[row]:,} of {together.due[row]:,} due"
            words_of[row] = why
            for column in rows_of[rows_of[:, kind] == row].T:
                if (column == column[0]).all():
                    words_of.setdefault(int(column[0]), f"{layout.rollups.rows[row]}: {why}")
    return words_of


def rows_ahead(layout: MergeLayout, account: Account, tolerance: float) -> dict[int, str]:
    """The rows in which an instance did more than fell due, and which one: I/O that was outstanding before."""
    rows_of = layout.class_rows[layout.class_of]  # (I, T)
    each = check_each(account, tolerance)
    return _rows_of_instances(layout, rows_of, each, each.ahead, "{} did {:,} more than the {:,} that fell due")


def rows_of_earlier(layout: MergeLayout, account: Account, completed: Ints) -> dict[int, str]:
    """The rows of whose `completed` I/Os, (R,), more than EARLIER fell due before, than the load itself leaves
    outstanding.

    That is the mean of the later ends, of the second part of the window. The length of a queue has an exponential tail:
    it is longer than t times the mean of n others with the probability (1 + t / n) ** -n.
    """
    later = account.ends.after(account.first)
    if later.subintervals < FEWEST_OF_PART:
        return {}
    rows_of = layout.class_rows[layout.class_of]  # (I, T)
    before, usual = np.zeros(len(completed)), np.zeros(len(completed))
    for rows in rows_of.T:
        before += np.bincount(rows, account.before, len(completed))
        usual += np.bincount(rows, later.total / later.subintervals, len(completed))
    times = before / np.maximum(usual, 1.0)
    longer = (1 + times / later.subintervals) ** -later.subintervals < EARLIER_BY_CHANCE
    (earlier,) = np.nonzero(longer & (before - usual > EARLIER * completed))
    return {
        row: f"{before[row]:,.0f} of {completed[row]:,} had fallen due before it, {usual[row]:,.0f} are usual"
        for row in earlier.tolist()
    }


def rows_surged(layout: MergeLayout, outstanding: Outstanding) -> NDArray[np.bool_]:
    """(R,) the rows with an instance whose load is clearly not sustained in this subinterval alone."""
    found = np.zeros(len(layout.rollups.rows), bool)
    found[layout.class_rows[layout.class_of[outstanding.surged()]].reshape(-1)] = True
    return found


def _rows_of_instances(
    layout: MergeLayout, rows_of: Ints, each: GrowthCheck, those: NDArray[np.bool_], words: str
) -> dict[int, str]:
    """The rows that hold any of `those` instances, naming the one that is off by the largest share.

    `words` take its name, the change of the outstanding I/O, and the due I/O.
    """
    (places,) = np.nonzero(those)
    if not len(places):
        return {}
    off = np.abs(each.growth)
    places = places[np.argsort(off[places] / np.maximum(each.due[places], 1), kind="stable")]
    ids = {(one.host, one.number): one.id for one in layout.rollups.instances}
    names = [ids[host, number] for host in layout.hosts for number in layout.numbers[host]]
    words_of = {}
    for rows in rows_of[places].T:
        counts = np.bincount(rows)
        for row, place in dict(zip(rows.tolist(), places.tolist(), strict=True)).items():  # the last stays: the worst
            more = f", and by {counts[row] - 1:,} more" if counts[row] > 1 else ""
            words_of[row] = words.format(names[place], int(off[place]), int(each.due[place])) + more
    return words_of
