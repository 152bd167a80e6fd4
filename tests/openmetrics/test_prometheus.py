"""A real Prometheus scrapes a real run, and node_exporter serves its file."""

import http.client
import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.fork_server import Command
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow
UNPACKED = Path(__file__).parents[2] / ".venv/prometheus/usr/bin"  # scripts/setup test


def program(name: str) -> str:
    found = shutil.which(name, path=str(UNPACKED)) or shutil.which(name)
    if found is None:
        pytest.skip(f"needs {name}: scripts/setup test")
    return found


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def running(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def command(*words: str) -> Iterator[None]:
    """ivypy's."""
    process = Command(*words)
    try:
        yield
    finally:
        process.terminate()
        process.communicate(30)


def got(port: int, path: str) -> str:
    """ "" while nobody answers."""
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", path)
        text = connection.getresponse().read().decode()
        connection.close()
        return text
    except OSError:
        return ""


def asked(port: int, query: str) -> list[dict[str, Any]]:
    text = got(port, f"/api/v1/query?query={quote(query)}")
    try:
        found: list[dict[str, Any]] = json.loads(text)["data"]["result"]
    except (ValueError, KeyError):
        return []
    return found


def figure(port: int, query: str) -> float:
    """0 where there is none yet."""
    found = asked(port, query)
    return float(found[0]["value"][1]) if found else 0.0


FINEST_S = 2e-6  # the bound of the first bucket
PLAN = """\
name: scraped
hosts: [ local ]
engine: { backend: "null" }
luns: { create: { path: FOLDER/lun, size: 1MiB } }
workloads: { w: { blocksize: 4KiB, maxtags: 4, iops: 2000 } }
rollups: [ host ]
defaults: { subinterval: 500ms, warmup: 500ms, measure: 1h }
steps: [ go: one ]
"""


def test_prometheus_and_node_exporter_have_the_figures_of_the_run(tmp_path: Path) -> None:
    prometheus, exporter = program("prometheus"), program("prometheus-node-exporter")
    ivypy_port, prometheus_port, exporter_port, web_port = (free_port() for _ in range(4))
    textfiles = tmp_path / "textfiles"
    textfiles.mkdir()
    (tmp_path / "runs").mkdir()  # which the server of the page wants to be there
    (tmp_path / "plan.yaml").write_text(PLAN.replace("FOLDER", str(tmp_path)))
    (tmp_path / "prometheus.yml").write_text(json.dumps({
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "ivypy", "static_configs": [{"targets": [f"127.0.0.1:{ivypy_port}"]}]}],
    }))  # fmt: skip
    run = (
        "run", str(tmp_path / "plan.yaml"), "-o", str(tmp_path / "runs"),
        "--ui", "none", "--metrics", f":{ivypy_port}", "--metrics-file", str(textfiles / "ivypy.prom"),
    )  # fmt: skip
    with (
        command(*run),
        command("web", str(tmp_path / "runs"), "--listen", "127.0.0.1:0", "--metrics", f":{web_port}"),
        running(prometheus, f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={tmp_path / 'tsdb'}",
                f"--web.listen-address=127.0.0.1:{prometheus_port}"),
        running(exporter, "--collector.disable-defaults", "--collector.textfile",
                f"--collector.textfile.directory={textfiles}", f"--web.listen-address=127.0.0.1:{exporter_port}"),
    ):  # fmt: skip
        total = "sum(ivypy_service_seconds_count)"
        wait_until(lambda: figure(prometheus_port, total) > 5000, "scrapes")
        (rate,) = asked(prometheus_port, "avg_over_time(ivypy_iops{rollup_type='host', io='all'}[1m])")
        assert float(rate["value"][1]) == pytest.approx(2000, rel=0.5)
        assert rate["metric"]["rollup_instance"] == "local"
        median = figure(prometheus_port, "histogram_quantile(0.5, sum by (le) (ivypy_service_seconds_bucket))")
        exact = "ivypy_service_percentile_seconds{rollup_type='all', io='all', percentile='50'}[1m]"
        least, most = (figure(prometheus_port, f"{which}_over_time({exact})") for which in ("min", "max"))
        assert least / 1.5 - FINEST_S <= median <= most * 1.5 + FINEST_S
        wait_until(lambda: "ivypy_iops{" in got(web_port, "/metrics"), "the page's server")
        wait_until(lambda: "ivypy_iops{" in got(exporter_port, "/metrics"), "the textfile")
        assert "node_textfile_scrape_error 0" in got(exporter_port, "/metrics")
        lint = (program("promtool"), "check", "metrics")
        linted = subprocess.run(lint, input=got(ivypy_port, "/metrics"), capture_output=True, text=True)
        assert (linted.returncode, linted.stderr) == (0, "")
