"""docs/plan.md and the JSON schema, printed from the models that read plans.

Rule: the text about a key stands with the key, in schema.py, schema_control.py, protocol/parameters.py, attributes.py
and suggestions.py, never here.
"""

from collections.abc import Iterable
from typing import Any

from pydantic_core import PydanticUndefined

from ...protocol.parameters import Notation, Parameters
from ..text.plan_parameters import PlanParameters
from ..text.suggestions import INSTEAD, SAME
from ..text.units import format_duration
from .model import TOTAL_IOPS
from .read.field_types import CHANGES, OF_THE_RUN, PARAMETER_FIELDS, Reads, written
from .read.schema import (
    TIMES,
    Access,
    AttributesDoc,
    ConnectorDoc,
    CreateDoc,
    EditDoc,
    EngineDoc,
    GoDoc,
    HostDoc,
    LiveDoc,
    LunsDoc,
    PlanDoc,
    RollupDoc,
    StepDoc,
    TimesDoc,
    WorkloadDoc,
)
from .read.section import Section, sections_below
from .select.attributes import ATTRIBUTES

NEEDED = "needed"

_INTRODUCTION = """\
# The plan

A plan is a YAML file. `ivypy check PLAN` prints what it would do and reports every fault in it, without touching a
host. This page is printed from the code; `ivypy schema` prints the same as a JSON schema for editors. Words are
explained in the [glossary](glossary.md).

Each key decides how its value is read, so YAML's guesses do not matter: `1:30` is not a number, `010` is not eight, and
`yes` is not true. Tags and merge keys are not supported; anchors and aliases are.

`${name}` in any text, quoted or not, is replaced by the value of a parameter. Declare parameters with their defaults
under `parameters:`, and set them with `-D name=value`. Inside `{ }` and `[ ]`, `${name}` needs quotes. `$${` is a plain
`${`. `${user}`, your user name, needs no declaration and may stand in defaults.
"""

_UNITS = """\
## Units

| quantity | written | note |
|---|---|---|
| size | `4096`, `8KiB`, `8k`, `1.5GiB`, `1.5G`, `100GB` | KiB and a bare `k`, `M`, `G` are powers of 1024, as in fio \
and vdbench; kB, MB are powers of 1000. In conditions on LUNs (`size: ">= 10TB"`) a bare letter is rejected |
| time | `5s`, `250ms`, `1m30s`, `2h`, `0` | d, h, m (or min), s, ms, us, ns; a number without a unit is rejected |
| fraction | `70%`, `0.7` | a number above 1 without a percent sign is rejected |
| IOPS | `max`, `5000`, `5k`, `1.5M`, `50% of step NAME` | k and M are 1,000 and 1,000,000 |
| amount of a metric | `1ms`, `5000`, `200MiB/s`, `80%` | in the metric's unit: a time, number, transfer rate or CPU |
| range | `0%..50%`, `1GiB..2GiB`, `[0%, 50%]` | from the first position up to the second, which is not included |
| yes or no | `true`, `false` | |
"""

_SECTIONS: list[tuple[str, type[Section]]] = [
    ("", PlanDoc),
    ("ssh", Access),
    ("hosts", HostDoc),
    ("luns", LunsDoc),
    ("luns.create", CreateDoc),
    ("attributes", AttributesDoc),
    ("connectors", ConnectorDoc),
    ("workloads", WorkloadDoc),
    ("rollups", RollupDoc),
    ("defaults", TimesDoc),
    ("steps", StepDoc),
    ("steps: go", GoDoc),
    *((": ".join(("steps", "go", *keys)), model) for keys, model in sections_below(GoDoc)),
    ("steps: edit", EditDoc),
    ("live", LiveDoc),
    ("engine", EngineDoc),
]

_SELECT = """\
## `select` and `match`

- A mapping of attributes to conditions: all must hold.
- A list of conditions for one attribute: all those with `not` must hold, and one of the others.
- A list of mappings: one must hold.

| condition | matches |
|---|---|
| `vendor: HITACHI` | this text, ignoring case; case counts for `path` |
| `model: "SAM*"` | `*` is any text, `?` any character |
| `size: ">= 100GiB"` | also `>`, `<=`, `<` |
| `size: 100GiB..200GiB` | both included |
| `host: "lab[01-04]"` | ranges, for host, hostname, name and path |
| `transport: not usb` | everything except this |
| `partition_of: none` | LUNs that have no such attribute |

Attributes, for `select`, `match` and rollups:
"""

