"""Lists what could be driven: the block devices of each host, who uses them, and a `select` to paste.

Rule: nothing is written. Devices are inspected as those of a plan are, by the write gate: "in use" is what a run would
refuse to write.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...protocol.payload import Lun
from ..exit_codes import ExitCode
from ..plan.load import read
from ..run.setup.consent import counted
from ..run.setup.discover_luns import LOOKING_S, block_devices
from ..text.scaled import scaled_size
from .host_list import host_lines, reachable

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.:-]*")  # means nothing else as a condition
EXAMPLE_FILE: Final = "/var/tmp/ivypy-quick.data"
_PLAN: Final = """\
{hosts}luns: {{ select: {{ kind: block }} }}
workloads: {{ none: {{ maxtags: 1 }} }}
steps: [ go: none ]
"""  # of which nothing but the hosts is used


async def inventory(hosts: str | None, user: str | None, show: Callable[[str], None]) -> tuple[ExitCode, str]:
    """Connect, list and inspect; `show` gets the page in parts.

    Returns HOSTS where one is missing, else OK; and a device that nobody uses, "" without one. Raises PlanFaults.
    """
    text = "" if hosts is None else f"hosts: {json.dumps(hosts)}\n"
    if user is not None:
        text += f"ssh: {{ user: {json.dumps(user)} }}\n"
    async with reachable(read(_PLAN.format(hosts=text), "--hosts")) as fleet:
        answers = await fleet.request_all(dict.fromkeys(fleet.alive, block_devices), LOOKING_S)
        show("\n".join(host_lines(fleet.hellos(), fleet.missed.values())))
        luns_of = {driver.name: luns for driver, luns in answers.items()}
        luns_by_host = {host: luns_of[host] for host in fleet.drivers if host in luns_of}  # as they were named
        for host, luns in luns_by_host.items():
            show("\n".join(device_lines(host, luns)))
        free = [lun.path for luns in luns_by_host.values() for lun in luns if not lun.refusals]
        return ExitCode.HOSTS if fleet.missed else ExitCode.OK, next(iter(free), "")


def device_lines(host: str, luns: Sequence[Lun]) -> list[str]:
    """The block devices of a host, each line as long as it is."""
    if not luns:
        return ["", f"{host}: no block device; a file can be driven: ivypy quick {EXAMPLE_FILE}"]
    lines = ["", f"{host}: {counted(len(luns), 'block device')}"]
    serials = Counter(str(lun.attributes.get("serial", "")) for lun in luns)
    for lun in luns:
        words = [str(lun.attributes.get(name, "")) for name in ("vendor", "model")]
        about = [word for word in words if word and not word.startswith("0x")]  # a virtio disk's vendor is a number
        if serial := lun.attributes.get("serial"):
            about.append(f"serial {serial}")
        lines.append(f"  {lun.path}  {scaled_size(lun.size)}  {', '.join(about)}".rstrip())
        uses = [used_by(one) for one in lun.refusals]
        lines.append(f"      in use: {'; '.join(uses)}" if uses else "      not in use")
        if lun.holds and not uses:
            lines.append(f"      contents: {', '.join(lun.holds)}")
        if not uses:
            lines.append(f"      select: {selecting(lun, serials)}")
    return lines


def used_by(refusal: str) -> str:
    """The gate's reason without its subject and its remedy: "mounted at /", "/dev/sdb1 on it is mounted at /"."""
    use = refusal.partition(": ")[0]
    for subject in ("it is ", "it "):
        if use.startswith(subject):
            return use.removeprefix(subject)
    return use


def selecting(lun: Lun, serials: Mapping[str, int]) -> str:
    """The entry of a plan's `luns` that selects this device: by its serial number, where no other has it."""
    serial = str(lun.attributes.get("serial", ""))
    plain = _PLAIN.fullmatch(serial) and serial.lower() not in ("none", "null", "not") and serials[serial] == 1
    return f"{{ serial: {json.dumps(serial)} }}" if plain else f"{{ path: {json.dumps(lun.path)} }}"


def example_lines(device: str) -> list[str]:
    """Two commands to begin with."""
    return [
        "",
        "To measure one of them, or a new file that is removed afterwards:",
        f"  ivypy quick {device or '/dev/nvme0n1'} --rw randread --bs 4k --iodepth 32",
        f"  ivypy quick {EXAMPLE_FILE} --size 1G --rw randrw --rate 80%",
    ]
