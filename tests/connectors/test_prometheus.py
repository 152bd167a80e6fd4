"""The type `prometheus`: a real HTTP server that says what a test wants, and the real node exporter."""

import shutil
import socket
import socketserver
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ivypy.master.errors import PlanError
from ivypy.protocol.connector import Combine, ElementMetric, ReadingKind, Unit
from ivypy.protocol.payload import Fact
from tests.support.connector_program import MadeConnector, by_name, running, serving
from tests.support.waits import wait_until

UNPACKED = Path(__file__).parents[2] / ".venv/prometheus/usr/bin"  # scripts/setup test
Answer = Callable[[socket.socket, str], None]  # gets the request


@contextmanager
def exporter(answer: Answer | str, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The URL of a server that answers so."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                connection = tls.wrap_socket(self.request, server_side=True) if tls else self.request
                with connection:
                    reply(connection, connection.recv(1 << 16).decode())
            except OSError:
                pass  # the scraper has had enough

    reply = said(answer) if isinstance(answer, str) else answer
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}/metrics"
        finally:
            server.shutdown()
            thread.join()


def said(text: str, status: str = "200 OK", *headers: str) -> Answer:
    def answer(connection: socket.socket, request: str) -> None:
        head = [f"HTTP/1.1 {status}", f"Content-Length: {len(text.encode())}", *headers]
        connection.sendall("".join(f"{line}\r\n" for line in [*head, ""]).encode() + text.encode())

    return answer


TEXT = """\
# HELP array_port_busy_ratio How busy.
# TYPE array_port_busy_ratio gauge
array_port_busy_ratio{node="n1",port="1A"} 0.415
array_port_busy_ratio{node="n1",port="2A"} NaN
array_port_busy_ratio{node="n2",port="1A"} +Inf
# TYPE array_port_ios_total counter
array_port_ios_total{node="n1",port="1A",op="read"} 18446744073709551615
array_port_ios_total{node="n1",port="1A",op="write"} 7
# TYPE array_port_ios_old counter
array_port_ios_old{node="n1",port="1A"} 5
# TYPE wait_seconds histogram
wait_seconds_bucket{le="+Inf"} 4
wait_seconds_sum 2.5
wait_seconds_count 4
# TYPE rpc_seconds summary
rpc_seconds{quantile="0.5"} 0.25
rpc_seconds_sum 2.5
array_temperature 31
disk_info{disk="d1",serial="S1",note="a \\"b\\" c"} 1
this is {garbage of no matter
"""
BUSY = {
    "metric": "array_port_busy_ratio", "element": "port", "instance": "{node}:{port}", "attribute": "busy_percent",
    "unit": "%", "scale": 100,
}  # fmt: skip
READS = {
    "metric": "array_port_ios_total", "where": {"op": "r*"}, "element": "port", "instance": "{node}:{port}",
    "attribute": "reads_per_s", "unit": "1/s", "combine": "sum",
}  # fmt: skip


def made(url: str, /, *metrics: dict[str, Any], **options: Any) -> MadeConnector:
    return MadeConnector("prometheus", **({"url": url, "metrics": list(metrics), "timeout": "1m"} | options))


