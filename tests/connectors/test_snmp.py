"""The type `snmp`: Debian's snmpd on loopback, and agents that lie."""

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ivypy.master.connectors.load_type import make_connector
from ivypy.master.errors import PlanError
from ivypy.protocol.connector import Combine, ElementMetric, ReadingKind, Unit
from tests.support.connector_program import ConnectorProgram, by_name, running, serving
from tests.support.waits import wait_until

UNPACKED = Path(__file__).parents[2] / ".venv/snmpd"  # scripts/setup test
IF_TABLE, IF_X_TABLE = "1.3.6.1.2.1.2.2.1", "1.3.6.1.2.1.31.1.1.1"
EXTENDED = "1.3.6.1.4.1.8072.1.3.2.3.1.1"  # NET-SNMP-EXTEND-MIB: first lines that commands print


EXTENDED_CODE = "1.3.6.1.4.1.8072.1.3.2.3.1.4"  # their exit codes: the same for all
Serve = Callable[..., ConnectorProgram]


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a snmpd. v2c: the community `lab`; v3: `reader`, SHA-256 and AES."""
    program = shutil.which("snmpd", path=str(UNPACKED / "usr/sbin")) or shutil.which("snmpd", path="/usr/sbin")
    if program is None:
        pytest.skip("needs snmpd: scripts/setup test")
    folder, port = tmp_path_factory.mktemp("snmpd"), free_port()
    (folder / "snmpd.conf").write_text(
        f"agentaddress udp:127.0.0.1:{port}\nrocommunity lab 127.0.0.1\n"
        'createUser reader SHA-256 "authentic1" AES "private123"\nrouser reader priv\n'
        "extend temperature /bin/echo 31.5\nextend note /bin/echo fine\n"
    )
    libraries = ":".join(map(str, (UNPACKED / "usr/lib").glob("*-linux-gnu")))
    environment = os.environ | {"LD_LIBRARY_PATH": libraries, "SNMP_PERSISTENT_DIR": str(folder), "MIBS": ""}
    words = [program, "-f", "-Le", "-C", "-c", str(folder / "snmpd.conf")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
    try:
        wait_until(lambda: b"NET-SNMP version" in (folder / "log").read_bytes(), "snmpd")
        yield port
    finally:
        process.kill()
        process.wait()


def secret(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(f"{text}\n")
    return str(folder / name)


@pytest.fixture
def v2c(agent: int, tmp_path: Path) -> dict[str, Any]:
    community = secret(tmp_path, "community", "lab")
    return {"address": "127.0.0.1", "port": agent, "community_file": community, "timeout": "1m"}


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a connector with these options."""
    with ExitStack() as stack:

        def start(**options: Any) -> ConnectorProgram:
            program = stack.enter_context(running(serving("snmp", options)))
            program.hello()
            return program

        yield start


def named(attribute: str, oid: str, **more: Any) -> dict[str, Any]:
    return {"attribute": attribute, "oid": oid, "unit": "", **more}


def test_the_interfaces_of_a_switch(serve: Serve, v2c: dict[str, Any]) -> None:
    connector = serve(**v2c, preset="interfaces")
    config, first, second = connector.config(), connector.gather(), connector.gather()
    assert connector.ended() == (0, "")
    counter = ReadingKind.COUNTER
    found = {one.attribute: (one.element, one.unit, one.kind, one.combine, one.bits) for one in config.metrics}
    assert found["in_mib_per_s"] == ("interface", Unit.MIB_PER_S, counter, Combine.SUM, 64)
    assert found["out_errors_per_s"] == ("interface", Unit.PER_S, counter, Combine.SUM, 32)
    assert {one.scale for one in config.metrics if one.unit is Unit.MIB_PER_S} == {2.0**-20}
    before, after = by_name(first), by_name(second)
    name = "interface lo in_mib_per_s"
    assert 0 <= int(before[name]) <= int(after[name])
    assert int(before[name]) <= int(Path("/sys/class/net/lo/statistics/rx_bytes").read_text())
    assert 0 < first.start_ns < first.end_ns <= second.start_ns


@pytest.mark.slow
def test_v3_with_passphrases_from_files(serve: Serve, agent: int, tmp_path: Path) -> None:
    files = {"auth_file": secret(tmp_path, "a", "authentic1"), "privacy_file": secret(tmp_path, "p", "private123")}
    given = {"address": "127.0.0.1", "port": agent, "user": "reader", "preset": "interfaces", "timeout": "1m", **files}
    connector = serve(**given, auth="sha256", privacy="aes128")
    connector.config()
    assert "interface lo in_mib_per_s" in by_name(connector.gather())
    wrong = serve(**given | {"user": "stranger"}, auth="sha256").config().reason
    assert f"127.0.0.1, port {agent}: Unknown USM user; check the address" in wrong
    wrong = serve(**given, auth="sha").config().reason
    assert "Wrong SNMP PDU digest" in wrong and "authentic1" not in wrong


