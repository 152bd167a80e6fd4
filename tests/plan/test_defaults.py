"""Law: what a plan leaves out is filled in by its documents; what is made from them has no defaults of its own."""

from dataclasses import MISSING, fields

import pytest

from ivypy.master.control.control_spec import (
    Calibration,
    ControlSpec,
    FindSpec,
    FixedSpec,
    MeasureSpec,
    PidSpec,
    SloSpec,
    StaircaseSpec,
    SteadySpec,
)
from ivypy.master.control.criteria import Criterion
from ivypy.master.plan.model import Live, LunSelection, Plan
from ivypy.master.plan.read.schema import HostDoc
from ivypy.master.rollup.instances import RollupSpec
from ivypy.protocol.payload import FileToCreate

CONTROL = (
    Calibration, ControlSpec, Criterion, FindSpec, FixedSpec, MeasureSpec, PidSpec, SloSpec, StaircaseSpec, SteadySpec,
)  # fmt: skip


@pytest.mark.parametrize("spec", [*CONTROL, FileToCreate, Live, LunSelection, Plan, RollupSpec])
def test_a_spec_has_no_defaults(spec: type) -> None:
    assert [f.name for f in fields(spec) if (f.default, f.default_factory) != (MISSING, MISSING)] == []


def test_a_host_takes_its_defaults_from_its_spec_which_commands_make_too() -> None:
    assert [name for name, field in HostDoc.model_fields.items() if not field.is_required() and field.default] == []
