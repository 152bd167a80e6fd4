"""When a host is probed and when it is lost: laws over any lease and any host."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.hosts.heartbeat import BEATS_LOST, LONGEST_NS, Pulse

S = 10**9
leases = st.integers(S, 100 * S)


@dataclass
class Talk:
    """A controller that probes as the pulse says, and a host that answers each beat when `answers` says (None: never).

    The host's lease runs from the newest stamp of its own that a beat names.
    """

    lease_ns: int
    answers: Callable[[int], int | None]  # sent -> answered
    others: list[int] = field(default_factory=list)  # beats that the step sends by itself
    probes: list[int] = field(default_factory=list)
    lost_ns: int | None = None
    least_left_ns: int = 1 << 62  # of the lease, ever

    def run(self, until_ns: int) -> "Talk":
        pulse = Pulse(0)
        pulse.set_lease(self.lease_ns)
        coming: list[tuple[int, int]] = [(at, -1) for at in self.others]  # when, and which beat is answered
        heapq.heapify(coming)
        now = number = heard = 0
        lease_until = self.lease_ns

        def beat() -> None:
            nonlocal number, lease_until
            number += 1
            pulse.beat(number, now)
            answered = self.answers(now)
            if answered is not None:
                self.least_left_ns = min(self.least_left_ns, lease_until - now)
                lease_until = max(lease_until, heard + self.lease_ns)
                heapq.heappush(coming, (answered, number))

        while now < until_ns:
            lost = pulse.lost_ns()
            if lost is not None and now >= lost:
                self.lost_ns = now
                return self
            if now >= pulse.due_ns(now):
                self.probes.append(now)
                beat()
                lost = pulse.lost_ns()
            wakes = max(min(pulse.due_ns(now), lost if lost is not None else 1 << 62), now + 1)
            while coming and coming[0][0] <= wakes:
                now, which = heapq.heappop(coming)
                if which < 0:
                    beat()
                else:
                    pulse.answered(which, now)
                    pulse.received(now)
                    heard = now
            now = max(now, wakes)
        return self


@given(leases, st.data())
def test_a_host_that_answers_within_the_patience_is_never_lost(lease: int, data: st.DataObject) -> None:
    patience = Pulse(0)
    patience.set_lease(lease)
    trips = data.draw(st.lists(st.integers(0, patience.patience_ns - 1), min_size=1, max_size=20))
    draws = cycle(trips)
    assert Talk(lease, lambda sent: sent + next(draws)).run(10 * lease).lost_ns is None


@given(leases, st.floats(0, 8))
def test_a_host_that_falls_silent_is_lost_after_half_its_lease_and_little_more(lease: int, leases_until: float) -> None:
    silent = round(leases_until * lease)
    talk = Talk(lease, lambda sent: sent + 1000 if sent < silent else None).run(20 * lease)
    patience = max(lease // 2, 3 * S)
    assert talk.lost_ns is not None
    assert patience <= talk.lost_ns - silent <= patience + min(lease // 4, LONGEST_NS) + 1001
    assert len([probe for probe in talk.probes if probe >= silent]) >= BEATS_LOST


@given(leases, st.integers(0, 100_000_000))
def test_the_lease_of_an_answering_host_never_nears_its_end(lease: int, trip: int) -> None:
    talk = Talk(lease, lambda sent: sent + trip).run(10 * lease)
    assert talk.least_left_ns >= lease // 2 - 2 * trip


def test_a_stalled_controller_probes_again_before_a_host_is_late() -> None:
    pulse = Pulse(0)
    pulse.beat(1, 0)
    now = 100 * S  # nothing was read meanwhile
    assert pulse.lost_ns() is None and pulse.due_ns(now) <= now
    pulse.beat(2, now)
    assert pulse.lost_ns() is None
    pulse.received(now + 1)
    assert pulse.lost_ns() is None


@pytest.mark.parametrize(("length_s", "most_probes"), [(1.0, 0), (2.4, 0), (5.0, 21), (30.0, 44)])
def test_answered_continues_replace_probes(length_s: float, most_probes: int) -> None:
    others = [round(k * length_s * S) for k in range(1, int(110 / length_s) + 1)]
    talk = Talk(10 * S, lambda sent: sent + 1000, others).run(110 * S)
    assert len([at for at in talk.probes if at > 10 * S]) <= most_probes
