"""A running step as requests from outside change it: its load, and the targets of its control.

Rule: requests and the step's cycle know this object and not each other. A request changes it at once; the cycle reads
it at the next boundary.
"""

from collections.abc import Iterable, Sequence

from ...control.control_spec import fixed_time
from ...control.control_state import ControlState
from ...control.decision import Decision
from ...control.observation import Observation
from ...control.steer import retargeted
from ...rollup.instances import Rollups
from ...rollup.validity import ScopedFinding
from ...verdicts import Finding, Reason
from ..edits.edit_types import EditRefused
from ..edits.live_changes import LiveChanges
from ..edits.target_edit import new_target
from ..setup.host_settings import HostSettings
from .step_states import StepProgress


class LiveStep:
    """Holds one step's changes from outside, its control, and where it stands."""

    def __init__(self, host_settings: HostSettings, control: ControlState, length_ns: int) -> None:
        self.changes = LiveChanges(host_settings, length_ns)
        self.control = control  # as the last decision or the last new target left it
        self.progress = StepProgress()
        self.findings: list[ScopedFinding] = []  # that do not come from the step's hosts or its control
        self.skipped_by = ""  # who wants the step to end with what it has

    def decide(self, seen: Observation) -> Decision:
        """Control's decision on a closed subinterval."""
        self.control, decision = self.control.after(seen)
        return decision

    def skip(self, who: str) -> None:
        """End the step with its next decision, with what it has measured until then. Raises EditRefused."""
        if self.skipped_by or not self.progress.is_deciding:
            raise EditRefused(["the step is ending already"])
        self.skipped_by = who

    def remaining_if_edited(self, number: int) -> int | None:
        """Subintervals that follow `number` until the step's last one, if an edit acts in `number`.

        None where the edit does not move the end, or where no fixed time ends the step.
        """
        measurement = fixed_time(self.control)
        remaining = None if measurement is None else measurement.remaining_if_edited(number)
        return None if remaining is None else remaining + 1  # the tail

    def note(self, findings: Iterable[ScopedFinding]) -> None:
        """Add findings that are known from elsewhere: from steps before it, and from edits."""
        self.findings += findings

    def retarget(self, words: Sequence[str], rollups: Rollups, who: str) -> str:
        """Set new targets for instances that control holds at one. Raises EditRefused.

        Returns what is different, for people; "" if nothing is.
        """
        self.changes.check_changeable()
        new = new_target(words, rollups, self.control)
        if new.targets:
            running = self.changes.running()  # with a late decision, earlier ones are still to be decided on
            self.control = retargeted(self.control, new.targets, running)
            detail = f"{' '.join(words)}; by {who}, in subinterval {running}"
            self.note([ScopedFinding(Finding(Reason.EDITED, detail), since=running)])
        return new.what
