"""`ivypy connector check` on a simulated array that does one thing wrong at a time, and on programs that are none."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ivypy.master.cli.commands import cli
from ivypy.master.connectors.conformance import Conformance, Deviation, Seen, joins
from ivypy.protocol.connector import ConnectorConfig, ElementMetric, ReadingKind, Readings, Unit
from ivypy.protocol.payload import Fact, Facts
from tests.support.simulated_array import FAULTS

ARRAY = str(Path(__file__).parents[1] / "support" / "simulated_array.py")
LDEVS = {
    "00:01": {"rate": 1000, "path": "/dev/x1", "serial": "A1", "parity_group": "1-1", "port": "1A", "mp": "0"},
    "00:02": {"rate": 500, "path": "/dev/x2", "serial": "A2", "parity_group": "1-2", "port": "1A", "mp": "0"},
}
DEVIATIONS = {  # fault of the array: what is said of it
    "silent": "silent: no answer to gather 2 within 3 s",
    "dies": "ended: it exited with status 3 (the array is on fire)",
    "garbage": "the line: \\x7fELF not a line of JSON",
    "wrong_message": "readings: missing ['facts'], unknown ['values']; the line: {",
    "flood": "flood: it answers request 3, which is not pending",
    "declines": "declined: it declined gather 2: the array is being serviced (and 1 more like it)",
    "duplicate": "duplicate: gather 2: cache '0' write_pending_percent is there twice",
    "undeclared": "undeclared: gather 2: mp temperature_c is not among the metrics of its config",
    "text": "text: gather 2: cache '1' write_pending_percent is the text 'many'; send a number",
    "falls": "counter: gather 3: port '1A' ios_per_s fell from ",
    "backwards": "stamps: gather 2: stamps run backwards",
    "fast": "stamps: gather 2: its clock was stepped, or is not as fast as time",
    "jump": "stamps: gather 2: its clock was stepped",
    "ahead": "stamps: gather 2: the stamp of an element type is after the end of its gather",
    "too_long": "stamps: gather 2: from start_ns to end_ns is longer than from the request to the answer",
    "bad_unit": "metrics[11].unit: 'furlongs' is none of ['%', 'us',",
    "bad_name": "metric: metric 11 (mp Busy Time): 'Busy Time' cannot be an attribute's name",
    "wrong_suffix": "metric: metric 11 (mp wait_percent): its unit is us, and its name says %",
    "twice_declared": "metric: metric 11 (mp busy_percent): its name mp_busy_percent is that of mp busy_percent",
    "no_hello": "no hello: no connector_hello within 3 s",
    "exits": "ended: it exited with status 3 (no licence)",
    "unflushed": "not flushed: its lines came only when its input had ended",
    "stays": "stayed: it did not exit within 2 s of the end of its input",
}
REMARKS = {
    "absent": "remark            it sends no stamps",
    "slow": "remark            a gather takes 0.",
    "late_hello": "conforms",
}


def check(*words: str, timeout: str = "30s") -> Result:
    options = ["--gathers", "3", "--interval", "0.2s", "--timeout", timeout]
    return CliRunner().invoke(cli, ["connector", "check", *options, "--", *words], standalone_mode=False)


def check_array(*words: str, timeout: str = "30s") -> Result:
    return check(sys.executable, ARRAY, json.dumps(LDEVS), *words, timeout=timeout)


def test_what_a_connector_has_is_listed() -> None:
    done = check_array()
    assert done.return_value == 0, done.output
    lines = done.output.splitlines()
    assert lines[0] == "program           simulated array 1" and lines[-1] == "conforms"
    assert "element type      parity_group, 2 instances: 1-1, 1-2" in lines
    assert "  service_us               us     counter, per ios_per_s" in lines
    assert "joins LUNs        ldev, by serial or path (A1, A2)" in lines
    assert "  parity_group             2 values: 1-1, 1-2, selects its elements" in lines


@pytest.mark.slow
@pytest.mark.parametrize("fault", DEVIATIONS)
def test_each_deviation_is_named(fault: str) -> None:
    never_answers = fault in ("silent", "no_hello", "unflushed")
    done = check_array("--fault", fault, "--after", "1", timeout="3s" if never_answers else "30s")
    assert done.return_value == 8, done.output
    assert [line for line in done.output.splitlines() if line.startswith("deviation") and DEVIATIONS[fault] in line]


@pytest.mark.parametrize("fault", REMARKS)
def test_what_is_allowed_is_remarked(fault: str) -> None:
    done = check_array("--fault", fault, "--after", "0", "--takes", "0.15")
    assert done.return_value == 0 and REMARKS[fault] in done.output, done.output


def test_every_fault_of_the_simulated_array_is_tried() -> None:
    assert FAULTS.keys() == DEVIATIONS.keys() | REMARKS.keys()


def test_a_program_that_cannot_be_started() -> None:
    done = check("/nonexistent/program")
    assert done.return_value == 3 and "'/nonexistent/program' cannot be started" in done.output


def test_a_program_that_is_no_connector() -> None:
    done = check(sys.executable, "-c", "print('hello')")
    assert done.return_value == 8 and "unreadable: what it sent is no message of a connector" in done.output
    assert "the line: hello" in done.output


IOS = ElementMetric("port", "ios_per_s", Unit.PER_S, ReadingKind.COUNTER, bits=32)
CONFIG = ConnectorConfig(1, (IOS,))


def seen(*values: object, instance: str = "1A") -> Conformance:
    """What is found where a counter has these values, a second apart."""
    found = Conformance()
    found.configured(CONFIG)
    for k, value in enumerate(values):
        facts = Facts([Fact("port", instance, "ios_per_s", value)])  # type: ignore[arg-type]
        at_ns = (k + 1) * 10**9
        found.gathered(Seen(Readings(k + 2, facts, at_ns, at_ns), at_ns - 1000, at_ns + 1000))
    return found


def test_a_counter_may_wrap_and_not_fall() -> None:
    assert seen(2**32 - 5, 10).conforms
    assert [kind for kind, _ in seen(2**31, 10).deviations] == [Deviation.COUNTER]


@pytest.mark.parametrize("instance", ["", "x" * 201])
def test_an_instance_has_a_name_of_some_length(instance: str) -> None:
    assert [kind for kind, _ in seen(1, instance=instance).deviations] == [Deviation.INSTANCE]


def test_a_metric_that_is_never_reported_is_remarked() -> None:
    found = Conformance()
    found.configured(CONFIG)
    found.gathered(Seen(Readings(2, Facts(), 1, 1), 0, 1000))
    found.finished(1.0)
    assert found.conforms and "declared, and never reported: port ios_per_s" in found.remarks


def test_without_a_join_attribute_nothing_joins() -> None:
    facts = Facts([Fact("port", "1A", "speed", 32)])
    (line,) = joins(ConnectorConfig(1, (IOS,), facts))
    assert line.startswith("joins LUNs        none by wwn, serial, path")
