"""The subinterval cycle on simulated time: who is merged, who is late, and how a step ends, whatever a host does."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ivypy.master.connectors.gathered import Gathered
from ivypy.master.connectors.gathering import GatheredSubinterval
from ivypy.master.control.control_state import ControlState
from ivypy.master.control.decision import Alert, Measured
from ivypy.master.control.fixed import Fixed
from ivypy.master.hosts.controller_lag import ControllerLag
from ivypy.master.hosts.driver import Inbox
from ivypy.master.hosts.pipe_driver import PipeDriver
from ivypy.master.rollup.instances import Rollups, WorkloadInstance
from ivypy.master.rollup.merge import Merger
from ivypy.master.rollup.window import Window
from ivypy.master.run.setup.fleet import Fleet, HaltCause
from ivypy.master.run.setup.host_settings import HostSettings
from ivypy.master.run.step.live_step import LiveStep
from ivypy.master.run.step.step import StepCycle
from ivypy.master.run.step.step_context import StepContext
from ivypy.master.run.step.step_types import ClosedSubinterval, SoFar, StepOutcome, SummedMeasurement
from ivypy.master.verdicts import Reason
from ivypy.protocol import messages as m
from ivypy.protocol.counters import Count
from ivypy.protocol.parameters import Parameters
from ivypy.protocol.payload import CpuTaken, EngineOptions, WorkloadToCreate
from ivypy.protocol.states import State
from tests.support.simulated.loop import simulate
from tests.support.simulated.slave import Faults, SimulatedSlave


@dataclass
class Notebook:
    """Keeps what a step yields."""

    kept: list[ClosedSubinterval] = field(default_factory=list)
    measurements: list[SummedMeasurement] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    apart: list[tuple[str, int]] = field(default_factory=list)
    joined: list[tuple[str, m.Result]] = field(default_factory=list)
    events: list[tuple[str, str, str]] = field(default_factory=list)
    gathers: list[GatheredSubinterval] = field(default_factory=list)
    late_gathers: list[Gathered] = field(default_factory=list)
    so_fars: dict[int, StepOutcome] = field(default_factory=dict)  # by the newest subinterval

    def record_subinterval(self, closed: ClosedSubinterval) -> None:
        self.kept.append(closed)

    def measured(self, measurement: SummedMeasurement) -> None:
        self.measurements.append(measurement)

    @property
    def wants_so_far(self) -> bool:
        return True

    def so_far(self, take: Callable[[], SoFar]) -> Coroutine[Any, Any, None]:
        return self._keep(take(), self.kept[-1].number)

    async def _keep(self, so_far: SoFar, number: int) -> None:
        self.so_fars[number] = so_far.outcome([await self.stored(one) for one in so_far.unsummed])

    async def stored(self, measured: Measured) -> Window:
        layout = self.kept[measured.first].interval.layout
        window, merger = Window(layout), Merger(layout.rollups, layout.numbers)
        for closed in self.kept[measured.first : measured.last + 1]:
            merger.open(closed.number)
            late = [(host, result) for host, result in self.joined if result.subinterval == closed.number]
            for host, result in [*closed.interval.results.items(), *late]:
                merger.add(host, result)
            (window.set_aside if closed.number in measured.set_aside else window.add)(merger.close())
        return window

    @property
    def stored_late(self) -> int:
        return len(self.joined)

    def join(self, host: str, result: m.Result) -> None:
        self.joined.append((host, result))

    def late(self, host: str, result: m.Result) -> None:
        self.apart.append((host, result.subinterval))

    def gathered(self, found: GatheredSubinterval) -> None:
        self.gathers.append(found)

    def late_gather(self, found: Gathered) -> None:
        self.late_gathers.append(found)

    def event(self, host: str, kind: str, text: str) -> None:
        self.events.append((host, kind, text))

    @property
    def phases(self) -> list[str]:
        return [str(closed.phase) for closed in self.kept]

    def hosts(self) -> list[set[str]]:
        return [set(closed.interval.hosts) for closed in self.kept]


@dataclass(frozen=True)
class Outcome:
    ended: StepOutcome
    book: Notebook
    slaves: Mapping[str, SimulatedSlave]
    seconds: float
    lost: frozenset[str]
    idle: frozenset[str]  # they may take part in the next step

    @property
    def measured(self) -> list[Measured]:
        return [one.measured for one in self.ended.measurements]

    @property
    def is_halted(self) -> bool:
        return any(kind == "halt" for _, kind, _ in self.book.events)

    def reasons(self) -> list[Reason]:
        own = [finding for measured in self.measured for finding in measured.findings]
        return [finding.reason for finding in (*(outside.finding for outside in self.ended.findings), *own)]


PARAMETERS = Parameters(iops=1000.0, maxtags=4)


async def a_step(
    slaves: list[SimulatedSlave], control: ControlState, length_s: float, cooldown: int, interrupt_after: float | None
) -> Outcome:
    loop = asyncio.get_running_loop()
    now_ns = lambda: int(loop.time() * 1e9)  # noqa: E731
    inbox: Inbox = asyncio.Queue()
    drivers = [PipeDriver(slave.name, slave.pipe, inbox, now_ns) for slave in slaves]
    fleet = Fleet(drivers, inbox, ControllerLag(now_ns, lambda: 0))  # its real CPU time means nothing in simulated time
    async with AsyncExitStack() as stack:
        tasks = []
        for slave, driver in zip(slaves, drivers, strict=True):
            tasks += [asyncio.create_task(t) for t in (slave.serve(), driver.drive(), driver.probe())]
            for task in tasks:
                stack.callback(task.cancel)
        for driver in drivers:
            await driver.wait_hello()
            await driver.request(m.Prepare, engine=EngineOptions("null", 1), lease_ns=10**10)
            created = WorkloadToCreate(0, f"{driver.name}+/a+w", "/a", None, PARAMETERS, 4, 4096)
            await driver.request(m.CreateWorkloads, workloads=(created,))
        await asyncio.sleep(2.0)  # a few probes
        instances = [WorkloadInstance(0, slave.name, "/a", "w") for slave in slaves]
        book = Notebook()
        parameters = {(slave.name, 0): PARAMETERS for slave in slaves}
        live = LiveStep(HostSettings(fleet, parameters), control, round(length_s * 1e9))
        context = StepContext(fleet, Rollups.build(instances, []), book, live.progress, length_s, cooldown)
        sequence = StepCycle(context, live, book.alerts.append)
        if interrupt_after is not None:
            loop.call_later(interrupt_after, fleet.interrupt, HaltCause.USER)
        began = loop.time()
        await sequence.run()
        ended = await sequence.outcome()
        lost = frozenset(driver.name for driver in drivers if driver.lost is not None)
        idle = frozenset(driver.name for driver in fleet.alive if driver.state is State.IDLE)
        return Outcome(ended, book, {slave.name: slave for slave in slaves}, loop.time() - began, lost, idle)


def step(
    *slaves: SimulatedSlave,
    control: ControlState | None = None,
    length_s: float = 5.0,
    cooldown: int = 0,
    interrupt_after: float | None = None,
) -> Outcome:
    return simulate(a_step(list(slaves), control or Fixed(1, 4), length_s, cooldown, interrupt_after))


def hosts(count: int, **faulty: Faults) -> list[SimulatedSlave]:
    """Hosts whose clocks agree on nothing."""
    return [
        SimulatedSlave(
            f"h{i}",
            clock_offset_s=1000.0 * i,
            drift_ppm=20.0 * i,
            delay_s=0.0002 * (i + 1),
            faults=faulty.get(f"h{i}", Faults()),
        )
        for i in range(count)
    ]


def test_a_step_is_warmup_measurement_and_a_tail() -> None:
    outcome = step(*hosts(3))
    assert outcome.book.phases == ["warmup", "run", "run", "run", "run", "tail"]
    assert outcome.book.hosts() == [{"h0", "h1", "h2"}] * 6
    assert [(m.first, m.last) for m in outcome.measured] == [(1, 4)]
    assert outcome.ended.findings == () and not outcome.is_halted
    assert outcome.idle == {"h0", "h1", "h2"}
    for closed in outcome.book.kept:
        assert closed.interval.merged.counts[0, Count.COMPLETED] == pytest.approx(3 * 5000, abs=3)


def test_what_was_measured_so_far_is_what_a_halt_would_leave() -> None:
    """In each subinterval: the controller may be killed in the next moment."""
    so_fars = step(*hosts(2), control=Fixed(2, 5), cooldown=1).book.so_fars
    assert [*so_fars] == [*range(8)]
    for k, so_far in so_fars.items():
        (one,) = so_far.measurements
        halted = step(*hosts(2), control=Fixed(2, 5), interrupt_after=5.0 * (k + 1) + 1.0)
        (expected,) = halted.ended.measurements
        assert one.measured == expected.measured
        if isinstance(one, SummedMeasurement):
            assert isinstance(expected, SummedMeasurement)
            assert (one.measurement.merged.counts == expected.measurement.merged.counts).all()
            assert one.start_ns == expected.start_ns and one.end_ns == pytest.approx(expected.end_ns, abs=10**6)
        (finding,) = [one.finding for one in so_far.findings]
        assert str(finding) == f"controller_ended[{'partial' if k < 6 else 'note'}] (after subinterval {k})"


def test_cooldown_runs_at_zero_iops_after_the_tail() -> None:
    outcome = step(*hosts(2), cooldown=2)
    assert outcome.book.phases == ["warmup", "run", "run", "run", "run", "tail", "cooldown", "cooldown"]
    completed = [int(closed.interval.merged.counts[0, Count.COMPLETED]) for closed in outcome.book.kept]
    assert completed[5] == pytest.approx(10_000, abs=2) and completed[6:] == [0, 0]


@pytest.mark.slow
def test_hosts_whose_clocks_drift_stay_in_step() -> None:
    """40 ppm are 36 ms after a quarter of an hour; the boundaries follow the clocks, within their bounds."""
    outcome = step(*hosts(3), control=Fixed(1, 178), length_s=5.0)
    last = outcome.book.kept[-1].timing
    for name, host in last.hosts.items():
        assert abs(host.boundary_skew_ns) < 1_000_000, name
    assert outcome.ended.findings == ()


EVERYBODY = {"h0", "h1", "h2"}


def late_or_lost(outcome: Outcome) -> list[tuple[str, str]]:
    return [(host, kind) for host, kind, _ in outcome.book.events if kind in ("late", "back", "lost", "ended")]


def test_a_late_host_is_back_with_its_first_result_that_is_in_time() -> None:
    """The measurement goes on, and what came late is in it when the step has ended."""
    outcome = step(*hosts(3, h1=Faults(late={2: 8.0})))
    assert outcome.book.hosts() == [EVERYBODY] * 2 + [{"h0", "h2"}] * 2 + [EVERYBODY] * 2
    assert outcome.book.apart == [] and [(host, one.subinterval) for host, one in outcome.book.joined] == [
        ("h1", 2), ("h1", 3)
    ]  # fmt: skip
    assert [(m.first, m.last, m.findings) for m in outcome.measured] == [(1, 4, ())]
    (told, told_again), (measurement,) = outcome.book.measurements, outcome.ended.measurements
    assert isinstance(measurement, SummedMeasurement) and told_again is measurement
    assert told.measurement.length_ns.tolist() == pytest.approx([20e9, 10e9, 20e9], rel=1e-3)
    assert measurement.measurement.length_ns.tolist() == pytest.approx([20e9] * 3, rel=1e-3)
    assert measurement.measurement.merged.counts[0, Count.COMPLETED] == pytest.approx(3 * 20_000, abs=3)
    (found,) = outcome.ended.findings
    assert (found.finding.reason, found.host, found.since, found.until) == (Reason.HOST_LATE, "h1", 2, 3)
    assert late_or_lost(outcome) == [("h1", "late"), ("h1", "back")]
    assert outcome.idle == EVERYBODY


@pytest.mark.slow
@pytest.mark.parametrize("length_s", [0.25, 1.0, 5.0])
@pytest.mark.parametrize("hiccup_s", [0.1, 0.5, 2.2, 4.9])
@pytest.mark.parametrize("kind", ["late", "stall", "frozen"])
@pytest.mark.parametrize("count", [1, 3])
def test_a_hiccup_costs_nothing_that_was_measured(length_s: float, hiccup_s: float, kind: str, count: int) -> None:
    """Of a link (all results come at once), or of the host itself (one covers several), alone or beside others."""
    subintervals = round(max(4.0, 10.0 / length_s))
    fault = Faults()
    getattr(fault, kind)[2] = hiccup_s
    outcome = step(*hosts(count, **{f"h{count // 2}": fault}), control=Fixed(1, subintervals), length_s=length_s)
    (summed,) = outcome.book.measurements
    assert late_or_lost(outcome) == [] and set(outcome.reasons()) <= {Reason.CLOCK_UNCERTAIN}
    assert summed.measured.last == subintervals and summed.measured.findings == ()
    asked = 1000.0 * length_s * subintervals * count
    assert summed.measurement.merged.counts[0, Count.COMPLETED] == pytest.approx(asked, rel=1e-3)
    assert summed.measurement.length_ns.tolist() == pytest.approx([length_s * subintervals * 1e9] * count, rel=1e-3)
    assert outcome.book.phases == ["warmup"] + ["run"] * subintervals + ["tail"] * (
        len(outcome.book.kept) - 1 - subintervals
    )


def test_a_host_that_claims_to_cover_what_it_does_not_holds_up_nobody() -> None:
    """Its results are no longer than they should be, and that is what counts."""
    outcome = step(*hosts(2, h1=Faults(claims_overruns=3)))
    assert outcome.book.phases == ["warmup", "run", "run", "run", "run", "tail"]
    assert [(one.first, one.last) for one in outcome.measured] == [(1, 4)]


def test_a_late_decision_ends_the_step_with_a_subinterval_that_has_not_begun() -> None:
    """The last one that is measured is decided on 3 s late: what runs until the stop arrives is the tail."""
    outcome = step(*hosts(2, h1=Faults(late={4: 3.5})), length_s=1.0, cooldown=1)
    assert outcome.book.phases == ["warmup", "run", "run", "run", "run", "tail", "tail", "tail", "tail", "cooldown"]
    assert outcome.book.hosts() == [{"h0", "h1"}] * 10 and outcome.ended.findings == ()
    assert outcome.idle == {"h0", "h1"}


@pytest.mark.parametrize("delay_s", [0.0001, 0.13, 0.2, 0.5, 1.0])
def test_a_host_takes_part_however_far_it_is(delay_s: float) -> None:
    far = SimulatedSlave("far", delay_s=delay_s)
    outcome = step(*hosts(2), far, length_s=5.0)
    assert set(map(frozenset, outcome.book.hosts())) == {frozenset({"h0", "h1", "far"})}
    uncertain = [Reason.CLOCK_UNCERTAIN] if delay_s > 0.1 else []  # by more than 1 % of a subinterval
    assert not outcome.lost and outcome.reasons() == uncertain


@pytest.mark.parametrize(
    "faults, says",
    [
        (Faults(die_at=2), "it closed the connection"),
        (Faults(half_line_at=2), "the stream ended inside a line of 500 bytes"),
        (Faults(garbage_at=2), "protocol error: a line is not JSON"),
        (Faults(silent_from=2), "it did not answer for 5 s"),
    ],
)
def test_a_lost_host_does_not_end_the_run(faults: Faults, says: str) -> None:
    outcome = step(*hosts(3, h1=faults))
    assert outcome.book.hosts() == [{"h0", "h1", "h2"}] * 2 + [{"h0", "h2"}] * 5
    lost = [text for host, kind, text in outcome.book.events if (host, kind) == ("h1", "lost")]
    assert (lost and lost[0].startswith(says)) or any(says in text for text in lost)
    assert {Reason.HOST_LOST} <= set(outcome.reasons()) or Reason.HOST_LATE in outcome.reasons()


@pytest.mark.slow
@given(st.integers(0, 6), st.floats(0.1, 4.5), st.sampled_from(["late", "stall", "frozen"]), st.integers(0, 9))
@example(4, 4.0, "late", 6)  # it has delivered 5 while 4 of another is awaited
@example(2, 4.4, "frozen", 5)
@settings(max_examples=25)
def test_what_a_host_delivered_before_it_was_lost_is_in(at: int, hiccup_s: float, kind: str, die_at: int) -> None:
    """Whatever of another host was awaited meanwhile; and the loss counts from what it did not deliver."""
    fault = Faults()
    getattr(fault, kind)[at] = hiccup_s
    outcome = step(*hosts(3, h0=fault, h1=Faults(die_at=die_at)), control=Fixed(1, 12), length_s=1.0)
    assert [k for k, names in enumerate(outcome.book.hosts()) if "h1" in names] == [*range(die_at)]
    (lost,) = [one for one in outcome.ended.findings if one.finding.reason is Reason.HOST_LOST]
    assert (lost.host, lost.since) == ("h1", die_at) and not outcome.book.apart


def test_what_the_last_host_delivered_before_it_was_lost_is_in() -> None:
    """The other one, which was awaited, is lost after it."""
    outcome = step(*hosts(2, h0=Faults(silent_from=4), h1=Faults(die_at=7)), control=Fixed(1, 12), length_s=1.0)
    assert outcome.lost == {"h0", "h1"} and outcome.book.hosts() == [{"h0", "h1"}] * 4 + [{"h1"}] * 3
    assert [(one.first, one.last) for one in outcome.measured] == [(4, 6)]


ENDS = {m.StopReason.DIED: "a workload thread died", m.StopReason.LEASE: "its lease ran out"}


@pytest.mark.slow
@pytest.mark.parametrize("reason", ENDS)
@pytest.mark.parametrize("caught_after_s", [0.0, 3.0, 6.0, 9.9])
@pytest.mark.parametrize("at", range(7))
def test_a_host_that_ends_the_step_by_itself_is_lost_whenever_it_reports_it(
    at: int, caught_after_s: float, reason: m.StopReason
) -> None:
    """Its cut result comes at once, `stopped` when what was in flight is caught: after barrier 1, or after the step."""
    outcome = step(*hosts(3, h1=Faults(ends_at=(at, reason), catch_s=caught_after_s)), cooldown=1)
    everybody, without = {"h0", "h1", "h2"}, {"h0", "h2"}
    count = 7 if at in (0, 5, 6) else 6 + at  # a change in the measurement begins it again
    asked = at == 6  # the step's last: it was told to stop there, and cut it a little early
    assert outcome.book.hosts() == [everybody] * at + [everybody if asked else without] * (count - at)
    (loss,) = [one for one in outcome.ended.findings if one.finding.reason is Reason.HOST_LOST]
    assert (loss.host, loss.finding.detail, loss.since) == ("h1", f"h1: {ENDS[reason]}", at + asked)
    (measured,) = outcome.measured
    assert (loss.since > measured.last) == (at > 4), "what was measured before it is not of less than was asked for"
    assert outcome.seconds < 5 * count + 5 + 10.5


def test_a_host_that_reports_its_end_and_continues_is_stopped_with_the_others() -> None:
    outcome = step(*hosts(2, h1=Faults(says_last_at=2)))
    assert outcome.book.hosts() == [{"h0", "h1"}] * 2 + [{"h0"}] * 5
    assert outcome.idle == {"h0", "h1"}
    (loss,) = [one for one in outcome.ended.findings if one.finding.reason is Reason.HOST_LOST]
    assert loss.finding.detail == "h1: it ended the step by itself"


@pytest.mark.parametrize("share", [0.8, 0.99, 1.01, 1.25])
def test_a_host_that_reports_another_length_than_was_placed_is_lost(share: float) -> None:
    """Its rates would be of that length."""
    outcome = step(*hosts(2, h1=Faults(length=share)))
    assert outcome.book.hosts() == [{"h0"}] * 6 and outcome.lost == {"h1"}
    (loss,) = [one for one in outcome.ended.findings if one.finding.reason is Reason.HOST_LOST]
    assert loss.finding.detail.startswith("h1: protocol error: the result of subinterval 0 is ")


def test_when_no_host_is_left_the_step_ends() -> None:
    outcome = step(*hosts(2, h0=Faults(die_at=2), h1=Faults(die_at=3)))
    assert outcome.book.hosts() == [{"h0", "h1"}] * 2 + [{"h1"}]
    (cut,) = outcome.measured
    assert [str(finding) for finding in cut.findings if finding.reason is Reason.SHORTENED] == [
        "shortened[partial] (every host was late or lost, 1 of 4 subintervals)"
    ]
    assert outcome.seconds < 25


def heard(slave: SimulatedSlave, kind: type[m.Command]) -> bool:
    return any(isinstance(command, kind) for command in slave.received)


def test_hosts_that_are_late_all_at_once_are_halted_before_the_step_ends() -> None:
    outcome = step(*hosts(2, h0=Faults(late={2: 9.0}), h1=Faults(late={2: 9.0})), length_s=1.0)
    assert outcome.book.hosts() == [{"h0", "h1"}] * 2
    assert set(outcome.reasons()) == {Reason.HOST_LATE, Reason.SHORTENED} and not outcome.is_halted
    assert outcome.idle == {"h0", "h1"}, "no load is left behind"
    assert {host for host, _ in outcome.book.apart} == {"h0", "h1"}
    assert ("h0", "lost") not in late_or_lost(outcome)
    assert 9 < outcome.seconds < 15, "half a lease"


def test_a_late_host_that_is_left_alone_goes_on() -> None:
    outcome = step(*hosts(2, h0=Faults(late={2: 7.0}), h1=Faults(die_at=12)), control=Fixed(1, 16), length_s=1.0)
    assert outcome.book.hosts()[:3] == [{"h0", "h1"}] * 2 + [{"h1"}]
    assert outcome.book.hosts()[11:] == [{"h0", "h1"}] + [{"h0"}] * (len(outcome.book.kept) - 12)
    assert outcome.measured[0].last == 27, "a host that is lost begins the measurement again"
    assert outcome.idle == {"h0"}


@pytest.mark.parametrize("fault", [Faults(busy_go_s=[2.0]), Faults(ready_late_s=2.0)], ids=["late go", "late ready"])
def test_a_step_with_a_host_that_is_not_ready_in_time_starts_anew(fault: Faults) -> None:
    """With a lead that the host's own time gives; nothing of the first attempt is in the step."""
    outcome = step(*hosts(2, h1=fault))
    assert outcome.book.hosts() == [{"h0", "h1"}] * 6 and outcome.ended.findings == ()
    started = [text for _, kind, text in outcome.book.events if kind == "start"]
    assert started == ["not ready at the start: h1; the step starts anew, once"]
    assert [closed.interval.subinterval for closed in outcome.book.kept] == [0, 1, 2, 3, 4, 5]
    assert not outcome.book.apart
    first, second = (one.start_ns for one in outcome.slaves["h1"].received if isinstance(one, m.Go))
    assert second - first > 4 * 10**9  # at least twice what it took


