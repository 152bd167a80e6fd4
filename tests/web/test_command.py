"""The command `ivypy web`, as a user starts and ends it."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from ivypy.master.errors import PlanError
from tests.support.real_runs import by_a_user, ivypy
from tests.support.small_run import write_run
from tests.support.web_page import by_address, command

pytestmark = pytest.mark.slow  # each starts a program


MALFORMED = (b"GET / HTTP/1.1\r\nHost: h\r\nbad header\r\n\r\n", b"GET / HTTP/9.x\r\n\r\n", b"\0\1\2\r\n\r\n")


def fetched(address: str, path: str) -> bytes:
    """With the token of a printed address."""
    base, _, token = by_address(address).partition("#token=")
    request = urllib.request.Request(base + path, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return bytes(response.read())


def test_it_prints_its_address_serves_and_ends_silently(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "runs")
    with command(str(tmp_path / "runs"), "--listen", "127.0.0.1:0", started=by_a_user) as (process, address):
        (run,) = json.loads(fetched(address, "api/runs"))["runs"]
        assert (run["folder"], run["state"]) == (str(folder), "ended")
        assert len(fetched(address, "static/plotly.min.js")) > 1_000_000
        port = address.split("/#")[0].rsplit(":", 1)[1]
        second = ivypy("web", str(tmp_path), "--listen", f"127.0.0.1:{port}")
        assert second.returncode == 2 and "another program listens there" in second.stderr
        with pytest.raises(urllib.error.HTTPError, match="403"):
            fetched(address.replace("token=", "token=x"), "api/runs")
        for malformed in (
            b"GET / HTTP/1.1\r\nHost: h\r\nbad header\r\n\r\n",
            b"GET / HTTP/9.x\r\n\r\n",
            b"\0\1\2\r\n\r\n",
        ):
            with socket.create_connection(("127.0.0.1", int(port)), timeout=60) as connection:
                connection.sendall(malformed)
                assert b" 400 " in connection.recv(1 << 16)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (130, "", "")


def test_a_run_that_begins_or_vanishes_is_seen(tmp_path: Path) -> None:
    with command("--listen", "127.0.0.1:0", "--", str(tmp_path)) as (_, address):
        assert json.loads(fetched(address, "api/runs"))["runs"] == []
        folder = write_run(tmp_path)
        seen = json.loads(fetched(address, "api/runs"))
        while not seen["runs"]:  # a list that is a second old is shared
            seen = json.loads(fetched(address, "api/runs"))
        run = seen["runs"][0]["id"]
        assert json.loads(fetched(address, f"api/runs/{run}"))["run"]["id"] == run
        folder.rename(tmp_path.parent / "elsewhere")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            fetched(address, f"api/runs/{run}")


REFUSED = [
    (("/nowhere",), "/nowhere: there is no such folder"),
    (("--listen", "0.0.0.0:0"), "--insecure"),
    (("--listen", "here"), "write ADDRESS:PORT"),
    (("--tls-cert", "x"), "--tls-cert and --tls-key belong together"),
]


@pytest.mark.parametrize(("words", "says"), REFUSED, ids=lambda one: str(one))
def test_what_cannot_be_served_is_refused_at_once(words: tuple[str, ...], says: str) -> None:
    from ivypy.master.cli.web import web

    with pytest.raises(PlanError) as refusal:
        web.main([*words], standalone_mode=False)
    assert says in str(refusal.value)


def test_without_its_libraries_it_says_how_to_get_them() -> None:
    program = (
        "import sys; sys.modules['aiohttp'] = None\n"
        "from ivypy.master.cli.main import main; sys.argv = ['ivypy', *sys.argv[1:]]; main()"
    )
    for words in (["web"], ["run", "--web", "nothing.yaml"]):
        done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "the page needs aiohttp: pip install aiohttp\n"
