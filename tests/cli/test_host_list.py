"""What `ivypy devices` and `ivypy check --connect` say of hosts: all of them, whatever is wrong with some."""

from dataclasses import replace
from pathlib import Path

import pytest

from ivypy.master.cli.host_list import host_lines
from ivypy.master.errors import HostFault
from ivypy.master.hosts.bootstrap_client import MARK
from ivypy.protocol.messages import Hello
from ivypy.slave.engine._engine import backends
from ivypy.slave.workloads.backend_choice import why_not
from tests.support.real_runs import answered, ivypy, written
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
    Rocky Linux 9.4 (Blue Onyx), Linux 5.14.0-427.el9.x86_64, x86_64, glibc 2.36, Python 3.11.7
    Dell Inc. PowerEdge R650, 128 CPUs (2 for ivypy), Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz, \
2 NUMA nodes, 256 GiB of memory
    backends: libaio, null
    clock tsc, governor performance
"""


def named(name: str, hello: Hello = SERVER) -> Hello:
    return replace(hello, hostname=name)


def test_hosts_that_are_alike_are_described_once_and_by_all_their_names() -> None:
    text = "\n".join(
        host_lines({"h1": named("h1"), "h2": named("h2.lab.example"), "10.0.0.3": named("h3")}, [], "libaio")
    )
    assert text == "h1, h2, 10.0.0.3 (h3)\n" + DESCRIBED.rstrip()


@pytest.mark.parametrize(
    ("clocks", "facts", "line"),
    [
        (("tsc",), {"turbo": "off", "smt": "on"}, "    clock tsc, governor performance, turbo off, hyper-threading on"),
        (("tsc", "hpet"), {}, "    governor performance"),
        (("tsc", "tsc"), {"cpus": 64}, "all hosts: clock tsc, governor performance"),
        (("", ""), {"governor": ""}, ""),
        ((), {}, ""),
    ],
)
def test_settings_that_all_hosts_share_are_said_once(clocks: tuple[str, ...], facts: dict[str, str], line: str) -> None:
    """What differs has a line below."""
    hellos = {}
    for at, clock in enumerate(clocks):
        own = {**SERVER.facts, **(facts if "cpus" not in facts or at else {})}
        hellos[f"h{at}"] = replace(SERVER, clock_source=clock, facts=own)
    lines = host_lines(hellos, [], "libaio")
    said = [one for one in lines if "governor" in one or ("clock" in one and ":" not in one)]
    assert said == ([line] if line else [])
    assert any(one.startswith("    clock_source: ") for one in lines) is (len({*clocks}) == 2)


def test_a_host_says_what_it_lacks() -> None:
    facts = {**SERVER.facts, "user": "lab", "lacks": "io_uring: kernel.io_uring_disabled is 2; libaio: no room"}
    text = " ".join("\n".join(host_lines({"h1": replace(SERVER, facts=facts)}, [], "libaio")).split())
    assert "lacks io_uring: kernel.io_uring_disabled is 2" in text and "lacks libaio: no room" in text
    assert "runs as lab: block devices and some facts may need root" in text


@pytest.mark.parametrize(("backend", "named"), [("nvme", True), ("auto", False), ("io_uring", False)])
def test_that_nvme_is_missing_matters_where_the_plan_wants_it(backend: str, named: bool) -> None:
    facts = {**SERVER.facts, "lacks": f"nvme: {why_not('nvme')}"}
    text = " ".join("\n".join(host_lines({"h1": replace(SERVER, facts=facts)}, [], backend)).split())
    assert ("lacks nvme: " in text) is named


@pytest.mark.skipif("nvme" in backends(), reason="this machine has an NVMe namespace")
@pytest.mark.slow
def test_check_names_the_plans_nvme_backend_among_what_a_host_lacks(tmp_path: Path) -> None:
    text = (
        "name: n\nengine: {{ backend: nvme }}\nhosts: [ {{ name: h, launcher: local }} ]\n"
        + PLAN[PLAN.index("luns:") :]
    )
    done = answered("check", "--connect", str(written(tmp_path, text.format(file="/x"))))
    assert f"lacks nvme: {why_not('nvme')}" in " ".join(done.stdout.split()), done.stdout


def test_a_host_that_tells_little_is_shown_with_what_it_tells() -> None:
    lines = host_lines({"h1": replace(HELLO, hostname="h1", facts={})}, [], "libaio")
    assert lines[:3] == ["h1", "    Linux 6.1, x86_64, glibc 2.36, Python 3.11.7", "    2 CPUs"]


def test_what_differs_and_who_cannot_be_used_come_last() -> None:
    slow = replace(SERVER, facts={**SERVER.facts, "governor": "powersave"})
    hosts = {f"h{i:03}": named(f"h{i:03}", slow if i == 7 else SERVER) for i in range(100)}
    faults = [HostFault(f"b{i}", "127.0.0.1 port 9 refuses the connection", "start sshd there " * 5) for i in range(3)]
    lines = host_lines(hosts, faults, "auto")
    text = "\n".join(lines)
    assert "The hosts differ in what makes latency:\n    governor: performance on 99 hosts, powersave on h007\n" in text
    assert text.index("3 hosts cannot be used:\n    b[0-2]: 127.0.0.1 port 9") > text.index("The hosts differ")
    assert text.count("Rocky Linux") == 1  # the governor is no part of what a host is


PLAN = """\
name: some are bad
engine: {{ backend: "null" }}
hosts:
  - {{ name: "h[1-2]", launcher: local }}
  - {{ name: misspelt.invalid, connect_timeout: 5s }}
  - {{ name: "refuses[1-2]", address: "127.0.0.[1-2]", port: 9, ssh_config: false }}
  - {{ name: odd, command: echo hello }}
