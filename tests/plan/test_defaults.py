"""Law: what a plan leaves out is filled in by its documents; what is made from them has no defaults of its own."""

from dataclasses import MISSING, fields

import pytest

from ivypy.master.control.autopid import AutoPid
from ivypy.master.control.control_spec import ControlSpec
from ivypy.master.control.criteria import Criterion
from ivypy.master.control.feedback import Calibration, PidSpec
from ivypy.master.control.fixed import Fixed, FixedSpec
from ivypy.master.control.measure import Measure, MeasureSpec
from ivypy.master.control.pid import Pid
from ivypy.master.control.pid_loop import PidRules
from ivypy.master.control.search import Find, FindSpec
from ivypy.master.control.staircase import Staircase, StaircaseSpec
from ivypy.master.control.steady import Steady, SteadySpec
from ivypy.master.control.steer import Steered
from ivypy.master.control.threshold import SloSpec
from ivypy.master.plan.model import Live, LunSelection, Plan
from ivypy.master.plan.read.schema import HostDoc
from ivypy.master.rollup.instances import RollupSpec
from ivypy.protocol.payload import FileToCreate

CONTROL = (
    Calibration, ControlSpec, Criterion, FindSpec, FixedSpec, MeasureSpec, PidSpec, SloSpec, StaircaseSpec, SteadySpec,
)  # fmt: skip


STATES = (AutoPid, Find, Fixed, Measure, Pid, PidRules, Staircase, Steady, Steered)


def defaults(kind: type) -> set[str]:
    return {f.name for f in fields(kind) if (f.default, f.default_factory) != (MISSING, MISSING)}


@pytest.mark.parametrize("spec", [*CONTROL, FileToCreate, Live, LunSelection, Plan, RollupSpec])
def test_a_spec_has_no_defaults(spec: type) -> None:
    assert defaults(spec) == set()


@pytest.mark.parametrize("state", STATES)
def test_a_state_of_control_takes_what_a_plan_sets_from_its_builder(state: type) -> None:
    assert defaults(state) & {"rules", "timeout_s", "tolerance", "warmup"} == set()


def test_a_host_takes_its_defaults_from_its_spec_which_commands_make_too() -> None:
    assert [name for name, field in HostDoc.model_fields.items() if not field.is_required() and field.default] == []