def test_a_host_that_is_not_ready_twice_is_late() -> None:
    outcome = step(*hosts(2, h1=Faults(busy_go_s=[1.0, 9.0])))
    assert outcome.book.hosts() == [{"h0"}] * 6
    assert {str(finding.host) for finding in outcome.ended.findings} == {"h1"}
    assert outcome.idle == {"h0", "h1"}


def test_a_host_that_never_answers_go_delays_the_others_once() -> None:
    outcome = step(*hosts(2, h1=Faults(mute={"go"})))
    assert outcome.book.hosts() == [{"h0"}] * 6
    assert Reason.HOST_LATE in outcome.reasons()


def test_a_host_that_missed_the_stop_does_not_delay_the_step() -> None:
    outcome = step(*hosts(2, h1=Faults(mute={"cooldown"})), cooldown=1)
    assert outcome.book.phases == ["warmup", "run", "run", "run", "run", "tail", "cooldown"]
    assert outcome.idle == {"h0", "h1"} and outcome.ended.findings == ()


def test_a_host_that_does_not_stop_is_given_up_and_so_is_its_lease() -> None:
    outcome = step(*hosts(2, h1=Faults(mute={"stop", "halt"})))
    assert outcome.idle == {"h0"}
    lost = [(host, text) for host, kind, text in outcome.book.events if kind == "lost"]
    assert lost == [("h1", "it has not stopped; later steps are without it")]
    assert outcome.lost == {"h1"} and outcome.seconds < 50


