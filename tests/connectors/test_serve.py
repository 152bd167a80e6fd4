"""A class as a program: what is found by its name, made from its options, and served over pipes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from ivypy.master.connectors.load_type import known_types, load_type
from ivypy.protocol.connector import ConnectorConfig, ConnectorHello, Declined, ElementMetric, Readings, Unit
from ivypy.protocol.payload import Fact, Facts
from tests.support.connector_program import running, serving
from tests.support.waits import wait_until, wait_until_ended

pytestmark = pytest.mark.slow  # each starts a program

MODULE = """
import sys
from ivypy.protocol.connector import ElementMetric, Unit
from ivypy.protocol.payload import Fact


class Counted:
    def __init__(self, *, address, limit=3):
        if limit < 0:
            raise ValueError("limit: it is below 0")
        self.address, self.limit = address, limit

    def config(self, luns):
        print("a stray line")
        return [ElementMetric("port", "busy_percent", Unit.PERCENT)], [Fact("lun", path, "pool", "x") for path in luns]

    def gather(self):
        sys.stdout.write("another")
        yield Fact("port", self.address, "busy_percent", self.limit)


class Empty:
    def config(self, luns):
        return [], []

    def gather(self):
        raise KeyError("nothing there")
"""


@pytest.fixture
def other_package(tmp_path: Path) -> str:
    """A folder with an installed package that has types of its own."""
    info = tmp_path / "other_arrays-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: other-arrays\nVersion: 1.0\nProvides-Extra: fast\n"
        'Requires-Dist: fast_lib>=2; extra == "fast"\n'
    )
    (info / "entry_points.txt").write_text(
        "[ivypy.connectors]\ncounted = other_arrays:Counted\nempty = other_arrays:Empty\ngone = other_arrays:Gone\n"
        "fast = other_fast:Fast\nbroken = other_broken:Broken\n"
    )
    (tmp_path / "other_arrays.py").write_text(MODULE)
    (tmp_path / "other_fast.py").write_text("import fast_lib.client\n")
    (tmp_path / "other_broken.py").write_text("import no_such_library\n")
    return str(tmp_path)


def test_a_class_of_another_package_answers_over_pipes_and_its_prints_break_nothing(other_package: str) -> None:
    with running(serving("counted", {"address": "1A"}), PYTHONPATH=other_package) as program:
        hello = program.hello()
        assert hello == ConnectorHello(1, "counted", hello.version) and hello.version
        assert program.config("/dev/sdb") == ConnectorConfig(
            1,
            (ElementMetric("port", "busy_percent", Unit.PERCENT),),
            Facts([Fact("lun", "/dev/sdb", "pool", "x")]),
        )
        readings = program.gather()
        assert isinstance(readings, Readings) and readings.facts == (Fact("port", "1A", "busy_percent", 3),)
        assert 0 < readings.start_ns <= readings.end_ns
        assert program.ended() == (0, "a stray line\nanother")


def test_what_cannot_be_done_now_is_declined_and_the_next_command_is_answered(other_package: str) -> None:
    with running(serving("empty", {}), PYTHONPATH=other_package) as program:
        program.hello()
        assert program.gather() == Declined(1, "KeyError: 'nothing there'")
        assert isinstance(program.config(), ConnectorConfig)


@pytest.mark.parametrize(
    "kind, options, fault",
    [
        ("countd", {}, "there is no connector type 'countd'; did you mean 'counted'?; installed are 'broken', 'ceph'"),
        ("counted", {"adress": "x"}, "unknown option 'adress'; did you mean 'address'?; its options are address and"),
        ("counted", {"limit": 2}, "option 'address' is missing; its options are address and limit"),
        ("counted", {"address": "x", "limit": -1}, "connector type 'counted': limit: it is below 0"),
        ("empty", {"x": 1}, "unknown option 'x'; it has no options"),
        ("gone", {}, "connector type 'gone' (other_arrays:Gone): module 'other_arrays' has no attribute 'Gone'"),
        ("fast", {}, "No module named 'fast_lib'; install it: pip install fast_lib"),
        ("broken", {}, "No module named 'no_such_library'; install what other-arrays needs for it"),
    ],
)
def test_what_cannot_be_made_is_named_with_the_remedy(
    other_package: str, kind: str, options: dict[str, object], fault: str
) -> None:
    with running(serving(kind, options), PYTHONPATH=other_package) as program:
        code, errors = program.ended()
        assert code == 2 and errors.startswith("ivypy: ") and errors.count("\n") == 1
        assert fault in errors


@pytest.mark.parametrize(
    "words, fault", [([], "usage"), (["ceph", "{"], "not JSON"), (["ceph", "[]"], "no JSON object")]
)
def test_wrong_arguments_are_named(words: list[str], fault: str) -> None:
    with running([sys.executable, "-m", "ivypy.master.connectors.serve", *words]) as program:
        code, errors = program.ended()
        assert code == 2 and fault in errors


def test_each_type_of_ivypys_own_is_found() -> None:
    assert {"ceph", "command", "prometheus", "snmp"} <= known_types().keys()
    for kind in known_types():
        assert callable(load_type(kind))


@pytest.mark.parametrize(
    "kind, library, package", [("snmp", "pysnmp", "pysnmp"), ("prometheus", "prometheus_client", "prometheus-client")]
)
def test_a_type_whose_library_is_missing_names_its_package(kind: str, library: str, package: str) -> None:
    script = f"import sys; sys.modules[{library!r}] = None; from ivypy.master.connectors.serve import main; "
    with running([sys.executable, "-c", f"{script}sys.exit(main([{kind!r}]))"]) as program:
        code, errors = program.ended()
    assert code == 2 and library in errors and f"; install it: pip install {package}" in errors


@pytest.mark.parametrize("sent", [b"garbage\n", b'{"type":"gather"}\n', b'{"type":"go","id":1}\n', b'{"type":'])
def test_what_is_no_command_ends_it_with_the_reason(other_package: str, sent: bytes) -> None:
    with running(serving("empty", {}), PYTHONPATH=other_package) as program:
        program.hello()
        assert program.process.stdin is not None
        program.process.stdin.write(sent)
        code, errors = program.ended()
        assert code == 1 and errors.startswith("ivypy: what should be a command of the controller: ")


def test_a_controller_that_is_gone_ends_it_quietly(other_package: str) -> None:
    with running(serving("empty", {}), PYTHONPATH=other_package) as program:
        program.hello()
        assert program.process.stdout is not None
        program.process.stdout.close()
        program.send({"type": "read_config", "luns": []})
        assert program.process.wait(60) == 1
        assert program.process.stderr is not None and program.process.stderr.read() == b""


def test_ctrl_c_is_the_controllers_and_a_termination_ends_what_the_connector_started(tmp_path: Path) -> None:
    started = tmp_path / "started"
    command = ["sh", "-c", f"echo $$ > {started}.new; mv {started}.new {started}; sleep 1000"]
    options = {"command": command, "format": "json", "element": "x", "instance": "n", "metrics": [], "timeout": "10m"}
    with running(serving("command", options)) as program:
        program.hello()
        program.send({"type": "gather"})
        wait_until(started.exists, "the command runs")
        child = psutil.Process(int(started.read_text()))
        inner = child.children()
        os.kill(program.process.pid, signal.SIGINT)
        assert child.is_running()
        os.kill(program.process.pid, signal.SIGTERM)
        assert program.process.wait(60) == 1
        wait_until_ended(child, *inner)


def test_starting_it_imports_none_of_the_controllers_large_libraries() -> None:
    large = {"numpy", "pydantic", "click", "rich", "asyncssh", "asyncio", "yaml"}
    script = f"import ivypy.master.connectors.serve, sys; print(sorted({large} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
