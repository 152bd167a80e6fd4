"""docs/plan.md and the JSON schema, printed from the models that read plans.

Rule: the text about a key stands with the key, in schema.py, schema_control.py, protocol/parameters.py, attributes.py
and suggestions.py, never here.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from pydantic_core import PydanticUndefined

from ...protocol.parameters import PARAMETERS, Notation, Parameters
from ..text.plan_parameters import PlanParameters
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
    LoopDoc,
    LunsDoc,
    PassDoc,
    PlanDoc,
    PreconditionDoc,
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

A plan is a YAML file. `ivypy check PLAN` prints what it would do and every fault in it, without touching a host.
`ivypy schema` prints this page as a JSON schema for editors. Below, a key's default and bounds stand in parentheses.

Each key decides how its value is read: `1:30` is not a number, `010` is not eight, `yes` is not true. Anchors and
aliases work; tags and merge keys do not.

`${name}` in any text is replaced by the value of a parameter of `parameters:`, or of `-D name=value`. It needs quotes
inside `{ }` and `[ ]`. `$${` is a plain `${`. `${user}`, your user name, is always there.
"""

_UNITS = """\
## Units

| quantity | written | note |
|---|---|---|
| size | `4096`, `8KiB`, `8k`, `1.5GiB`, `1.5G`, `100GB` | KiB, and a bare `k`, `M`, `G`: powers of 1024; kB, MB: of \
1000. Conditions on LUNs (`size: ">= 10TB"`) need a full unit |
| time | `5s`, `250ms`, `1m30s`, `2h`, `0` | d, h, m (or min), s, ms, us, ns; a number without a unit is rejected |
| fraction | `70%`, `0.7` | a number above 1 without a percent sign is rejected |
| IOPS | `max`, `5000`, `5k`, `1.5M`, `50% of step NAME` | k and M are 1,000 and 1,000,000 |
| amount of a metric | `1ms`, `5000`, `200MiB/s`, `80%` | in the metric's unit: a time, number, transfer rate or CPU |
| range | `0%..50%`, `1GiB..2GiB`, `[0%, 50%]`, `50%..50%+1GiB` | from the first position up to \
the second, which is not included |
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
    ("steps: precondition", PreconditionDoc),
    ("live", LiveDoc),
    ("engine", EngineDoc),
]

_SAME_KEYS: Final[dict[type[Section], tuple[str, type[Section]]]] = {
    HostDoc: ("ssh", Access),
    GoDoc: ("defaults", TimesDoc),
    LoopDoc: ("workloads", WorkloadDoc),
    PassDoc: ("steps: go: loop", LoopDoc),
}

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

An edit applies to all steps after it; of two that set the same parameter of an instance, the later counts. A `loop`
sets its parameters for its own steps only, which are named `NAME+parameter=value`, with every value; use that name in
`50% of step`.

`total_iops` is shared equally over the LUNs that the edit selects; a LUN that several hosts or paths lead to counts
once. `50% of step NAME` is, for each rollup instance, that share of its IOPS in that step (the baseline step), shared
over the hosts that took part in it. If the baseline step is partial, so is this step, and a host that was not in its
measurement has no load. If its rate is invalid, this step is not run.
"""

_CONSENT = """\
## Consent

A LUN that is not the plan's own file is written only with `destroy: true` in the plan **and** `--destroy TOKEN` on the
command line. `ivypy devices PLAN` prints the token, and the LUNs that would be overwritten. Consent covers everything
that the plan could write, in any step, loop or edit.

The token is a hash over these LUNs: host, path, machine, size and identity (serial number and WWN, UUID, or what the
kernel knows: [identity](internals/identity.md)). Another disk at the same path needs another token. The host checks it
again when it opens a LUN, and refuses everything else.

- **A file's token** ends when anybody but ivypy changes the file (also `chmod`, `mv`). After a killed slave, or
  on a filesystem without extended attributes, it is a new one, too.
- **A device's token is about the device, not its contents**: it stays good when somebody stores other data there.
  Known [signatures](never-written.md) are refused all the same, nothing else. Do not keep commands with the token of a
  disk that is also used otherwise.
"""


def plan_reference() -> str:
    """docs/plan.md."""
    sections = "\n".join(_section(title, model) for title, model in _SECTIONS)
    attributes = _list(
        (f"`{name}`", row.holds + ("" if row.selectable else "; only rollups"), row.doc)
        for name, row in ATTRIBUTES.items()
    )
    return "\n".join([_INTRODUCTION, _UNITS, sections, _SELECT, attributes, _CONSENT, _EDITS])


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
    doc = " ".join((model.__doc__ or "").split())
    heading = f"## `{title}`" if title else "## Top-level keys"
    same = _explained(model)
    rows = [(f"`{key}`", _limits(model, key), _meaning(model, key)) for key in model.model_fields if key not in same]
    rows.sort(key=lambda row: row[1] != NEEDED)
    names = "every key" if PARAMETERS.keys() <= {*same} else ", ".join(f"`{key}`" for key in same)
    above = [f"- {names}: as in `{_SAME_KEYS[model][0]}`\n"] if same else []
    return f"{heading}\n\n{doc}\n\n{''.join([_list(rows), *above])}"


def _explained(model: type[Section]) -> list[str]:
    """The keys that another section explains in the same words."""
    _, other = _SAME_KEYS.get(model, ("", None))
    if other is None:
        return []
    return [
        key
        for key, field in model.model_fields.items()
        if key in other.model_fields and field.description == other.model_fields[key].description
    ]


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


def _limits(model: type[Section], key: str) -> str:
    """A key's default, and a parameter's bounds."""
    bounded = (model is WorkloadDoc and key in PARAMETER_FIELDS) or key == TOTAL_IOPS
    return "; ".join(filter(None, (_default(model, key), _bounds(key) if bounded else "")))


def _meaning(model: type[Section], key: str) -> str:
    """A key's text, with the choices that it does not name itself."""
    text = model.model_fields[key].description or ""
    choices = _choices(key) if model is WorkloadDoc and key in PARAMETER_FIELDS else []
    if all(re.search(rf"\b{word}\b", text) for word in choices):
        return text
    return f"{text} One of {', '.join(f'`{word}`' for word in choices)}."


def _choices(key: str) -> list[str]:
    """The words that a parameter may be, if it is one of some words."""
    return [str(word) for word in type(getattr(Parameters(), key))] if CHANGES[key].unit is Notation.CHOICE else []


def _bounds(key: str) -> str:
    """The bounds of a parameter; a share's, where they are 0 and 1, go without saying."""
    row = CHANGES[key]
    if row.low is None or row.high is None or (written(key, row.low), written(key, row.high)) == ("0%", "100%"):
        return ""
    return f"{written(key, row.low)} to {written(key, row.high)}"


def _list(rows: Iterable[tuple[str, str, str]]) -> str:
    return "".join(f"- {key}{f' ({default})' if default else ''}: {text}\n" for key, default, text in rows)
