"""Faults of many hosts, each printed once."""

import pytest

from ivypy.master.cli.host_faults import fault_lines
from ivypy.master.errors import HostFault


def refuses(name: str, address: str) -> HostFault:
    return HostFault(name, f"{address} port 22 refuses the connection", "start sshd there")


@pytest.mark.parametrize(
    ("faults", "lines"),
    [
        ([], []),
        ([refuses("a", "a")], ["a: a port 22 refuses the connection; start sshd there"]),
        (
            [refuses(f"lab{i:02}", f"lab{i:02}") for i in range(1, 65)],
            ["lab[01-64]: lab[01-64] port 22 refuses the connection; start sshd there"],
        ),
        (
            [refuses(f"lab{i}", f"10.0.0.{i}") for i in (1, 2, 3, 9)],
            ["lab[1-3,9]: 10.0.0.[1-3,9] port 22 refuses the connection; start sshd there"],
        ),
        (
            [
                HostFault(f"n{i}", f'n{i}.lab port 22 rejects user "u"', f'make "ssh u@n{i}.lab true" work')
                for i in (7, 8)
            ],
            ['n[7-8]: n[7-8].lab port 22 rejects user "u"; make "ssh u@n[7-8].lab true" work'],
        ),
        (
            [
                refuses("a1", "a1"),
                HostFault("b", "it is busy", ""),
                refuses("a2", "a2"),
                HostFault("c", "it is busy", ""),
            ],
            ["a[1-2]: a[1-2] port 22 refuses the connection; start sshd there", "b, c: it is busy"],
        ),
        (
            [HostFault("a1", "no answer for 30 s", ""), HostFault("a2", "no answer for 31 s", "")],
            ["a1: no answer for 30 s", "a2: no answer for 31 s"],
        ),
        # a name that is a word of the sentence
        ([HostFault("a", "a key has a passphrase", "load it")], ["a: a key has a passphrase; load it"]),
    ],
)
def test_each_fault_is_printed_once_with_its_hosts(faults: list[HostFault], lines: list[str]) -> None:
    assert fault_lines(faults) == lines