_EDITS = """\
## How edits add up

An edit applies to all steps after it. Where a later edit sets the same parameter of an instance, the later one counts.
A `loop` sets its parameters for its own steps only. A looped step is named `NAME+parameter=value`, with every value;
use that name in `50% of step`.

`total_iops` is shared equally over the LUNs that the edit selects; a LUN that several hosts or paths lead to counts
once. `50% of step NAME` takes, for each rollup instance, that share of the IOPS which the same instance reached in that
step (the baseline step), and shares it over the hosts that took part in it. If the baseline step is partial, this step
is partial, and a host that was not in its measurement has no load. If its rate is invalid, this step is not run.
"""

_CONSENT = """\
## Consent

Consent covers everything that the plan could write: in any step, loop or edit. It is settled before the run starts. A
LUN that is not the plan's own file is written only with `destroy: true` in the plan **and** `--destroy TOKEN` on the
command line. `ivypy devices PLAN` prints the token. It is a hash over the list of these LUNs: each with its host's name
in the plan, its path, its machine, its size and its identity:

| LUN | identity |
|---|---|
| disk | its WWN and its serial number |
| partition | its disk, its PARTUUID, and its start on the disk |
| volume, array | its UUID; of a volume (device mapper) also its table, where root can read it |
| multipath map | its UUID |
| loop device | its backing file (filesystem, inode, birth time) or device; its start and end there |
| device with none of these | its `diskseq` in the kernel, new at each attachment: a restart changes the token |
| the same before Linux 5.15 | its first and last 64 KiB: writing there changes the token |
| file | its filesystem, inode and birth time, and its last change (ctime) by anybody but ivypy; where birth times are \
not kept (NFS), also its first and last 64 KiB |

The token of a file ends with its contents. What ivypy itself wrote is no change: after a run it notes that in the
file's extended attribute `user.ivypy.written`. After a slave that was killed, or where the filesystem has no such
attributes, the token is a new one, and `ivypy devices` prints it. Other changes of the file (`chmod`, `mv`) end it,
too.

**The token of a device is about the device, not about what it holds**: it stays the same when somebody stores other
data there. Known signatures are refused all the same ([what is never written](never-written.md)), nothing else. Do not
keep commands with the token of a disk that is also used otherwise. A loop device is known by its backing file, without
that file's last change.

`ivypy devices` shows the identity of each LUN (`known by`). Discovery lists all LUNs without opening them. It opens
only the LUNs that the plan selects: it reads their first and last bytes, opens each device exclusively for a moment and
locks each file. After that nothing is discovered again; only the files of the plan's `create` are added. Before the
host writes to a LUN, it does the same and compares the open LUN with what was agreed to. It refuses everything else,
and every edit that would write outside the agreed part of a LUN.
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
    words = f"## Words of other tools\n\nWhere a plan uses one of these, the error names ivypy's word.\n\n{foreign}"
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
    heading = f"## `{title}`" if title else "## Top-level keys"
    rows = [(f"`{key}`", _default(model, key), _meaning(model, key)) for key in model.model_fields]
    rows.sort(key=lambda row: row[1] != NEEDED)
    return f"{heading}\n\n{doc}\n\n{_table(('key', 'default', 'meaning'), rows)}"


def _default(model: type[Section], key: str) -> str:
    field = model.model_fields[key]
    reads = next((m for m in field.metadata if isinstance(m, Reads)), None)
    if field.default is PydanticUndefined:
        return NEEDED
    if model is WorkloadDoc and key in PARAMETER_FIELDS:
        value = getattr(PlanParameters(), key)
        return OF_THE_RUN if value is None else f"`{written(key, value)}`"
    if key in TIMES and model is not PlanDoc:
        return f"`{format_duration(TIMES[key])}`" if model is TimesDoc else "of `defaults`"
    text = "" if reads is None or field.default is None else reads.write(field.default)
    return f"`{text}`" if text else ""


def _meaning(model: type[Section], key: str) -> str:
    text = model.model_fields[key].description or ""
    bounded = (model is WorkloadDoc and key in PARAMETER_FIELDS) or key == TOTAL_IOPS
    return f"{text} {_bounds(key)}".rstrip() if bounded else text


def _bounds(key: str) -> str:
    """The bounds of a parameter."""
    row = CHANGES[key]
    if row.unit is Notation.CHOICE:
        return "One of " + ", ".join(f"`{word}`" for word in type(getattr(Parameters(), key))) + "."
    if row.low is None or row.high is None:
        return ""
    return f"From {written(key, row.low)} to {written(key, row.high)}."


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
