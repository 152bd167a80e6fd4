"""The facts of this host, with those that make latency: idle states, clock speed, mitigations, interrupts.

Rule: as in `kernel_files`: what the machine does not report is left out, never guessed. All paths are below `root`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ...protocol.payload import Attribute
from ..devices.block_devices import ROOT
from ..kernel_files import cpu_list, first_line, number_in

CPUS: Final = "sys/devices/system/cpu"
LONGEST: Final = 300  # characters of a fact


def host_facts(root: Path = ROOT) -> dict[str, Attribute]:
    """The facts of `hosts.csv`, by column; those that are not known are absent."""
    cpus = root / CPUS
    facts: dict[str, Attribute | None] = {
        "distribution": distribution(root),
        "hardware": hardware(root),
        "cpu_model": cpu_model(root),
        "cpus": len(cpu_list(first_line(cpus / "online"))) or None,
        "memory": memory(root),
        "numa_nodes": len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None,
        "smt": {"1": "on", "0": "off"}.get(first_line(cpus / "smt/active")),
        "idle_driver": first_line(cpus / "cpuidle/current_driver"),
        "idle_governor": first_line(cpus / "cpuidle/current_governor_ro"),
        "idle_states": idle_states(cpus),
        "frequency_driver": of_all(cpus.glob("cpu[0-9]*/cpufreq/scaling_driver")),
        "governor": of_all(cpus.glob("cpu[0-9]*/cpufreq/scaling_governor")),
        "turbo": turbo(cpus),
        "mitigations": mitigations(root),
        "isolated_cores": first_line(cpus / "isolated"),
        "irqbalance": "running" if runs("irqbalance", root) else "not running",
        "oom_score_adj": number_in(root / "proc/self/oom_score_adj"),
        "transparent_huge_pages": chosen(first_line(root / "sys/kernel/mm/transparent_hugepage/enabled")),
    }  # fmt: skip
    return {name: value[:LONGEST] if isinstance(value, str) else value for name, value in facts.items() if value}


def distribution(root: Path) -> str:
    """Such as "Debian GNU/Linux 12 (bookworm)"."""
    for place in ("etc/os-release", "usr/lib/os-release"):
        for line in _lines(root / place):
            name, _, value = line.partition("=")
            if name == "PRETTY_NAME":
                return value.strip("\"'")
    return ""


def hardware(root: Path) -> str:
    """The machine's vendor and model."""
    folder = root / "sys/class/dmi/id"
    return " ".join(filter(None, (first_line(folder / "sys_vendor"), first_line(folder / "product_name"))))


def cpu_model(root: Path) -> str:
    """As the CPU calls itself; arm64 has but numbers: "CPU implementer 0x41, part 0xd0c"."""
    described: dict[str, str] = {}
    for line in _lines(root / "proc/cpuinfo"):
        name, _, value = line.partition(":")
        described.setdefault(name.strip(), value.strip())
    if model := described.get("model name") or described.get("Model"):
        return model
    part = described.get("CPU part")
    return f"CPU implementer {described.get('CPU implementer', '?')}, part {part}" if part else ""


def memory(root: Path) -> int | None:
    """Bytes."""
    for line in _lines(root / "proc/meminfo"):
        name, _, value = line.partition(":")
        if name == "MemTotal":
            return int(value.split()[0]) * 1024
    return None


def idle_states(cpus: Path) -> str:
    """Of the first core, with their exit latency: "POLL 0 us, C1 2 us, C6 133 us (off)"."""
    states = []
    for folder in sorted((cpus / "cpu0/cpuidle").glob("state*"), key=lambda folder: int(folder.name[5:])):
        off = " (off)" if number_in(folder / "disable") else ""
        states.append(f"{first_line(folder / 'name')} {number_in(folder / 'latency') or 0} us{off}")
    return ", ".join(states)


def turbo(cpus: Path) -> str:
    """ "on" or "off", by intel_pstate or by cpufreq; "" where neither tells."""
    if (off := number_in(cpus / "intel_pstate/no_turbo")) is not None:
        return "off" if off else "on"
    boost = number_in(cpus / "cpufreq/boost")
    return "" if boost is None else "on" if boost else "off"


def mitigations(root: Path) -> str:
    """The kernel's mitigations as configured, and those in effect: "auto: retbleed, spectre_v2"."""
    configured = [word for word in first_line(root / "proc/cmdline").split() if word.startswith("mitigations=")]
    folder = root / CPUS / "vulnerabilities"
    done = [entry.name for entry in sorted(folder.glob("*")) if first_line(entry).startswith("Mitigation")]
    if not configured and not folder.is_dir():
        return ""
    return (configured[-1].partition("=")[2] if configured else "auto") + (f": {', '.join(done)}" if done else "")


def runs(name: str, root: Path) -> bool:
    """Whether a process of that name runs."""
    return any(first_line(comm) == name for comm in (root / "proc").glob("[0-9]*/comm"))


def of_all(files: Iterable[Path]) -> str:
    """The word that all files hold, or how often each: "powersave on 2, performance on 62"."""
    words = Counter(word for file in files if (word := first_line(file)))
    if len(words) <= 1:
        return next(iter(words), "")
    return ", ".join(f"{word} on {count}" for word, count in sorted(words.items()))


def chosen(text: str) -> str:
    """The one in brackets, of "always [madvise] never"."""
    return text.partition("[")[2].partition("]")[0]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []


def largest_latency_us(root: Path = ROOT) -> int | None:
    """The longest exit latency of an idle state that may be entered, in us, from /dev/cpu_dma_latency."""
    try:
        return int.from_bytes((root / "dev/cpu_dma_latency").read_bytes()[:4], "little", signed=True)
    except OSError:
        return None


def keep_latency(most_us: int, root: Path = ROOT) -> str:
    """Hold it for as long as this process lives. Returns why that has no effect; "" where it has."""
    try:
        hold_latency(most_us, root)
    except OSError as error:
        return (
            f"cpu_dma_latency has no effect: /dev/cpu_dma_latency cannot be written ({error.strerror}). Only root may: "
            "let `python` begin with sudo -n, or leave cpu_dma_latency out of the plan"
        )
    return ""


def hold_latency(most_us: int, root: Path = ROOT) -> int:
    """Keep cores out of idle states with a longer exit latency for as long as the descriptor is open.

    Raises OSError: only root may, and some virtual machines and containers have no such device.
    """
    held = os.open(root / "dev/cpu_dma_latency", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(held, most_us.to_bytes(4, "little", signed=True))
    except OSError:
        os.close(held)
        raise
    return held
