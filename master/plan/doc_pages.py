"""docs/plan.md and the JSON schema: printed from the models, so that they cannot be wrong.

Rule: nothing about a key is written here; it stands with the key, in schema.py, protocol/parameters.py,
attributes.py and suggestions.py.
"""

from collections.abc import Iterable
from typing import Any

from pydantic_core import PydanticUndefined

from ...protocol.parameters import Parameters, Unit
from ..text.relative import PlanParameters
from ..text.suggestions import INSTEAD, SAME
from ..text.units import format_duration
from .model import TOTAL_IOPS
from .read.field_types import CHANGES, PARAMETER_FIELDS, Reads, written
from .read.schema import (
    TIMES,
    Access,
    AttributesDoc,
    CreateDoc,
    EditDoc,
    GoDoc,
    HostDoc,
    LiveDoc,
    LoopDoc,
    LunsDoc,
    PlanDoc,
    RollupDoc,
    StepDoc,
    TimesDoc,
    WorkloadDoc,
)
from .read.schema_control import ControlDoc, FindDoc, MeasureDoc, OnBreakDoc, PidDoc, SloDoc, StaircaseDoc, SteadyDoc
from .read.section import Section
from .select.attributes import ATTRIBUTES

NEEDED = "needed"

_INTRODUCTION = """\
# The plan

A plan is a YAML file. `ivypy check PLAN` says what it would do and finds every fault in it without touching a host.
This page is printed from the code (`ivypy schema` prints the same for editors).

Every value is read by what its key needs, so nothing depends on YAML's guesses: `1:30` is no number, `010` no eight,
`yes` not true. There are no tags and no merge keys; anchors and aliases work.

`${name}` stands for a parameter's value in any text, quoted or not: declared with its default under `parameters:`,
given with `-D name=value`. Inside `{ }` and `[ ]` it needs quotes. `$${` is a plain `${`.
"""

_UNITS = """\
## Units

| quantity | written | note |
|---|---|---|
| size | `4096`, `8KiB`, `1.5GiB`, `100GB` | KiB is 1024, kB is 1000; a bare `k` or `G` may mean both, and is refused |
| time | `5s`, `250ms`, `1m30s`, `2h`, `0` | d, h, m (or min), s, ms, us, ns; a number without a unit is refused |
| fraction | `70%`, `0.7` | a number above 1 without a percent sign is refused |
| IOPS | `max`, `5000`, `5k`, `1.5M`, `50% of step NAME` | k and M are 1,000 and 1,000,000 |
| amount of a metric | `1ms`, `5000`, `200MiB/s`, `80%` | by the metric's name: a time, a number, a transfer rate, CPU |
| range | `0%..50%`, `1GiB..2GiB`, `[0%, 50%]` | from the first place to before the second |
| yes or no | `true`, `false` | |
"""

_SECTIONS: list[tuple[str, type[Section]]] = [
    ("", PlanDoc),
    ("ssh", Access),
    ("hosts", HostDoc),
    ("luns", LunsDoc),
    ("luns.create", CreateDoc),
    ("attributes", AttributesDoc),
    ("workloads", WorkloadDoc),
    ("rollups", RollupDoc),
    ("defaults", TimesDoc),
    ("steps", StepDoc),
    ("steps: go", GoDoc),
    ("steps: go: measure", MeasureDoc),
    ("steps: go: steady", SteadyDoc),
    ("steps: go: control", ControlDoc),
    ("steps: go: control: pid", PidDoc),
    ("steps: go: slo", SloDoc),
    ("steps: go: slo: on_break", OnBreakDoc),
    ("steps: go: staircase", StaircaseDoc),
    ("steps: go: find", FindDoc),
    ("steps: go: loop", LoopDoc),
    ("steps: edit", EditDoc),
    ("live", LiveDoc),
]

_SELECT = """\
## `select` and `match`

A mapping of attributes to conditions: all must hold. A list of conditions for one attribute: one must hold, and none
of those with `not`. A list of mappings: one must hold.

| condition | holds for |
|---|---|
| `vendor: HITACHI` | this text, without regard to case; a `path` with regard to it |
| `model: "SAM*"` | `*` is any text, `?` any character |
| `size: ">= 100GiB"` | also `>`, `<=`, `<` |
| `size: 100GiB..200GiB` | both included |
| `host: "lab[01-04]"` | ranges, for host, hostname, name and path |
| `transport: not usb` | all but this |
| `partition_of: none` | LUNs that have no such attribute |

Attributes, for `select`, `match` and rollups:
"""

_EDITS = """\
## How edits add up

An edit holds from where it stands, for all steps behind it, until a later edit sets the same for the same instances
or for more. What a `loop` sets, it sets for its own steps only. A looped step is called
`NAME+parameter=value`, with every value; that name is what `50% of step` refers to.

`total_iops` is shared equally over the LUNs that the edit selects; one that several hosts or paths lead to counts once.
`50% of step NAME` is a share of what the same
rollup instance did in that step, shared over the hosts that took part in it. Where that step is partial, so is this
one, and a host that was not in its measurement has no load; where it is invalid, this one is not run.
"""

