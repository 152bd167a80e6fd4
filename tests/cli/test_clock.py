"""`ivypy clock`: fio's method as fio publishes it, what is made of a report, and the measurement itself."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from ivypy.master.cli.clock import HOUR_NS, figures, host_of, page, seconds_of
from ivypy.master.cli.commands import cli
from ivypy.master.errors import PlanError
from ivypy.master.hosts.host_spec import HostSpec, Launcher
from ivypy.protocol import messages as m
from ivypy.slave.host.clock_report import Anchor, FioClock, cycles_per_ms, gone_wrong_ns, rate_hz
from tests.support.slave_client import Client

REPORT = m.ClockReport(
    re=1,
    refusal="",
    clock_source="tsc",
    cores=2,
    turns=10_007,
    backwards=0,
    worst_ticks=0,
    least_step_ticks=100,
    counter_cost_ns=18.4,
    kernel_cost_ns=24.2,
    duration_ns=10 * 10**9,
    rate_hz=2e9,
    raw_rate_hz=2e9 + 1,
    rates_hz=(2e9, 2e9 + 2),
    widest_ticks=120,
    error_ns=-50.0,
    raw_error_ns=25.0,
    kernel_hz=2e9 * (1 + 1.25e-6),
    cpuid_hz=0.0,
    fio_per_ms=(2_000_000, 2_000_002),
    fio_hours_ns=(HOUR_NS, HOUR_NS - 3_600_000),
)
NONE = m.ClockReport(
    1, "this CPU has no cycle counter", "hpet", 2, 0, 0, 0, 0, 0.0, 30.0, 0, 0.0, 0.0, (), 0, 0.0, 0.0, 0.0, 0.0, (), ()
)


@pytest.mark.parametrize(
    ("per_ms", "clock", "hour_ns"),
    [
        (2_600_001, FioClock(22, 1_613_193, 2**43, 3_383_110_926_336), 3_599_999_496_339),
        (2_699_998, FioClock(22, 1_553_447, 2**43, 3_257_814_482_944), None),
    ],
)
def test_fios_published_examples(per_ms: int, clock: FioClock, hour_ns: int | None) -> None:
    assert FioClock.of(per_ms) == clock
    if hour_ns is not None:
        assert clock.ns(per_ms * 1000 * 3600) == hour_ns


def test_fio_drops_the_first_window_and_those_beyond_a_deviation() -> None:
    windows = [(9_999_999_999, 1_280_000), *[(2_560_000, 1_280_000), (2_560_128, 1_280_000)] * 24]
    windows += [(2_560_000, 1_280_000), (2_600_000, 1_280_000)]
    assert cycles_per_ms(windows) == 2_000_048  # of 25 times 2,000,000 and 24 times 2,000,100


def test_rate_and_error_follow_from_anchors() -> None:
    anchors = [Anchor(1000, 0, 10), Anchor(3000, 1000, 10), Anchor(23_000, 11_010, 10)]
    assert rate_hz(anchors[0], anchors[1]) == 2e9
    assert gone_wrong_ns(anchors) == -10


def test_the_page_of_a_good_clock() -> None:
    text = "\n".join(page("h1", REPORT))
    for piece in (
        "h1: the kernel keeps time by tsc",
        "each at least 10,007 turns: never backwards; offsets below 50 ns",
        "0.0010 ppm apart",
        "-50 ns against CLOCK_MONOTONIC 5 s after a calibration (-0.0100 ppm)",
        "+25 ns against CLOCK_MONOTONIC_RAW (+0.0050 ppm)",
        "2 calibrations: -1.00 to +0.00 ppm (up to -3.6 ms an hour)",
        "the kernel's factors +1.25 ppm; not used",
        "24.2 ns of CLOCK_MONOTONIC, 18.4 ns of the counter",
    ):
        assert piece in text
    assert text.endswith("used: I/Os are stamped with the cycle counter")


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (NONE, "not used: this CPU has no cycle counter; I/Os are stamped with CLOCK_MONOTONIC"),
        (
            replace(REPORT, refusal="the cores differ", backwards=7, worst_ticks=4000),
            "7 times backwards, by up to 2000 ns",
        ),
        (replace(REPORT, cores=1, turns=0, least_step_ticks=0), "one core"),
    ],
)
def test_the_page_of_other_clocks(report: m.ClockReport, words: str) -> None:
    assert words in "\n".join(page("h1", report))
    json.dumps(figures(report), allow_nan=False)


def test_json_figures_are_null_without_a_cycle_counter() -> None:
    found = figures(NONE)
    assert (found["used"], found["spread_ppm"], found["error_ppm"]) == (False, None, None)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("local", HostSpec("local", Launcher.LOCAL, "local")),
        ("h1", HostSpec("h1", Launcher.SSH, "h1")),
        ("root@h1:2222", HostSpec("h1", Launcher.SSH, "h1", user="root", port=2222)),
        ("[fe80::1]:22", HostSpec("fe80::1", Launcher.SSH, "fe80::1", port=22)),
    ],
)
def test_host_option_is_read_as_a_host_spec(text: str, spec: HostSpec) -> None:
    assert host_of(text) == spec


@pytest.mark.parametrize("text", ["", "h 1", "a@b@c", "h1:ssh"])
def test_invalid_host_option_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="--host"):
        host_of(text)


@pytest.mark.parametrize(("text", "words"), [("3", "write 3s"), ("500ms", "1 s to an hour"), ("2h", "1 s to an hour")])
def test_invalid_time_is_refused(text: str, words: str) -> None:
    assert seconds_of("1m30s") == 90
    with pytest.raises(PlanError, match=words):
        seconds_of(text)


def test_a_clock_is_measured_between_steps_for_a_bounded_time() -> None:
    with Client() as slave:
        slave.prepare()
        for ns in (0, 10**9 - 1, 10**13):
            ((what, why),) = slave.refused(m.MeasureClock, duration_ns=ns)
            assert (what, why.partition(",")[0]) == ("measure_clock", "a clock is measured for a second to an hour")


@pytest.mark.slow
def test_clock_of_this_machine_is_measured() -> None:
    done = CliRunner().invoke(cli, ["clock", "--time", "1s", "--json"], standalone_mode=False)
    found = json.loads(done.output)
    assert done.return_value == (0 if found["used"] else 8)
    if found["used"]:
        assert found["clock_source"] == "tsc"
        assert found["backwards"] == 0
        assert abs(found["error_ppm"]) < 10
    assert len(found["fio_errors_ppm"]) in (0, 20)