def test_an_interrupt_while_hosts_catch_what_is_in_flight_is_a_halt() -> None:
    outcome = step(*hosts(2, h1=Faults(catch_s=9.0)), interrupt_after=33.0)
    assert outcome.is_halted and outcome.seconds < 37
    assert heard(outcome.slaves["h1"], m.Halt)


def test_a_host_that_is_not_ready_takes_no_part() -> None:
    outcome = step(*hosts(3, h2=Faults(refuse={"go": "a thread did not start"})))
    assert outcome.book.hosts() == [{"h0", "h1"}] * 6
    assert any("a thread did not start" in outside.finding.detail for outside in outcome.ended.findings)


def test_an_interrupt_halts_all_and_keeps_the_cut_subinterval() -> None:
    outcome = step(*hosts(3), length_s=60.0, interrupt_after=100.0)
    assert outcome.is_halted and Reason.INTERRUPTED in outcome.reasons()
    assert outcome.book.hosts() == [{"h0", "h1", "h2"}] * 2
    cut = outcome.book.kept[-1].interval
    assert cut.last and cut.merged.presence.length_s[0] == pytest.approx(100.0 - 60.0 - 0.303, abs=0.01)
    assert outcome.seconds == pytest.approx(100.0, abs=0.1)
    assert all(heard(slave, m.Halt) for slave in outcome.slaves.values())


