"""What a check of a plan costs: only steps that need it look at the edits in force."""

import pytest

from ivypy.master.plan.checks import metric_checks
from ivypy.master.plan.load import read


def test_steps_without_a_metric_of_response_look_at_no_edit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of an imported file are; each would look at each edit once for each workload."""
    asked, looks = [], metric_checks._at_max

    def counting(*given: object) -> bool:
        asked.append(given)
        return looks(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(metric_checks, "_at_max", counting)
    workloads = "".join(f"  w{n}: {{ iops: 0 }}\n" for n in range(9))
    steps = "".join(
        f"  - edit: {{ rollup: workload=w{n}, set: {{ iops: {n + 1} }} }}\n  - go: {{ name: s{n}, measure: 9s }}\n"
        for n in range(9)
    )
    text = f"name: x\nhosts: [local]\nluns: {{ create: {{ path: /x/0, size: 1GiB }} }}\nworkloads:\n{workloads}"
    read(f"{text}rollups: [ workload ]\nsteps:\n{steps}", "p.yaml")
    assert not asked