@pytest.mark.slow
def test_tables_by_oid_with_kinds_of_the_agent_and_numbers_in_texts(serve: Serve, v2c: dict[str, Any]) -> None:
    tables = [
        {"element": "port", "instance": f".{IF_X_TABLE}.1", "attributes": {f"{IF_TABLE}.1": "number"},
         "metrics": [named("in32", f"{IF_TABLE}.10"), named("mtu", f"{IF_TABLE}.4"),
                     named("x", "1.3.6.1.3", optional=True)]},
        {"element": "sensor", "metrics": [named("value", EXTENDED)]},
    ]  # fmt: skip
    connector = serve(**v2c, tables=tables)
    config = connector.config()
    assert config.metrics == (
        ElementMetric("port", "in32", Unit.NONE, ReadingKind.COUNTER, bits=32),
        ElementMetric("port", "mtu", Unit.NONE),
        ElementMetric("sensor", "value", Unit.NONE),
    )
    assert by_name(config)["port lo number"] == "1"
    assert "'fine', no number; it may be an attribute instead" in connector.gather().reason
    tables[1] = {"element": "sensor", "metrics": [named("value", f"{EXTENDED}.11.116.101")]}  # "te" of `temperature`
    connector = serve(**v2c, tables=tables)
    connector.config()
    found = by_name(connector.gather())
    assert found["port lo mtu"] == int(Path("/sys/class/net/lo/mtu").read_text())
    assert [value for name, value in found.items() if name.startswith("sensor ")] == [31.5]


@pytest.mark.slow
def test_a_column_that_the_device_lacks_is_named(serve: Serve, v2c: dict[str, Any]) -> None:
    tables = [{"element": "x", "metrics": [named("y", "1.3.6.1.4.1.99999.1")]}]
    reason = serve(**v2c, tables=tables).config().reason
    assert (
        reason == "127.0.0.1 has no values at OID 1.3.6.1.4.1.99999.1 (y); if it may be missing, write `optional: true`"
    )


@pytest.mark.slow
def test_rows_of_one_name_are_refused(serve: Serve, v2c: dict[str, Any]) -> None:
    table = {"element": "x", "instance": EXTENDED_CODE, "metrics": [named("y", EXTENDED_CODE)]}
    connector = serve(**v2c, tables=[table])
    connector.config()
    assert "name a column in `instance` that differs from row to row" in connector.gather().reason


@pytest.mark.parametrize(
    "options, fault",
    [
        ({}, "options have no 'tables'; for a switch, write `preset: interfaces`"),
        ({"preset": "switch"}, "options.preset: 'switch' is none of ['', 'interfaces']"),
        ({"preset": "interfaces", "community": "lab"}, "unknown option 'community'; did you mean 'community_file'?"),
        ({"preset": "interfaces", "user": "u", "privacy_file": "x"}, "'privacy_file' needs 'auth_file', too"),
        ({"preset": "interfaces", "user": "u", "auth_file": "/no/file"}, "cannot read the secret in /no/file"),
        ({"preset": "interfaces", "port": 0}, "options.port: 0 is not within 1 and 65535"),
        ({"tables": [{"element": "x", "metrics": [named("y", "ifInOctets")]}]}, "'ifInOctets' is no OID; write it in"),
        (
            {"tables": [{"element": "x", "metrics": [{"oid": "1.2"}]}]},
            "options.tables[0].metrics[0]: option 'attribute'",
        ),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], fault: str) -> None:
    with pytest.raises(PlanError) as found:
        make_connector("snmp", {"address": "127.0.0.1", **options})
    assert fault in str(found.value)


@contextmanager
def liar(answer: Callable[[bytes], bytes | None]) -> Iterator[int]:
    """The port of an agent that answers each packet so."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))

        def serve() -> None:
            while (found := listener.recvfrom(1 << 16))[0] != b"end":
                if (reply := answer(found[0])) is not None:
                    listener.sendto(reply, found[1])

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closer:
                closer.sendto(b"end", listener.getsockname())
            thread.join()


def tlv(tag: int, content: bytes) -> bytes:
    length = len(content)
    head = bytes([length]) if length < 128 else bytes([0x82, length >> 8, length & 255])
    return bytes([tag]) + head + content


def response(request: bytes, binds: list[tuple[bytes, bytes]]) -> bytes:
    """A response of v2c to a request: names and values are BER without and with tag and length."""
    start = request.index(b"\xa5")  # GetBulkRequest; its first field is the request's number
    at = start + (2 if request[start + 1] < 128 else 2 + (request[start + 1] & 127))
    number = request[at : at + 2 + request[at + 1]]
    pairs = b"".join(tlv(0x30, tlv(6, name) + value) for name, value in binds)
    pdu = tlv(0xA2, number + tlv(2, b"\0") + tlv(2, b"\0") + tlv(0x30, pairs))
    return tlv(0x30, tlv(2, b"\x01") + tlv(4, b"public") + pdu)


NAME = bytes([0x2B, 6, 1, 4, 1, 99, 1, 1])  # 1.3.6.1.4.1.99.1.1


@pytest.mark.parametrize(
    "answer, fault",
    [
        (lambda request: None, "no whole answer within 1 s; check the address"),
        (lambda request: b"\x30\x82\xff\xff garbage", "no whole answer within 1 s; check the address"),
        (lambda request: response(request, []), "Empty SNMP response message; check the address"),
        (lambda request: response(request, [(NAME, tlv(2, b"\x05"))] * 2), "sends 1.3.6.1.4.1.99.1.1 again and again"),
    ],
)
@pytest.mark.slow
def test_an_agent_that_is_silent_or_lies_is_named(
    serve: Serve, answer: Callable[[bytes], bytes | None], fault: str
) -> None:
    timeout = "1s" if "within 1 s" in fault else "1m"
    with liar(answer) as port:
        table = {"element": "x", "metrics": [named("y", "1.3.6.1.4.1.99.1")]}
        reason = serve(address="127.0.0.1", port=port, timeout=timeout, tables=[table]).config().reason
    assert fault in reason.replace("No SNMP response received before timeout", "no whole answer within 1 s")
