"""docs/connectors.md, its protocol and the example program: every line, plan and class in them is one that works."""

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from ivypy.master.connectors.load_type import make_connector
from ivypy.master.plan.load import read
from ivypy.protocol.connector import CONNECTOR_COMMANDS, CONNECTOR_MESSAGES, Combine, Declined, ReadingKind, Unit
from ivypy.protocol.lines import decode
from ivypy.protocol.payload import Fact
from tests.support.connector_program import by_name, running, serving
from tests.support.plan import completed

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "".join((DOCS / name).read_text() for name in ("connectors.md", "internals/connector-protocol.md"))
EXAMPLE = DOCS / "examples/connector.py"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^ *```{language}\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)


def types_in_the_page() -> list[tuple[str, dict[str, Any]]]:
    sections = [yaml.safe_load(text)["connectors"].values() for text in blocks("yaml")]
    return [(one["type"], one.get("options", {})) for section in sections for one in section if "type" in one]


@pytest.mark.parametrize("kind, options", types_in_the_page())
def test_the_options_of_each_type_are_options(tmp_path: Path, kind: str, options: dict[str, Any]) -> None:
    text = json.dumps(options)
    for name in re.findall(r'"/etc/ivypy/([\w.]+)"', text):
        (tmp_path / name).write_text("a secret\n")
    make_connector(kind, json.loads(text.replace("/etc/ivypy", str(tmp_path))))


def test_each_type_has_an_example() -> None:
    assert {kind for kind, _ in types_in_the_page()} == {"ceph", "command", "prometheus", "snmp"}


@pytest.mark.parametrize("line", blocks("json"), ids=lambda line: str(json.loads(line)["type"]))
def test_each_line_of_the_protocol_is_one(line: str) -> None:
    name = json.loads(line)["type"]
    table: dict[str, Any] = {**CONNECTOR_COMMANDS, **CONNECTOR_MESSAGES}
    assert isinstance(decode(line.strip().encode(), table), table[name])


def test_all_messages_and_all_words_of_metrics_are_in_the_page() -> None:
    shown = {json.loads(line)["type"] for line in blocks("json")}
    assert shown == {*CONNECTOR_COMMANDS, *CONNECTOR_MESSAGES}
    words = [*map(str, Unit), *map(str, ReadingKind), *map(str, Combine)]
    assert [word for word in words if word and f"`{word}`" not in PAGE] == []


def test_the_example_is_a_connector_in_60_lines() -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 60
    assert "import ivypy" not in EXAMPLE.read_text() and "from ivypy" not in EXAMPLE.read_text()
    with running([sys.executable, "-I", EXAMPLE]) as program:
        assert program.hello().name == "example"
        config, first, second = program.config(), program.gather(), program.gather()
        assert program.ended() == (0, "")
    declared = {(one.element, one.attribute): one for one in config.metrics}
    assert {(fact.element, fact.attribute) for fact in first.facts} == declared.keys()
    assert {type(fact.value) for fact in first.facts} == {int}
    assert first.end_ns <= second.start_ns
    before, after = by_name(first), by_name(second)
    assert all(
        int(before[name]) <= int(after[name])
        for name in before.keys() & after.keys()
        if declared["disk", name.split()[-1]].kind is ReadingKind.COUNTER
    )


def test_the_class_in_the_page_is_a_connector_in_20_lines(tmp_path: Path) -> None:
    (text,) = blocks("python")
    assert len([line for line in text.splitlines() if line]) <= 20
    info = tmp_path / "our_appliance-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: our-appliance\nVersion: 1.0\n")
    (entry,) = blocks("toml")
    (info / "entry_points.txt").write_text(
        entry.replace('[project.entry-points."ivypy.connectors"]', "[ivypy.connectors]").replace('"', "")
    )
    (tmp_path / "our_appliance.py").write_text(text)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"30 120\n")

        def log_message(self, *words: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        with running(serving("appliance", {"url": url}), PYTHONPATH=str(tmp_path)) as program:
            program.hello()
            program.config()
            assert program.gather().facts == (Fact("pool", "gold", "used_percent", 25.0),)
            server.shutdown()
            server.server_close()
            declined = program.gather()
            assert isinstance(declined, Declined) and url in declined.reason


def test_the_first_plan_is_one() -> None:
    first = blocks("yaml")[0]
    steps = first[first.index("steps:") :]
    program = "connectors: { array: { program: [ python3, /opt/array.py ] } }\n"
    assert read(completed(program + steps), "p.yaml").steps[0].name == "filled"
