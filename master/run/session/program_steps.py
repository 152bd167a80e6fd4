"""Writes a program's steps as those of a plan, so that the plan's reader checks them together with all earlier ones.

Rule: pure. The plan's text stays as it is, line for line, except for its own `steps:`; the program's replace them as
JSON, which is YAML. The plan's own steps are not run: with the workloads, they limit what the program may do.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from ...errors import PlanError
from ...plan.load import load, read
from ...plan.model import Plan, Step

PROBE: Final = "(next)"  # a step that is only read, never run
Entry = Mapping[str, Mapping[str, Any]]


class Script:
    """Holds a plan's text, and what the program has added."""

    def __init__(self, plan: Plan, name: str, defines: Mapping[str, str]) -> None:
        self._text = without_steps(plan.text)
        self._name = name
        self._defines = defines
        self.entries: list[Entry] = []

    def read(self, *more: Entry) -> tuple[Plan, Step]:
        """The plan with the program's entries and `more`, and the last step. Raises PlanFaults."""
        steps = "".join(f"  - {json.dumps(entry, ensure_ascii=False)}\n" for entry in (*self.entries, *more))
        plan = read(f"{self._text}\nsteps:\n{steps}", self._name, self._defines)
        return plan, plan.steps[-1]


def plan_text(plan: Mapping[str, Any]) -> str:
    """A plan that is given as a dict, as text: a line for each section. Raises PlanError."""
    try:
        return "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in plan.items())
    except (TypeError, ValueError) as error:
        raise PlanError(f"the plan is a dict that is no YAML: {error}") from None


def open_script(plan: Plan | Path | str | Mapping[str, Any], defines: Mapping[str, str]) -> tuple[Plan, Script]:
    """A plan from its file, its text (which has more than one line), a dict, or one that was read already.

    Raises PlanError.
    """
    if isinstance(plan, Plan):
        return plan, Script(plan, str(plan.path or plan.name), plan.parameters)
    if isinstance(plan, Mapping):
        plan = f"{plan_text(plan)}\n"
    if isinstance(plan, str) and "\n" in plan:
        name = "plan"
        if not _span(plan):
            plan = f"{plan}\nsteps: [ go: '{PROBE}' ]\n"
        opened = read(plan, name, defines)
        return opened, Script(opened, name, defines)
    opened = load(Path(plan), defines)
    return opened, Script(opened, str(plan), defines)


def without_steps(text: str) -> str:
    """`text` with blank lines where its steps were. Raises PlanError where these cannot be distinguished."""
    span = _span(text)
    lines = text.split("\n")
    if span is not None:
        lines[span[0] : span[1]] = [""] * (span[1] - span[0])
    return "\n".join(lines)


def _span(text: str) -> tuple[int, int] | None:
    """First line of `steps:`, and the one behind its last; None where there are none, or the text is not YAML."""
    try:
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError:
        return None
    if not isinstance(root, yaml.MappingNode):
        return None
    if root.flow_style:
        raise PlanError("a program's plan has a line for each of its sections; write it without the outer { }")
    for key, value in root.value:
        if key.value == "steps":
            end = value.end_mark
            return key.start_mark.line, end.line if end.column == 0 else end.line + 1
    return None
