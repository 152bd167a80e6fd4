"""Which tool a file was written for."""

import pytest

from ivypy.master.errors import PlanError
from ivypy.master.imports.formats import tool_of

TOOLS = [
    ("[a]\nrw=read\n", "fio"),
    ("sd=sd1,lun=/dev/sdb\n", "vdbench"),
    ("* [comment]\nsd=sd1\n[a]\n", "vdbench"),
    ("[a]\nsd=sd1\n", "fio"),
]


@pytest.mark.parametrize(("text", "tool"), TOOLS)
def test_what_comes_first_decides(text: str, tool: str) -> None:
    assert tool_of(text, "x") == tool


REFUSED = [
    ("name: x\nsteps: []\n", "x: this is a plan already: ivypy run x"),
    ('[Hosts] "lab01";', "x: neither a job file of fio"),  # ivy's statements
    ("", "x: neither a job file of fio"),
    ("/* " * 333_333, "x: neither a job file of fio"),  # each of these in time that follows from its length
    ("[" * 1_000_000, "x: neither a job file of fio"),
    ("\n" * 1_000_000, "x: neither a job file of fio"),
    (" " * 1_000_000, "x: neither a job file of fio"),
]


@pytest.mark.parametrize(("text", "said"), REFUSED, ids=lambda one: one[:20])
def test_other_texts_are_refused(text: str, said: str) -> None:
    with pytest.raises(PlanError) as refusal:
        tool_of(text, "x")
    assert said in str(refusal.value)