def test_an_interrupt_leaves_the_complete_subintervals_as_the_measurement() -> None:
    outcome = step(*hosts(3), control=Fixed(1, 60), interrupt_after=23.0)
    assert outcome.book.phases == ["warmup", "run", "run", "run", "tail"], "the cut one is not measured"
    assert [(cut.first, cut.last) for cut in outcome.measured] == [(1, 3)]
    assert outcome.book.measurements == list(outcome.ended.measurements)
    assert outcome.reasons() == [Reason.SHORTENED] and outcome.is_halted


STEAL = CpuTaken(steal=10.0, steal_beside=20.0)


def test_a_disturbed_subinterval_is_in_no_measurement() -> None:
    """One host's disturbance is enough; the sum has the figures of the others alone, its account those of all."""
    outcome = step(*hosts(3, h1=Faults(taken={3: STEAL})), control=Fixed(1, 4, most_aside=1))
    assert outcome.book.phases == ["warmup", "run", "run", "disturbed", "run", "run", "tail"]
    assert [(one.first, one.last, one.set_aside) for one in outcome.measured] == [(1, 5, (3,))]
    assert [str(one) for one in outcome.measured[0].findings] == ["set_aside[note] (1 of 5 subintervals: steal)"]
    (summed,) = outcome.book.measurements
    counted = [outcome.book.kept[number].interval.merged.counts[0, Count.COMPLETED] for number in (1, 2, 4, 5)]
    assert summed.measurement.merged.counts[0, Count.COMPLETED] == sum(counted)
    assert summed.measurement.length_ns.tolist() == pytest.approx([20e9] * 3, rel=1e-3)
    assert summed.measurement.subintervals == 4
    assert summed.measurement.account.subintervals == 5