def test_samples_become_elements_by_their_labels_and_kinds_are_the_exporters() -> None:
    one = {"element": "array", "unit": "s"}
    metrics: list[dict[str, Any]] = [
        BUSY,
        READS,
        {"metric": "array_port_ios_old", "element": "port", "instance": "port", "attribute": "old_per_s", "unit": ""},
        {"metric": "wait_seconds_sum", "attribute": "wait_s", "per": "waits", **one},
        {"metric": "wait_seconds_count", "attribute": "waits", **one, "unit": ""},
        {"metric": "rpc_seconds", "where": {"quantile": "0.5"}, "attribute": "rpc_s_p50", **one},
        {"metric": "array_temperature", "attribute": "temperature_c", **one, "unit": "C"},
        {"metric": "disk_info", "element": "disk", "instance": "disk", "attributes": {"serial": "serial", "note": "n"}},
    ]
    with exporter(TEXT) as url:
        connector = made(url, *metrics)
        config, readings = connector.config(), connector.gather()
    gauge, counter = ReadingKind.GAUGE, ReadingKind.COUNTER
    assert config.metrics == (
        ElementMetric("port", "busy_percent", Unit.PERCENT, gauge, scale=100),
        ElementMetric("port", "reads_per_s", Unit.PER_S, counter, Combine.SUM),
        ElementMetric("port", "old_per_s", Unit.NONE, counter),
        ElementMetric("array", "wait_s", Unit.S, counter, per="waits"),
        ElementMetric("array", "waits", Unit.NONE, counter),
        ElementMetric("array", "rpc_s_p50", Unit.S, gauge),
        ElementMetric("array", "temperature_c", Unit.CELSIUS, gauge),
    )
    assert config.facts == (Fact("disk", "d1", "serial", "S1"), Fact("disk", "d1", "n", 'a "b" c'))
    assert by_name(readings) == {
        "port n1:1A busy_percent": 0.415,
        "port n1:1A reads_per_s": 18446744073709551615,
        "port 1A old_per_s": 5,
        "array array wait_s": 2.5,
        "array array waits": 4,
        "array array rpc_s_p50": 0.25,
        "array array temperature_c": 31,
    }
    assert 0 < readings.start_ns < readings.end_ns and readings.stamps == {}


def test_times_of_the_exporter_become_stamps_whose_differences_are_exact() -> None:
    at_ms = iter([1_700_000_000_000, 1_700_000_000_000, 1_700_000_001_234])

    def answer(connection: socket.socket, request: str) -> None:
        ms = next(at_ms)
        said(f'ios{{port="a"}} 5 {ms - 100}\nios{{port="b"}} 5 {ms}\ntemp 5\n')(connection, request)

    ios = {"metric": "ios", "element": "port", "instance": "port", "attribute": "ios", "unit": "1/s", "kind": "counter"}
    with exporter(answer) as url:
        connector = made(url, ios, {"metric": "temp", "element": "x", "attribute": "c", "unit": "C"})
        connector.config()
        first, second = connector.gather().stamps, connector.gather().stamps
    assert first.keys() == {"port"}
    assert second["port"] - first["port"] == 1_234_000_000


def test_a_stamp_lies_beside_those_of_this_process() -> None:
    with exporter(f"ios 5 {time.time_ns() // 1_000_000}\n") as url:
        connector = made(url, {"metric": "ios", "element": "x", "attribute": "ios", "unit": "1/s"})
        connector.config()
        readings = connector.gather()
    assert readings.start_ns - 60_000_000_000 < readings.stamps["x"] < readings.end_ns + 60_000_000_000


def test_an_optional_metric_may_be_missing_and_may_come_later_if_its_kind_is_known() -> None:
    text = {"now": TEXT}
    may = {"metric": "errors", "element": "port", "attribute": "errors_per_s", "unit": "1/s", "optional": True}
    with exporter(lambda connection, request: said(text["now"])(connection, request)) as url:
        never, later = made(url, BUSY, may), made(url, BUSY, may | {"kind": "counter"})
        assert [one.attribute for one in never.config().metrics] == ["busy_percent"]
        assert [one.attribute for one in later.config().metrics] == ["busy_percent", "errors_per_s"]
        text["now"] = "errors 3\n"
        assert never.gather().facts == ()
        assert later.gather().facts == (Fact("port", "port", "errors_per_s", 3),)


@pytest.mark.parametrize(
    "metric, fault",
    [
        (BUSY | {"metric": "array_port_bsy_ratio"}, "has no metric 'array_port_bsy_ratio'; did you mean 'array_"),
        (BUSY | {"where": {"node": "n3"}}, "no sample of array_port_busy_ratio satisfies `where`; it has the labels"),
        (BUSY | {"instance": "prt"}, "array_port_busy_ratio has no label 'prt'; did you mean 'port'?; its labels are"),
        (BUSY | {"attributes": {"x": "y"}}, "array_port_busy_ratio has no label 'x'; its labels are node and port"),
    ],
)
def test_a_mapping_that_does_not_fit_is_named(metric: dict[str, Any], fault: str) -> None:
    with exporter(TEXT) as url:
        assert fault in made(url, metric).refusal()


