"""The faults of hosts, each once: `lab[01-64]: lab[01-64] port 22 refuses the connection; start sshd there`.

Rule: pure. Faults are the same if their texts are, but for the host's own name and for addresses.
"""

import re
from collections.abc import Iterable
from typing import Final

from ..errors import HostFault
from ..plan.select.host_ranges import compact

_ADDRESS: Final = r"(?<![\w.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![\w.])"
_HERE: Final = "\0"  # no fault has it: their texts are printable


def fault_lines(faults: Iterable[HostFault]) -> list[str]:
    """A line for each different fault, in the order of their first hosts."""
    alike: dict[str, list[list[str]]] = {}  # of each host: its name, then what stands where its fault has _HERE
    for fault in faults:
        own = re.compile(rf"(?<![\w.-]){re.escape(fault.host)}(?![\w-])|{_ADDRESS}")
        text = str(fault).removeprefix(fault.host)
        alike.setdefault(own.sub(_HERE, text), []).append([fault.host, *own.findall(text)])
    return [_line(text, hosts) for text, hosts in alike.items()]


def _line(text: str, hosts: list[list[str]]) -> str:
    names, *here = (", ".join(compact(dict.fromkeys(column))) for column in zip(*hosts, strict=True))
    pieces = text.split(_HERE)
    return names + pieces[0] + "".join(one + piece for one, piece in zip(here, pieces[1:], strict=True))
