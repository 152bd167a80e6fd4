"""What a check of a plan costs: each step, workload and edit is looked at only by what it can concern."""

from collections.abc import Collection

import pytest

from ivypy.master.plan.checks import io_mix, metric_checks
from ivypy.master.plan.load import read
from ivypy.master.plan.model import Edit


def test_steps_without_a_metric_of_response_look_at_no_edit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of an imported file are; each would look at each edit once for each workload."""
    asked, looks = [], metric_checks._at_max

    def counting(*given: object) -> str | None:
        asked.append(given)
        return looks(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(metric_checks, "_at_max", counting)
    read(plan_of(9, "iops"), "p.yaml")
    assert not asked


def test_a_workload_looks_at_the_edits_that_may_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    after = io_mix.after

    def counting(found: list[io_mix.Mix], edit: Edit, workload: str, hosts: Collection[str]) -> list[io_mix.Mix]:
        looked.append(edit)
        return after(found, edit, workload, hosts)

    monkeypatch.setattr(io_mix, "after", counting)
    counts = []
    for many in (30, 60):
        looked.clear()
        read(plan_of(many, "fraction_read", steps=1), "p.yaml")
        counts.append(len(looked))
    assert counts[1] == 2 * counts[0]


def plan_of(many: int, edited: str, steps: int = 0) -> str:
    """So many workloads, an edit of each; a step after each edit, or so many after all."""
    value = {"iops": "1", "fraction_read": "50%"}[edited]
    workloads = "".join(f"  w{n}: {{ iops: 0 }}\n" for n in range(many))
    edits = [f"  - edit: {{ rollup: workload=w{n}, set: {{ {edited}: {value} }} }}\n" for n in range(many)]
    goes = [f"  - go: {{ name: s{n}, measure: 9s }}\n" for n in range(steps or many)]
    order = [*edits, *goes] if steps else [line for pair in zip(edits, goes, strict=True) for line in pair]
    text = f"name: x\nhosts: [local]\nluns: {{ create: {{ path: /x/0, size: 1GiB }} }}\nworkloads:\n{workloads}"
    return f"{text}rollups: [ workload ]\nsteps:\n{''.join(order)}"