def test_samples_that_become_one_element_are_named_with_the_remedy() -> None:
    with exporter(TEXT) as url:
        connector = made(url, READS | {"where": {}})
        connector.config()
        reason = connector.refused_gather()
    assert 'op="read"' in reason and 'op="write"' in reason
    assert "are both reads_per_s of port 'n1:1A'; select one of them by `where`, or put" in reason


def test_one_attribute_in_two_ways_is_refused() -> None:
    with exporter(TEXT) as url:
        assert "declare port_busy_percent in two ways" in made(url, BUSY, BUSY | {"scale": 1}).refusal()


@pytest.mark.parametrize(
    "options, fault",
    [
        ({"url": "10.0.0.1:9100"}, "is no URL; write for example http://"),
        ({"url": "http://u:secret@x/"}, "use `token_file`"),
        ({"url": "http://x:port/"}, "options.url: 'http://x:port/'"),
        ({"metrics": [BUSY | {"unit": "ratio"}]}, "options.metrics[0].unit: 'ratio' is none of"),
        ({"metrics": [{"metric": "a", "element": "b"}]}, "options.metrics[0]: it has neither an 'attribute' nor"),
        ({"metrics": [{"metric": "a", "element": "b", "attribute": "c"}]}, "option 'unit' is missing"),
        ({"metrics": [BUSY | {"where": {"node": 1}}]}, "options.metrics[0].where.node: 1 is not str"),
        ({"token": "x"}, "unknown option 'token'; did you mean 'token_file'?"),
        ({"url": "https://x/", "ca_file": "/no/such/file"}, "options.ca_file: /no/such/file"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], fault: str) -> None:
    with pytest.raises(PlanError) as found:
        made("http://x/", **options)
    assert fault in str(found.value) and "secret" not in str(found.value)


def drip(connection: socket.socket, request: str) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(b"x")
        time.sleep(0.02)


def drip_head(connection: socket.socket, request: str) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        connection.sendall(b"x")
        time.sleep(0.02)


def hang(connection: socket.socket, request: str) -> None:
    connection.recv(1)


def flood(connection: socket.socket, request: str) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(b"# x\n" * 100_000)


def cut(connection: socket.socket, request: str) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\narray_port_busy_ratio 4\n")


def endless_lines(connection: socket.socket, request: str) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n")


BAD = "array_port_busy_ratio"


@pytest.mark.parametrize(
    "answer, fault",
    [
        (drip, "gave no whole answer within 0.5 s; check that it runs there, or give a longer `timeout`"),
        (drip_head, "gave no whole answer within 0.5 s"),
        (hang, "gave no whole answer within 0.5 s"),
        (lambda connection, request: None, "RemoteDisconnected"),
        (lambda connection, request: connection.sendall(b"\x00\xff\x1b[31m\r\n"), "BadStatusLine"),
        (endless_lines, "LineTooLong"),
        (cut, "its answer ended 76 bytes too early"),
        (said("", "401 Unauthorized"), "answered 401 Unauthorized; give `token_file`"),
        (said("", "404 Not Found"), "answered 404 Not Found; exporters usually have it at /metrics"),
        (said("", "500 Oh"), "answered 500 Oh"),
        (said("", "302 Found", "Location: /login"), "answered 302 Found; it refers to /login: write that as `url`"),
        (said("<html><body>"), "is a web page, not metrics"),
        (said("\x00\x01"), "has no metric"),
        (said(BAD + "{port='1'} 4\n"), "not Prometheus's text format"),
        (said(BAD + '{port="1} 4\n'), "not Prometheus's text format"),
        (said(f"{BAD} four\n"), "not Prometheus's text format"),
        (said(f"{BAD}\n"), "not Prometheus's text format"),
        (said(f"{BAD} 4_0\n"), "not Prometheus's text format"),
    ],
)
def test_a_hostile_or_broken_exporter_is_named(answer: Answer, fault: str) -> None:
    timeout = "500ms" if "0.5 s" in fault else "1m"
    with exporter(answer) as url:
        reason = made(url, BUSY | {"instance": ""}, timeout=timeout).refusal()
    assert fault in reason and len(reason) < 1000
    assert reason.isprintable()


def test_a_flood_is_cut_off() -> None:
    with exporter(flood) as url:
        assert "its answer is larger than 16 MiB; request fewer metrics in the URL" in made(url, BUSY).refusal()


def test_nobody_there_and_a_name_that_is_unknown() -> None:
    with exporter("") as url:
        pass
    assert "connection refused; check that it runs there, and the port" in made(url, BUSY).refusal()
    assert "its name is not known here" in made("http://no-such-host.invalid/", BUSY).refusal()


def test_a_token_goes_from_its_file_to_the_exporter_and_nowhere_else(tmp_path: Path) -> None:
    requests: list[str] = []

    def answer(connection: socket.socket, request: str) -> None:
        requests.append(request)
        said(TEXT)(connection, request)

    token = tmp_path / "token"
    token.write_text("s3cret\n")
    with exporter(answer) as url:
        connector = made(f"{url}?collect[]=ports", BUSY, token_file=str(token))
        connector.config()
        assert "\r\nAuthorization: Bearer s3cret\r\n" in requests[0]
        assert requests[0].startswith("GET /metrics?collect[]=ports HTTP/1.1\r\n")
        token.write_text("\n")
        assert f"{token} is empty" in connector.refusal()
        token.unlink()
        assert f"cannot read the secret in {token}" in connector.refusal()


def test_certificates_are_checked(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    key, certificate = tmp_path / "key", tmp_path / "cert"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with exporter(TEXT, tls) as url:
        assert "its certificate is not trusted" in made(url, BUSY).refusal()
        assert made(url, BUSY, ca_file=str(certificate)).config().metrics


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.mark.slow
def test_the_real_node_exporter_over_pipes() -> None:
    program = shutil.which("prometheus-node-exporter", path=str(UNPACKED))
    if program is None:
        pytest.skip("needs prometheus-node-exporter: scripts/setup test")
    port = free_port()
    options = {
        "url": f"http://127.0.0.1:{port}/metrics",
        "metrics": [
            {"metric": "node_cpu_seconds_total", "where": {"mode": "idle"}, "element": "cpu", "instance": "cpu",
             "attribute": "idle_percent", "unit": "%", "scale": 100},
            {"metric": "node_network_receive_bytes_total", "element": "nic", "instance": "device",
             "attribute": "in_mib_per_s", "unit": "MiB/s", "scale": 2**-20, "combine": "sum"},
            {"metric": "node_memory_MemAvailable_bytes", "element": "memory", "attribute": "free_bytes", "unit": "B"},
            {"metric": "node_uname_info", "element": "memory", "attributes": {"release": "kernel"}},
        ],
    }  # fmt: skip
    node = subprocess.Popen(
        [program, f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        with running(serving("prometheus", options)) as connector:
            connector.hello()
            wait_until(lambda: hasattr(connector.config(), "metrics"), "node exporter")
            config, first, second = connector.config(), connector.gather(), connector.gather()
            assert connector.ended() == (0, "")
    finally:
        node.kill()
        node.wait()
    assert [(one.element, one.kind) for one in config.metrics] == [
        ("cpu", ReadingKind.COUNTER), ("nic", ReadingKind.COUNTER), ("memory", ReadingKind.GAUGE),
    ]  # fmt: skip
    assert "memory memory kernel" in by_name(config)
    before, after = by_name(first), by_name(second)
    assert {"cpu 0 idle_percent", "memory memory free_bytes"} <= before.keys() & after.keys()
    assert any(name.startswith("nic ") for name in after)
    assert float(before["cpu 0 idle_percent"]) <= float(after["cpu 0 idle_percent"])
    assert first.end_ns <= second.start_ns