def test_a_disturbed_subinterval_with_errors_counts_so_that_they_are_seen() -> None:
    outcome = step(*hosts(3, h1=Faults(taken={3: STEAL}, errors_at=3)), control=Fixed(1, 4, most_aside=1))
    assert outcome.book.phases == ["warmup", "run", "run", "run", "run", "tail"]
    (summed,) = outcome.book.measurements
    assert summed.measurement.merged.counts[0, Count.ERRORS] > 0 and summed.measurement.faults


def test_a_disturbed_subinterval_counts_where_it_is_kept() -> None:
    outcome = step(*hosts(3, h1=Faults(taken={3: STEAL})), control=Fixed(1, 4))
    assert outcome.book.phases == ["warmup", "run", "run", "run", "run", "tail"]
    assert outcome.reasons() == []


def test_an_interrupt_after_a_disturbed_subinterval_measures_what_counted() -> None:
    outcome = step(*hosts(2, h1=Faults(taken={3: STEAL})), control=Fixed(1, 60, most_aside=9), interrupt_after=23.0)
    assert outcome.book.phases == ["warmup", "run", "run", "disturbed", "tail"]
    (summed,) = outcome.book.measurements
    assert (summed.measurement.first, summed.measurement.last, summed.measurement.subintervals) == (1, 2, 2)
    assert outcome.reasons() == [Reason.SET_ASIDE, Reason.SHORTENED]


