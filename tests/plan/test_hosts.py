"""Hosts: ranges, defaults, launchers."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.errors import PlanError
from ivypy.master.hosts.host_spec import HostSpec, Launcher
from ivypy.master.plan.load import Instead, load, read
from ivypy.master.plan.read.yaml_positions import PlanFaults
from ivypy.master.plan.select.host_ranges import expand
from tests.support.plan import completed


def hosts(fragment: str) -> tuple[HostSpec, ...]:
    return read(completed(fragment), "p.yaml").hosts


@pytest.mark.parametrize(
    "text, names",
    [
        ("lab", ["lab"]),
        ("lab[3]", ["lab3"]),
        ("lab[1-3]", ["lab1", "lab2", "lab3"]),
        ("lab[08-11]", ["lab08", "lab09", "lab10", "lab11"]),
        ("lab[8-11]", ["lab8", "lab9", "lab10", "lab11"]),
        ("lab[1,3-5]", ["lab1", "lab3", "lab4", "lab5"]),
        ("lab[001,2]", ["lab001", "lab2"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("db[1-2].example.com", ["db1.example.com", "db2.example.com"]),
        ("10.0.0.[7-8]", ["10.0.0.7", "10.0.0.8"]),
        ("fe80::1", ["fe80::1"]),
    ],
)
def test_host_ranges_are_expanded(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize("text", ["lab[]", "lab[1-]", "lab[-1]", "lab[a]", "lab]", "lab[[1]]", "lab[1-2-3]", "l[1]]"])
def test_malformed_host_ranges_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"write for example lab\[01-16\]"):
        expand(text)


@pytest.mark.parametrize("text", ["h[1-99999]", "h[1-999]x[1-999]", "h[0-999999999999999999999]"])
def test_a_range_of_absurdly_many_names_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="10,000"):
        expand(text)


@given(st.integers(0, 9999), st.integers(0, 200), st.integers(1, 6))
def test_a_range_is_its_numbers_in_the_width_of_its_start(start: int, more: int, width: int) -> None:
    first, last = str(start).zfill(width), str(start + more).zfill(width)
    if len(first) != len(last) and first.startswith("0") and len(first) > 1:
        return
    names = expand(f"h[{first}-{last}]")
    assert [int(name[1:]) for name in names] == list(range(start, start + more + 1))
    assert all(len(name) - 1 >= len(first) for name in names)


def test_a_plan_without_hosts_runs_here() -> None:
    assert hosts("name: x") == (HostSpec("local", Launcher.LOCAL, "local"),)


def test_hosts_inherit_ssh_settings_but_this_machine_does_not() -> None:
    made = hosts("""\
ssh: { user: perf, port: 2222, identity: /k, known_hosts: /h, connect_timeout: 3s, python: sudo -n python3.11 }
hosts:
  - lab[1-2]
  - { name: db, address: 10.0.0.9, user: root, cache_dir: /var/cache/ivypy, ssh_config: false }
  - local
""")
    common = {"port": 2222, "identity": "/k", "known_hosts": "/h", "connect_timeout_s": 3.0}
    sudo = ("sudo", "-n", "python3.11")
    assert made == (
        HostSpec("lab1", Launcher.SSH, "lab1", user="perf", python=sudo, **common),  # type: ignore[arg-type]
        HostSpec("lab2", Launcher.SSH, "lab2", user="perf", python=sudo, **common),  # type: ignore[arg-type]
        HostSpec(
            "db", Launcher.SSH, "10.0.0.9", user="root", python=sudo, cache_dir="/var/cache/ivypy", ssh_config=False,
            **common,  # type: ignore[arg-type]
        ),
        HostSpec("local", Launcher.LOCAL, "local"),
    )  # fmt: skip


def test_a_command_reaches_any_host() -> None:
    made = hosts('hosts: [ { name: "ns[1-2]", command: "ip netns exec {name} env A={address}" } ]')
    assert made == (
        HostSpec("ns1", Launcher.COMMAND, "ns1", command=("ip", "netns", "exec", "ns1", "env", "A=ns1")),
        HostSpec("ns2", Launcher.COMMAND, "ns2", command=("ip", "netns", "exec", "ns2", "env", "A=ns2")),
    )


def test_name_and_address_ranges_are_paired() -> None:
    made = hosts('hosts: [ { name: "a[1-3]", address: "10.0.0.[11-13]" } ]')
    assert [(h.name, h.address) for h in made] == [("a1", "10.0.0.11"), ("a2", "10.0.0.12"), ("a3", "10.0.0.13")]


def test_a_home_folder_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/perf")
    made = hosts("hosts: lab\nssh: { identity: ~/.ssh/k, known_hosts: ~/.ssh/h, cache_dir: ~/c }")[0]
    assert (made.identity, made.known_hosts) == ("/home/perf/.ssh/k", "/home/perf/.ssh/h")
    assert made.cache_dir == "~/c"  # a folder on the host, not here


JOB = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2,4],big"}


@pytest.mark.parametrize(
    ("fragment", "names"),
    [
        ("hosts: { slurm: true }", ["n1", "n2", "n4", "big"]),
        ("hosts: slurm", ["n1", "n2", "n4", "big"]),
        ("hosts: [ 'n[1-2]' ]", ["n1", "n2"]),
    ],
)
def test_nodes_of_an_allocation_are_started_by_srun(
    fragment: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in JOB.items():
        monkeypatch.setenv(name, value)
    found = hosts(fragment)
    assert [host.name for host in found] == names
    for host in found:
        assert host.launcher is Launcher.COMMAND
        assert (host.command[0], host.command[1], host.command[-1]) == ("srun", "--jobid=7", f"--nodelist={host.name}")


@pytest.mark.parametrize("fragment", ["hosts: [ n1, other ]", "hosts: [ { name: n1, launcher: ssh } ]"])
def test_hosts_outside_of_the_allocation_or_with_a_launcher_are_as_ever(
    fragment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in JOB.items():
        monkeypatch.setenv(name, value)
    assert hosts(fragment)[-1].launcher is Launcher.SSH


def test_without_an_allocation_slurm_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(PlanFaults, match="no Slurm allocation here"):
        hosts("hosts: { slurm: true }")


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ("a[1", "has no partner"),
        ("a,a", "names a twice"),
        ("a b", "cannot be a host's name"),
        ("slurm", "no Slurm allocation here"),
    ],
)
def test_faults_of_the_option_name_it(given: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    path = tmp_path / "p.yaml"
    path.write_text(completed("hosts: lab1"))
    with pytest.raises(PlanError, match=f"^--hosts.*{fault}"):
        load(path, {}, Instead(hosts=given))
    assert [host.name for host in load(path, {}, Instead(hosts="x[1-2],local")).hosts] == ["x1", "x2", "local"]
