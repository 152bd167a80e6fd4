"""What a host is and what makes its latency, from made trees of small files and from this machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ivypy.master.output.column import names
from ivypy.master.output.columns import HOST_FACTS
from ivypy.protocol import messages as m
from ivypy.protocol.payload import EngineOptions, Notice, NoticeKind
from ivypy.protocol.text import why_unsendable
from ivypy.slave.host.host_facts import hold_latency, host_facts, keep_latency, largest_latency_us
from ivypy.slave.link.host_info import make_hello, sendable_facts
from tests.support.slave_client import Client
from tests.support.sysfs_tree import SysfsTree

CPU = "sys/devices/system/cpu"
SERVER = {
    "etc/os-release": 'NAME="Rocky Linux"\nPRETTY_NAME="Rocky Linux 9.4 (Blue Onyx)"\n',
    "sys/class/dmi/id/sys_vendor": "Dell Inc.",
    "sys/class/dmi/id/product_name": "PowerEdge R650",
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Xeon Gold 6338\n\nprocessor\t: 1\nmodel name\t: Xeon Gold 6338\n",
    "proc/meminfo": "MemTotal:       263856704 kB\nMemFree:         1000 kB\n",
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz mitigations=auto,nosmt quiet",
    "proc/1/comm": "systemd",
    "proc/812/comm": "irqbalance",
    f"{CPU}/online": "0-1",
    f"{CPU}/isolated": "",
    f"{CPU}/smt/active": "0",
    f"{CPU}/cpuidle/current_driver": "intel_idle",
    f"{CPU}/cpuidle/current_governor_ro": "menu",
    f"{CPU}/cpu0/cpuidle/state0/name": "POLL",
    f"{CPU}/cpu0/cpuidle/state0/latency": "0",
    f"{CPU}/cpu0/cpuidle/state1/name": "C1",
    f"{CPU}/cpu0/cpuidle/state1/latency": "2",
    f"{CPU}/cpu0/cpuidle/state10/name": "C6",
    f"{CPU}/cpu0/cpuidle/state10/latency": "133",
    f"{CPU}/cpu0/cpuidle/state10/disable": "1",
    f"{CPU}/cpu0/cpufreq/scaling_driver": "intel_pstate",
    f"{CPU}/cpu1/cpufreq/scaling_driver": "intel_pstate",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "performance",
    f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave",
    f"{CPU}/intel_pstate/no_turbo": "1",
    f"{CPU}/vulnerabilities/spectre_v2": "Mitigation: Enhanced IBRS",
    f"{CPU}/vulnerabilities/meltdown": "Not affected",
    f"{CPU}/vulnerabilities/mds": "Mitigation: Clear CPU buffers",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "sys/devices/system/node/node0/cpulist": "0-1",
}


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return root


def test_a_server_and_all_that_makes_its_latency(tmp_path: Path) -> None:
    found = host_facts(tree(tmp_path, SERVER))
    assert found == {
        "distribution": "Rocky Linux 9.4 (Blue Onyx)",
        "hardware": "Dell Inc. PowerEdge R650",
        "cpu_model": "Xeon Gold 6338",
        "cpus": 2,
        "memory": 263856704 * 1024,
        "numa_nodes": 1,
        "smt": "off",
        "idle_driver": "intel_idle",
        "idle_governor": "menu",
        "idle_states": "POLL 0 us, C1 2 us, C6 133 us (off)",
        "frequency_driver": "intel_pstate",
        "governor": "performance on 1, powersave on 1",
        "turbo": "off",
        "mitigations": "auto,nosmt: mds, spectre_v2",
        "irqbalance": "running",
        "transparent_huge_pages": "madvise",
    }
    assert found.keys() | {"isolated_cores", "oom_score_adj", "user", "lacks"} == {*names(HOST_FACTS)}


@pytest.mark.parametrize(
    ("files", "fact", "value"),
    [
        ({}, "governor", None),  # a virtual machine
        ({}, "turbo", None),
        ({}, "mitigations", None),
        ({}, "irqbalance", "not running"),
        ({f"{CPU}/cpufreq/boost": "1"}, "turbo", "on"),
        ({f"{CPU}/cpufreq/boost": "0"}, "turbo", "off"),
        ({f"{CPU}/vulnerabilities/mds": "Vulnerable"}, "mitigations", "auto"),
        ({f"{CPU}/vulnerabilities/mds": "Vulnerable", "proc/cmdline": "mitigations=off"}, "mitigations", "off"),
        (
            {"proc/cpuinfo": "CPU implementer\t: 0x41\nCPU part\t: 0xd0c"},
            "cpu_model",
            "CPU implementer 0x41, part 0xd0c",
        ),
        ({"usr/lib/os-release": "PRETTY_NAME='SLES 15 SP5'"}, "distribution", "SLES 15 SP5"),
        ({f"{CPU}/cpu{i}/cpufreq/scaling_governor": "performance" for i in range(64)}, "governor", "performance"),
    ],
)
def test_what_is_not_reported_is_left_out(files: dict[str, str], fact: str, value: str | None, tmp_path: Path) -> None:
    assert host_facts(tree(tmp_path, files)).get(fact) == value


def test_this_machine_answers() -> None:
    facts = make_hello().facts
    assert facts.keys() <= {*names(HOST_FACTS)}
    assert isinstance(facts["memory"], int) and facts["memory"] > 1 << 20
    assert facts["cpus"] == os.sysconf("SC_NPROCESSORS_ONLN")


def test_firmware_that_cannot_be_sent_is_left_out(tmp_path: Path) -> None:
    assert why_unsendable("A\x1b[31m")
    assert sendable_facts({"hardware": "A\x1b[31m", "cpus": 2}) == {"cpus": 2}


def test_latency_of_idle_states_is_held_by_an_open_file() -> None:
    before = largest_latency_us()
    if before is None:
        pytest.skip("this machine lacks /dev/cpu_dma_latency, or the right to open it")
    held = hold_latency(0)
    try:
        assert largest_latency_us() == 0
    finally:
        os.close(held)  # others on this machine may hold it now


def test_a_slave_holds_it_from_prepare_to_its_end() -> None:
    if largest_latency_us() is None:
        pytest.skip("this machine lacks /dev/cpu_dma_latency, or the right to open it")
    with Client() as slave:
        slave.hear()
        slave.do(m.Prepare, engine=EngineOptions("null", 1, cpu_dma_latency=0), lease_ns=10**10)
        assert not any(isinstance(one, Notice) for one in slave.all)
        folder = f"/proc/{slave.process.pid}/fd"
        assert "/dev/cpu_dma_latency" in {os.readlink(f"{folder}/{one}") for one in os.listdir(folder)}
        assert largest_latency_us() == 0


def test_a_slave_that_may_not_hold_it_goes_on_and_says_so() -> None:
    script = "import ivypy.slave.link.command_server as o, ivypy.slave.__main__ as s\n"
    script += "o.keep_latency = lambda most_us: 'no effect'\ns.main()"
    with Client("-c", script) as slave:
        slave.hear()
        slave.do(m.Prepare, engine=EngineOptions("null", 1, cpu_dma_latency=0), lease_ns=10**10)
        assert Notice(NoticeKind.CPU_DMA_LATENCY, "no effect") in slave.all


def test_a_latency_that_the_kernel_does_not_take_is_refused() -> None:
    with Client() as slave:
        slave.hear()
        options = EngineOptions("null", 1, cpu_dma_latency=1 << 40)
        ((_, why),) = slave.refused(m.Prepare, engine=options, lease_ns=10**10)
        assert "us is not in 0 to 1000000" in why


def test_a_host_where_it_has_no_effect_says_why_and_what_to_do(tmp_path: Path) -> None:
    said = keep_latency(0, tmp_path)
    assert "has no effect" in said and "No such file or directory" in said and "sudo -n" in said
    if os.geteuid() == 0 and Path("/dev/cpu_dma_latency").exists():
        script = (
            "import os; from ivypy.slave.host.host_facts import keep_latency; os.setuid(65534); print(keep_latency(0))"
        )
        assert (
            "Permission denied"
            in subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
        )


QUEUE = {
    "queue__write_cache": "write back", "queue__fua": "1", "queue__max_sectors_kb": "1280", "queue__zoned": "none",
    "queue__wbt_lat_usec": "2000", "queue__nomerges": "0", "queue__rq_affinity": "1", "queue__io_poll": "0",
}  # fmt: skip


def test_a_disks_queue_firmware_and_interrupts(tmp_path: Path) -> None:
    made = SysfsTree(tmp_path)
    pci = "pci0000:00/0000:00:03.0"
    nvme = made.disk(f"{pci}/nvme/nvme0", "nvme0n1", "259:0", **QUEUE)
    made.write(nvme.parents[1], firmware_rev="GXA7802Q")
    made.write(nvme / "nvme0n1p1", size="1024", dev="259:1", partition="1")
    (tmp_path / "dev/nvme0n1p1").touch()
    for irq, cores in (("31", "0"), ("32", "2-3")):
        made.write(tmp_path / "sys/devices" / pci / "msi_irqs", **{irq: "msix"})
        made.write(tmp_path / "proc/irq" / irq, effective_affinity_list=cores, smp_affinity_list="0-3")
    made.disk("pci0000:00/0000:00:04.0/host0/target0:0:0/0:0:0:0", "sda", "8:0")
    made.write(tmp_path / "sys/devices/pci0000:00/0000:00:04.0/host0/target0:0:0/0:0:0:0", rev="0105")
    found = made.attributes()
    disk = {name: found["nvme0n1"].get(name) for name in ("firmware", "irq_cores", *(q[7:] for q in QUEUE))}
    assert disk == {
        "firmware": "GXA7802Q", "irq_cores": "0,2-3", "write_cache": "write back", "fua": 1, "max_sectors_kb": 1280,
        "zoned": "none", "wbt_lat_usec": 2000, "nomerges": 0, "rq_affinity": 1, "io_poll": 0,
    }  # fmt: skip
    partition = found["nvme0n1p1"]
    assert (partition["write_cache"], partition["irq_cores"], "firmware" in partition) == ("write back", "0,2-3", False)
    assert found["sda"]["firmware"] == "0105"
    assert not {"irq_cores", "write_cache", "fua"} & found["sda"].keys()
