"""The rounds of a step that are running: which steps the next round has, and what the figures of its passes came to."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from ...control.rounds import Rounds, RoundsSpec
from ...plan.attempts import ROUND_COLUMN, round_name, step_of_plan
from ...plan.model import Step
from ...verdicts import Finding
from ..record.step_result import StepResult


class RoundsRun:
    """State: the rounds that have ended, and the figures of the one that is running."""

    def __init__(self, spec: RoundsSpec, steps: Sequence[Step]) -> None:
        """`steps`: the passes, as the plan has them."""
        self.steps: Final = steps
        self._ended = Rounds(spec)
        self._values: dict[str, float | None] = {}  # of the running round's passes that are looked at

    def passes(self) -> Iterator[Step]:
        """The steps of the next round."""
        number = len(self._ended.values) + 1
        self._values = {step.name: None for step in self.steps if step.control.is_watched}
        for step in self.steps:
            yield replace(step, name=round_name(step.name, number), loop={**step.loop, ROUND_COLUMN: number})

    def finding(self, step: Step, result: StepResult) -> Finding | None:
        """Take the figure of a pass, or of a further attempt at it, and say how the rounds stand. With the round's last
        one that is looked at: the others' are known by then."""
        name = step_of_plan(step.name)
        if name not in self._values:
            return None
        self._values[name] = result.figure(self._ended.spec.focus)
        return self._now.finding() if name == [*self._values][-1] else None

    def close(self) -> Rounds:
        """The round has ended: the rounds so far."""
        self._ended = self._now
        return self._ended

    def later_s(self, step: Step) -> float:
        """How long the passes that follow this one may take, in seconds."""
        each = [one.planned_s for one in self.steps]
        place = [one.name for one in self.steps].index(step_of_plan(step.name))
        return sum(each[place + 1 :]) + sum(each) * (self._ended.spec.most - len(self._ended.values) - 1)

    @property
    def _now(self) -> Rounds:
        return self._ended.after(dict(self._values))
