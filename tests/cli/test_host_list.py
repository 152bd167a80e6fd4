"""What `ivypy devices` and `ivypy check --hosts` say of hosts: all of them, whatever is wrong with some."""

from dataclasses import replace
from pathlib import Path

import pytest

from ivypy.master.cli.host_list import WIDTH, host_lines
from ivypy.master.errors import HostFault
from ivypy.protocol.messages import Hello
from tests.support.real_runs import ivypy, written
from tests.support.small_run import HELLO

SERVER = replace(
    HELLO,
    hostname="h1",
    kernel="5.14.0-427.el9.x86_64",
    facts={
        "user": "root", "distribution": "Rocky Linux 9.4 (Blue Onyx)", "hardware": "Dell Inc. PowerEdge R650",
        "cpu_model": "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz", "cpus": 128, "numa_nodes": 2, "memory": 256 << 30,
        "governor": "performance",
    },
)  # fmt: skip
DESCRIBED = """\
    Rocky Linux 9.4 (Blue Onyx), Linux 5.14.0-427.el9.x86_64, x86_64, glibc
      2.36, Python 3.11.7
    Dell Inc. PowerEdge R650, 128 CPUs (2 for ivypy), Intel(R) Xeon(R) Gold 6338
      CPU @ 2.00GHz, 2 NUMA nodes, 256 GiB of memory
    backends: libaio, null
"""


def named(name: str, hello: Hello = SERVER) -> Hello:
    return replace(hello, hostname=name)


def test_hosts_that_are_alike_are_described_once_and_by_all_their_names() -> None:
    text = "\n".join(host_lines({"h1": named("h1"), "h2": named("h2.lab.example"), "10.0.0.3": named("h3")}, []))
    assert text == "h1, h2, 10.0.0.3 (h3)\n" + DESCRIBED.rstrip()


def test_a_host_says_what_it_lacks() -> None:
    facts = {**SERVER.facts, "user": "lab", "lacks": "io_uring: kernel.io_uring_disabled is 2; libaio: no room"}
    text = " ".join("\n".join(host_lines({"h1": replace(SERVER, facts=facts)}, [])).split())
    assert "lacks io_uring: kernel.io_uring_disabled is 2" in text and "lacks libaio: no room" in text
    assert "runs as lab: block devices and some facts may need root" in text


def test_a_host_that_tells_little_is_shown_with_what_it_tells() -> None:
    lines = host_lines({"h1": replace(HELLO, hostname="h1", facts={})}, [])
    assert lines[:3] == ["h1", "    Linux 6.1, x86_64, glibc 2.36, Python 3.11.7", "    2 CPUs"]


def test_what_differs_and_who_cannot_be_used_come_last_and_every_line_fits() -> None:
    slow = replace(SERVER, facts={**SERVER.facts, "governor": "powersave"})
    hosts = {f"h{i:03}": named(f"h{i:03}", slow if i == 7 else SERVER) for i in range(100)}
    faults = [HostFault(f"b{i}", "127.0.0.1 port 9 refuses the connection", "start sshd there " * 5) for i in range(3)]
    lines = host_lines(hosts, faults)
    assert max(map(len, lines)) <= WIDTH
    text = "\n".join(lines)
    assert "The hosts differ in what makes latency:\n    governor: performance on 99 hosts, powersave on h007\n" in text
    assert text.index("3 hosts cannot be used:") > text.index("The hosts differ")
    assert text.count("Rocky Linux") == 1  # the governor is no part of what a host is


PLAN = """\
name: some are bad
backend: "null"
hosts:
  - {{ name: "h[1-2]", launcher: local }}
  - {{ name: misspelt.invalid, connect_timeout: 5s }}
  - {{ name: refuses, address: 127.0.0.1, port: 9, ssh_config: false }}
  - {{ name: odd, command: echo hello }}
luns: {{ files: {file} }}
workloads: {{ w: {{ fraction_read: 100% }} }}
steps: [ go: it ]
"""


@pytest.mark.slow
@pytest.mark.parametrize("command", [("check", "--hosts"), ("devices",)])
def test_a_bad_host_hides_no_other(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "f").write_bytes(bytes(1 << 20))
    done = ivypy(*command, str(written(tmp_path, PLAN.format(file=tmp_path / "f"))))
    assert done.returncode == 3, done.stdout + done.stderr
    assert "h1 (" in done.stdout and "h2 (" in done.stdout and "backends: " in done.stdout
    last = done.stdout.partition("3 hosts cannot be used:")[2]
    assert all(f"    {host}: " in last for host in ("misspelt.invalid", "refuses", "odd"))
    if command == ("devices",):
        assert "h1: 1 LUN selected" in last and "h2: 1 LUN selected" in last
        assert "Nothing is overwritten." in last


@pytest.mark.slow
def test_without_any_usable_host_it_says_why(tmp_path: Path) -> None:
    text = PLAN.format(file=tmp_path / "f").replace('  - { name: "h[1-2]", launcher: local }\n', "")
    done = ivypy("devices", str(written(tmp_path, text)))
    assert done.returncode == 3 and done.stdout.startswith("3 hosts cannot be used:"), done.stdout + done.stderr