_CONSENT = """\
## Consent

What a run may write is settled before it begins, for the most that any step, loop or edit of its plan could do. A LUN
that is not the plan's own file is written only with `destroy: true` in the plan and `--destroy TOKEN` on the command
line. The token, which `ivypy devices PLAN` prints, is over exactly the list of these LUNs: each with its host as the
plan calls it, its path, its machine, its size, and what tells it from others:

| LUN | is known by |
|---|---|
| disk | its WWN and its serial number |
| partition | its disk, its PARTUUID, and where on the disk it starts |
| volume, multipath map, array | its UUID |
| loop device | the file behind it (filesystem, inode, birth), or what tells the device behind it; from where to where |
| what nobody named | its attachment, which the kernel counts: once the machine was restarted, the token is another |
| the same before Linux 5.15 | its first and last 64 KiB: once these were written, the token is another |
| file | its filesystem, inode and birth; where births are not kept (NFS), its first and last 64 KiB, too |

`ivypy devices` shows it for each LUN (`known by`). Discovery lists everything without opening it, and looks only at
what the plan selects: reads its two ends, and claims it for a moment. From then on nothing is discovered anew, and
only the files of the plan's `create` are added. The host compares anew what it holds open with what was agreed to,
before it opens it for writing through that hold, and refuses everything else, and every edit that would write outside
of the part of a LUN that the plan asked for.
"""


def plan_reference() -> str:
    """docs/plan.md."""
    sections = "\n".join(_section(title, model) for title, model in _SECTIONS)
    foreign = _table(
        ("elsewhere", "here"),
        [(f"`{word}`", f"`{same}`") for word, same in sorted(SAME.items())]
        + [(f"`{word}`", advice) for word, advice in sorted(INSTEAD.items()) if word not in SAME],
    )
    attributes = _table(
        ("attribute", "holds", "meaning"),
        [
            (f"`{name}`", row.holds + ("" if row.selectable else "; only rollups"), row.doc)
            for name, row in ATTRIBUTES.items()
        ],
    )
    words = f"## Words of other tools\n\nA plan that uses them is told what they are called here.\n\n{foreign}"
    return "\n".join([_INTRODUCTION, _UNITS, sections, _SELECT, attributes, _CONSENT, _EDITS, words])


def schema() -> dict[str, Any]:
    """The JSON schema of plans, for editors (yaml-language-server)."""
    made: dict[str, Any] = _without_null(PlanDoc.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def _without_null(node: Any) -> Any:
    """A schema without what only pydantic knows: in a plan, a key that is left out is not there, and never null."""
    if isinstance(node, list):
        return [_without_null(item) for item in node if item != {"type": "null"}]
    if isinstance(node, dict):
        return {key: _without_null(item) for key, item in node.items() if not (key == "default" and item is None)}
    return node


def _section(title: str, model: type[Section]) -> str:
    doc = (model.__doc__ or "").strip()
    heading = f"## `{title}`" if title else "## Keys at the left margin"
    rows = [(f"`{key}`", _default(model, key), _meaning(model, key)) for key in model.model_fields]
    rows.sort(key=lambda row: row[1] != NEEDED)
    return f"{heading}\n\n{doc}\n\n{_table(('key', 'default', 'meaning'), rows)}"


def _default(model: type[Section], key: str) -> str:
    field = model.model_fields[key]
    reads = next((m for m in field.metadata if isinstance(m, Reads)), None)
    if field.default is PydanticUndefined:
        return NEEDED
    if model is WorkloadDoc and key in PARAMETER_FIELDS:
        return f"`{written(key, getattr(PlanParameters(), key))}`"
    if key in TIMES and model is not PlanDoc:
        return f"`{format_duration(TIMES[key])}`" if model is TimesDoc else "of `defaults`"
    if reads is None or field.default is None:
        return ""
    return f"`{reads.write(field.default)}`"


def _meaning(model: type[Section], key: str) -> str:
    text = model.model_fields[key].description or ""
    bounded = (model is WorkloadDoc and key in PARAMETER_FIELDS) or key == TOTAL_IOPS
    return f"{text} {_bounds(key)}".rstrip() if bounded else text


def _bounds(key: str) -> str:
    """From what to what a parameter may go."""
    row = CHANGES[key]
    if row.unit is Unit.CHOICE:
        return "One of " + ", ".join(f"`{word}`" for word in type(getattr(Parameters(), key))) + "."
    if row.low is None or row.high is None:
        return ""
    return f"From {written(key, row.low)} to {written(key, row.high)}."


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