luns: {{ files: {file} }}
workloads: {{ w: {{ fraction_read: 100% }} }}
steps: [ go: it ]
"""


@pytest.mark.slow
@pytest.mark.parametrize("command", [("check", "--connect"), ("devices",)])
def test_a_bad_host_hides_no_other(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "f").write_bytes(bytes(1 << 20))
    done = ivypy(*command, str(written(tmp_path, PLAN.format(file=tmp_path / "f"))))
    assert done.returncode == 3, done.stdout + done.stderr
    assert "h1 (" in done.stdout and "h2 (" in done.stdout and "backends: " in done.stdout
    last = done.stdout.partition("4 hosts cannot be used:")[2]
    assert all(f"    {host}: " in last for host in ("misspelt.invalid", "refuses[1-2]", "odd"))
    assert " ".join(last.split()).count("127.0.0.[1-2] port 9 refuses the connection") == 1
    if command == ("devices",):
        assert "h1: 1 LUN selected" in last and "h2: 1 LUN selected" in last
        assert "Nothing is overwritten." in last


@pytest.mark.slow
def test_without_any_usable_host_it_says_why(tmp_path: Path) -> None:
    text = PLAN.format(file=tmp_path / "f").replace('  - { name: "h[1-2]", launcher: local }\n', "")
    done = answered("devices", str(written(tmp_path, text)))
    assert done.returncode == 3 and done.stdout.startswith("4 hosts cannot be used:"), done.stdout + done.stderr


@pytest.mark.parametrize("words", [("--hosts", "{plan}"), ("{plan}", "--hosts")], ids=" ".join)
def test_the_flag_by_its_old_name_says_the_new_one(tmp_path: Path, words: tuple[str, ...]) -> None:
    plan = written(tmp_path, PLAN.format(file=tmp_path / "f"))
    done = answered("check", *(word.format(plan=plan) for word in words))
    assert done.returncode == 2
    assert "--hosts needs the names of hosts" in done.stderr
    assert done.stderr.endswith(f"to connect to those of the plan: ivypy check --connect {plan}\n")


def test_check_without_a_plan_says_what_is_missing() -> None:
    done = answered("check", "--connect")
    assert done.returncode == 2 and "Missing argument 'PLAN.yaml'" in done.stderr


@pytest.mark.slow
def test_check_takes_other_hosts_as_run_does(tmp_path: Path) -> None:
    plan = str(written(tmp_path, PLAN.format(file=tmp_path / "f")))
    done = answered("check", "--hosts", "lab[1-2]", plan)
    assert done.returncode == 0, done.stderr
    assert "lab1" in done.stdout and "misspelt" not in done.stdout


@pytest.mark.slow
def test_check_connects_to_other_hosts(tmp_path: Path) -> None:
    text = PLAN.format(file=tmp_path / "f").replace("h[1-2]", "h[1-3]")
    done = answered("check", "--connect", "--hosts", "nowhere[1-2].invalid", str(written(tmp_path, text)))
    assert done.returncode == 3
    assert "2 hosts cannot be used:" in done.stdout and "misspelt.invalid" not in done.stdout


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("echo first >&2; echo no room for me >&2; exit 3",
         "it exited with status 3 (no room for me); its last words: first | no room for me"),
        ("echo a notice >&2; exit 0", "it closed the connection; its last words: a notice"),
        ("exit 0", "it closed the connection; it wrote nothing to stderr"),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_a_slave_that_ends_at_once_is_quoted_since_no_folder_has_its_log(tmp_path: Path, end: str, said: str) -> None:
    program = tmp_path / "slave"
    program.write_text(f"#!/bin/sh\necho '{MARK}run'\nread -r _\n{end}\n")
    program.chmod(0o755)
    text = PLAN.format(file=tmp_path / "f").split("hosts:")[0]
    plan = f"{text}hosts: [ {{ name: h, command: {program} }} ]\n" + PLAN[PLAN.index("luns:") :].format(file="/x")
    done = answered("check", "--connect", str(written(tmp_path, plan)))
    assert done.returncode == 3
    assert " ".join(done.stdout.partition("1 host cannot be used:")[2].split()) == f"h: {said}"