@pytest.mark.parametrize("after", [27.0, 32.0, 36.0])
def test_an_interrupt_after_the_measurement_keeps_it_valid(after: float) -> None:
    """In the tail, and in the cooldown."""
    outcome = step(*hosts(2), cooldown=2, interrupt_after=after)
    assert [(one.first, one.last) for one in outcome.measured] == [(1, 4)]
    assert outcome.reasons() == [] and outcome.is_halted


def test_an_interrupt_before_the_start_measures_nothing() -> None:
    outcome = step(*hosts(1), control=Fixed(1, 60), interrupt_after=0.1)
    (cut,) = outcome.measured
    assert (cut.first, cut.last) == (0, -1) and outcome.reasons() == [Reason.INTERRUPTED]


def test_an_interrupt_does_not_wait_for_a_host_that_is_gone() -> None:
    outcome = step(*hosts(3, h1=Faults(silent_from=1)), length_s=60.0, interrupt_after=121.0)
    assert outcome.is_halted and outcome.seconds < 121.0 + 5.0


def test_every_subinterval_but_the_last_two_is_placed_by_continue() -> None:
    outcome = step(*hosts(1))
    places = [c for c in outcome.slaves["h0"].received if isinstance(c, m.Continue)]
    assert [c.subinterval for c in places] == [2, 3, 4, 5]
    stops = [c for c in outcome.slaves["h0"].received if isinstance(c, m.Stop)]
    assert [c.last for c in stops] == [5]


@pytest.mark.slow
def test_thousands_of_subintervals_take_no_time() -> None:
    outcome = step(*hosts(3), control=Fixed(0, 300), length_s=1.0)
    assert len(outcome.book.kept) == 301 and outcome.ended.findings == ()
