"""The type `command`: real commands, what they print, and how they fail."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from ivypy.master.connectors.types.run_command import run_command, run_commands
from ivypy.master.errors import PlanError
from ivypy.protocol.connector import Cannot, Combine, ElementMetric, ReadingKind, Unit
from ivypy.protocol.payload import Fact
from tests.support.connector_program import MadeConnector, by_name
from tests.support.waits import wait_until_ended

BUSY = {"column": "busy", "attribute": "busy_percent", "unit": "%"}
IOS = {"column": "ios", "attribute": "ios_per_s", "unit": "1/s", "kind": "counter", "combine": "sum", "bits": 32}


def printing(text: str, format: str = "csv", **options: Any) -> MadeConnector:
    """A connector of a command that prints `text`."""
    command = [
        sys.executable,
        "-c",
        "import sys; sys.stdout.buffer.write(bytes.fromhex(sys.argv[1]))",
        text.encode().hex(),
    ]
    given = {
        "command": command,
        "format": format,
        "element": "port",
        "instance": "name",
        "metrics": [BUSY],
        "timeout": "1m",
    }
    return MadeConnector("command", **(given | options))


CSV = "name, busy, ios, node\n1A, 41.5, 4294967295, n1\n2A,-, 7, n2\n"
JSON = json.dumps({"data": {"ports": [{"name": "1A", "perf": {"busy": 41.5}}, {"name": "2A", "perf": {"busy": None}}]}})


def test_rows_of_csv_are_elements_and_columns_are_metrics_and_attributes() -> None:
    connector = printing(CSV, metrics=[BUSY, IOS], attributes={"node": "controller"})
    config = connector.config()
    assert config.metrics == (
        ElementMetric("port", "busy_percent", Unit.PERCENT),
        ElementMetric("port", "ios_per_s", Unit.PER_S, ReadingKind.COUNTER, Combine.SUM, bits=32),
    )
    assert config.facts == (Fact("port", "1A", "controller", "n1"), Fact("port", "2A", "controller", "n2"))
    readings = connector.gather()
    assert by_name(readings) == {
        "port 1A busy_percent": 41.5,
        "port 1A ios_per_s": 4294967295,
        "port 2A ios_per_s": 7,
    }
    assert 0 < readings.start_ns < readings.end_ns


@pytest.mark.parametrize(
    "text, options",
    [
        (JSON, {"rows": "data.ports", "metrics": [BUSY | {"column": "perf.busy"}]}),
        ('[{"name": "1A", "busy": 41.5}, {"name": "2A", "busy": NaN}]', {}),
        ('[{"name": "1A", "busy": "41.5"}, {"name": "2A", "busy": "n/a"}]', {}),
        ('{"1A": {"busy": 41.5}, "2A": {"busy": ""}}', {"instance": "key"}),
        (f'[{{"name": "1A", "busy": 41.5}}, {{"name": "2A", "busy": 1{"0" * 400}}}]', {}),
        ('[{"name": "1A", "busy": 41.5}, {"name": "2A", "busy": Infinity}]', {}),
    ],
)
def test_rows_of_json_and_values_that_are_none(text: str, options: dict[str, Any]) -> None:
    connector = printing(text, "json", **options)
    connector.config()
    assert by_name(connector.gather()) == {"port 1A busy_percent": 41.5}


def test_an_instance_may_be_made_of_several_columns() -> None:
    connector = printing("node;port;busy\nn1;1;4\nn2;1;5\n", delimiter=";", instance="{node}:{port}")
    connector.config()
    assert by_name(connector.gather()) == {"port n1:1 busy_percent": 4, "port n2:1 busy_percent": 5}


def test_an_optional_column_may_be_missing() -> None:
    may = {"column": "temp", "attribute": "temp_c", "unit": "C", "optional": True}
    assert [one.attribute for one in printing(CSV, metrics=[BUSY, may]).config().metrics] == ["busy_percent"]
    later = printing(CSV, metrics=[BUSY, may | {"kind": "gauge"}])
    assert [one.attribute for one in later.config().metrics] == ["busy_percent", "temp_c"]


@pytest.mark.parametrize(
    "text, format, options, fault",
    [
        ("", "csv", {}, "printed nothing; the first line of CSV has the names of the columns"),
        ("name,busy\n1A\n", "csv", {}, "row 1 of the output of"),
        ("name,busy,busy\n", "csv", {}, "has two columns 'busy'"),
        (
            "name,bsy\n1A,4\n",
            "csv",
            {},
            "there is no column 'busy'; did you mean 'bsy'?; there are bsy and name; if it",
        ),
        ("nme,busy\n1A,4\n", "csv", {}, "there is no column 'name'; did you mean 'nme'?; there are"),
        ("name,busy\n,4\n", "csv", {}, "row 1: column 'name' is empty, so the row has no name"),
        ("<html>", "json", {}, "is not JSON"),
        pytest.param("[" * 10_000, "json", {}, "is not JSON", id="deep"),
        ("3", "json", {}, "is no list of objects"),
        ("[1, 2]", "json", {}, "is no list of objects"),
        (JSON, "json", {}, "is no list of objects; `rows` says where it is, for example 'data'"),
        (JSON, "json", {"rows": "data.prts"}, "has no 'prts' where `rows` is 'data.prts'; it has ports"),
        ('[{"name": ["x"], "busy": 3}]', "json", {}, "column 'name' is a list, not a text or a number"),
    ],
)
def test_an_output_that_is_not_as_the_plan_says_is_named(text: str, format: str, options: Any, fault: str) -> None:
    reason = printing(text, format, attributes={"name": "name"}, **options).refusal()
    assert fault in reason and len(reason) < 1000


@pytest.mark.parametrize(
    "text, format, fault",
    [
        ("name,busy\n1A,4%\n", "csv", "row 1: '4%' in column 'busy' is no number"),
        ('[{"name": "1A", "busy": true}]', "json", "row 1: True in column 'busy' is no number"),
        ('[{"name": "1A", "busy": [4]}]', "json", "row 1: [4] in column 'busy' is no number"),
        ("name,busy\n1A,4\n1A,5\n", "csv", "row 1 and row 2 are both busy_percent of port '1A'; name the column that"),
    ],
)
def test_a_value_that_is_not_as_the_plan_says_is_named(tmp_path: Path, text: str, format: str, fault: str) -> None:
    (tmp_path / "out").write_text(text)
    connector = printing("", format, command=["cat", str(tmp_path / "out")])
    connector.config()
    assert fault in connector.refused_gather()


@pytest.mark.slow
def test_readings_beyond_what_a_line_may_hold_are_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("name,busy\n" + "".join(f"{i},1\n" for i in range(100_001)))
    connector = printing("", command=["cat", str(tmp_path / "out")])
    connector.config()
    assert "more than 100,000 readings; choose fewer elements or metrics" in connector.refused_gather()


@pytest.mark.parametrize(
    "options, fault",
    [
        ({"metrics": [BUSY | {"unit": "percent"}]}, "options.metrics[0].unit: 'percent' is none of ['%', 'us'"),
        ({"metrics": [BUSY | {"knd": "gauge"}]}, "options.metrics[0]: unknown option 'knd'; did you mean 'kind'?; its"),
        ({"metrics": [{"column": "busy"}]}, "options.metrics[0]: option 'attribute' is missing; it needs"),
        ({"metrics": ["busy"]}, "options.metrics[0]: 'busy' is no mapping"),
        ({"metrics": 3}, "options.metrics: not a list"),
        ({"rws": "x"}, "unknown option 'rws'; did you mean 'rows'?"),
        ({"command": []}, "options.command is empty"),
        ({"command": "ls"}, "options.command: not a list"),
        ({"format": "xml"}, "options.format: 'xml' is none of ['json', 'csv']"),
        ({"delimiter": "::"}, "'::' is not one character"),
        ({"timeout": "5"}, "options.timeout: '5' has no unit; write 5s for seconds"),
        ({"timeout": "1us"}, "options.timeout: 1us is not between 10 ms and 1 h"),
    ],
)
def test_a_wrong_option_is_named_with_its_place(options: dict[str, Any], fault: str) -> None:
    with pytest.raises(PlanError) as found:
        printing(CSV, **options)
    assert str(found.value).startswith("connector type 'command': ") and fault in str(found.value)


def test_a_metric_that_two_columns_declare_in_two_ways_is_refused() -> None:
    two = [BUSY, BUSY | {"column": "ios", "unit": "ms"}]
    assert "declare port_busy_percent in two ways" in printing(CSV, metrics=two).refusal()


def shell(script: str, timeout_s: float = 60) -> bytes:
    return run_command(["sh", "-c", script], timeout_s)


@pytest.mark.parametrize(
    "script, fault",
    [
        (
            "echo out; echo first >&2; printf 'the last\\033 words\\n\\n' >&2; exit 3",
            r"sh: exit code 3 (the last\x1b words)",
        ),
        ("kill -9 $$", "sh: ended by signal 9"),
        ("yes", "sh printed more than 16 MiB, and was killed"),
    ],
)
def test_a_command_that_fails_is_named_with_its_last_words(script: str, fault: str) -> None:
    with pytest.raises(Cannot) as found:
        shell(script)
    assert str(found.value) == fault


def test_a_command_that_is_missing_is_named() -> None:
    with pytest.raises(Cannot, match="no-such-program is not on this machine; give its path"):
        run_command(["no-such-program"], 60)
    with pytest.raises(Cannot, match="cannot be started"):
        run_command(["/etc"], 60)


def test_errors_of_a_command_that_succeeds_do_not_matter_however_many() -> None:
    assert shell("head -c 3000000 /dev/zero | tr '\\0' '\\n' >&2; echo done") == b"done\n"


@pytest.mark.parametrize("then", ["sleep 1000", "exit 0"])
def test_a_command_that_hangs_is_killed_with_all_that_it_started(tmp_path: Path, then: str) -> None:
    begun = time.monotonic()
    with pytest.raises(Cannot, match=r"within 0\.5 s, and was killed.*; give a longer `timeout`"):
        shell(f"echo busy >&2; cd {tmp_path}; sleep 1000 & touch $!; {then}", 0.5)
    assert time.monotonic() - begun >= 0.5
    for path in tmp_path.iterdir():
        if psutil.pid_exists(int(path.name)):
            wait_until_ended(psutil.Process(int(path.name)))


def test_a_program_that_a_command_leaves_running_on_purpose_is_left_alone(tmp_path: Path) -> None:
    assert shell(f"sleep 1000 >/dev/null 2>&1 & echo $! > {tmp_path / 'pid'}; echo out") == b"out\n"
    left = psutil.Process(int((tmp_path / "pid").read_text()))
    assert left.is_running()
    left.kill()


def test_commands_run_side_by_side_and_one_that_fails_ends_the_others(tmp_path: Path) -> None:
    meet = f"mkfifo {tmp_path}/a 2>/dev/null"
    outputs = run_commands(
        [["sh", "-c", f"{meet}; echo x > {tmp_path}/a"], ["sh", "-c", f"{meet}; cat {tmp_path}/a"]], 60
    )
    assert outputs == [b"", b"x\n"]
    with pytest.raises(Cannot, match="no-such-program"):
        run_commands([["sh", "-c", f"echo $$ > {tmp_path}/pid; sleep 1000"], ["no-such-program"]], 60)
