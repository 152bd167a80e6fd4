"""`ivypy run` over real sshds in network namespaces, with this machine beside them."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.support.lab import Lab
from tests.support.real_runs import (
    answered,
    hosts_yaml,
    only_late,
    presence,
    run,
    start,
    wait_for_event,
    wait_for_line,
    written,
)

pytestmark = pytest.mark.slow

PLAN = """\
name: lab
engine: {{ threads: 1 }}
hosts:
{hosts}
luns: {{ create: {{ path: "{path}-{{}}", size: 8MiB, count: 2 }} }}
workloads:
  w: {{ iosequencer: random_steady, iops: 200, maxtags: 4, fraction_read: 75% }}
connectors: {{ {connectors} }}
rollups: [ host ]
defaults: {{ subinterval: 1s, warmup: 1s, measure: {measure}, disturbed: keep }}
steps: [ go: one ]
"""


def a_plan(tmp_path: Path, hosts: str, measure: str = "5s", connectors: str = "host: off") -> Path:
    text = PLAN.format(hosts=hosts, path=tmp_path / "{host}", measure=measure, connectors=connectors)
    return written(tmp_path, text)


def two_hosts(tmp_path: Path, lab: Lab, measure: str) -> Path:
    return a_plan(tmp_path, hosts_yaml([host.spec() for host in lab.hosts[:2]]), measure)


def test_a_run_on_three_hosts_and_this_machine_adds_up(tmp_path: Path, lab: Lab) -> None:
    hosts = hosts_yaml([host.spec() for host in lab.hosts]) + "\n  - local"
    done = run(a_plan(tmp_path, hosts, "2s", ""), tmp_path / "runs")
    assert done.code in (0, 8), done.out + done.err
    (whole,) = done.rows("summary.all.csv")
    parts = done.rows("summary.host.csv")
    assert len(parts) == 4 and presence(whole) == "4/4" and only_late(whole["reasons"])
    for column in ("due", "overall_service_count", "read_service_count"):
        assert float(whole[column]) == sum(float(part[column]) for part in parts)
    assert float(whole["due"]) / float(whole["length_s"]) == pytest.approx(4 * 2 * 200, rel=0.01)
    assert float(whole["overall_service_count"]) > float(whole["due"]) / 4, "on a busy machine, too"
    hostnames = {row["host"]: row["hostname"] for row in done.rows("hosts.csv")}
    assert hostnames.keys() == {*(host.name for host in lab.hosts), "local"}
    for host in lab.hosts:
        assert '"type":"hello"' in (done.folder / "log" / f"{host.name}.log").read_text()


def test_the_command_launcher_reaches_a_namespace(tmp_path: Path, namespaces: Lab) -> None:
    spec = namespaces.hosts[0].command_spec(name="inside")
    done = run(a_plan(tmp_path, hosts_yaml([spec]), "2s"), tmp_path / "runs")
    assert only_late(done.rows("summary.all.csv")[0]["reasons"]), done.out + done.err
    assert done.rows("hosts.csv")[0]["launcher"] == "command"


def test_every_unusable_host_is_named_before_the_run(tmp_path: Path, lab: Lab) -> None:
    good, wrong_key, nobody = (host.spec() for host in lab.hosts)
    stranger = tmp_path / "stranger"
    os.system(f"ssh-keygen -q -t ed25519 -N '' -f {stranger}")
    lines = hosts_yaml([good]) + "\n" + hosts_yaml([wrong_key]).replace(str(wrong_key.identity), str(stranger))
    lines += "\n" + hosts_yaml([nobody]).replace(f"port: {nobody.port or 22}", "port: 9")
    done = run(a_plan(tmp_path, lines), tmp_path / "runs")
    assert done.code == 3 and len(done.err.strip().splitlines()) == 2, done.err
    assert wrong_key.name in done.err and nobody.name in done.err and "refuses" in done.err


def test_a_host_whose_cable_is_pulled_is_reported_lost(tmp_path: Path, namespaces: Lab) -> None:
    process = start(two_hosts(tmp_path, namespaces, "12s"), tmp_path / "runs")
    out = wait_for_line(process)
    with namespaces.hosts[1].unplugged():
        rest, err = process.communicate(timeout=60)
    assert process.returncode in (7, 8), out + rest + err
    (folder,) = (tmp_path / "runs").iterdir()
    (step,) = json.loads((folder / "run.json").read_text())["steps"]
    gone = namespaces.hosts[1].name
    said = [one for one in step["reasons"] if one.startswith(("host_late", "host_lost")) and gone in one]
    # On a busy machine it may have been late before its loss was found.
    assert [reason[:9] for reason in said] in (["host_lost"], ["host_late", "host_lost"])
    others = (one for one in step["reasons"] if one not in said and not one.startswith(("hosts_changed", "host_late")))
    assert only_late("; ".join(others))


def test_a_host_that_was_lost_takes_part_in_the_next_step(tmp_path: Path, lab: Lab) -> None:
    plan = two_hosts(tmp_path, lab, "10m")
    steps = "lease: 4s\nsteps: [ go: one, go: { name: two, measure: 2s } ]"
    plan.write_text(plan.read_text().replace("steps: [ go: one ]", steps))
    process = start(plan, tmp_path / "runs")
    out = wait_for_line(process)
    lab.hosts[1].sshds[0].kill_sessions()
    wait_for_event(tmp_path / "runs", "lost")
    assert answered("skip").returncode == 0
    rest, err = process.communicate(timeout=60)
    out += rest
    assert process.returncode in (7, 8), out + err
    (folder,) = (tmp_path / "runs").iterdir()
    one, two = json.loads((folder / "run.json").read_text())["steps"]
    assert "host_lost" in "".join(one["reasons"]) and "host_lost" not in "".join(two["reasons"]), out
    assert "it is connected again, and takes part from the next step on" in out


def test_hosts_stop_when_a_frozen_controller_renews_no_lease(tmp_path: Path, namespaces: Lab) -> None:
    """SIGSTOP for longer than the lease: the hosts stop by themselves, and say so when the controller wakes."""
    plan = two_hosts(tmp_path, namespaces, "30s")
    plan.write_text(plan.read_text().replace("engine:", "lease: 3s\nengine:"))
    process = start(plan, tmp_path / "runs")
    wait_for_line(process)
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(5)
    os.kill(process.pid, signal.SIGCONT)
    out, err = process.communicate(timeout=60)
    assert "its lease ran out" in out, out + err
    assert process.returncode in (7, 8)
