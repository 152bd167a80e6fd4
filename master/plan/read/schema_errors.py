"""Faults that pydantic found, as sentences with places; and the plan without its faulty parts.

Rule: all faults of a plan are reported at once. So a faulty part, as small as possible, is removed, and the rest is
validated and resolved further; a reference to something that was removed is no fault.
"""

from collections.abc import Sequence
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ...text.suggestions import unknown_key
from .field_types import kind_of
from .schema import (
    Access,
    CreateDoc,
    EditDoc,
    EngineDoc,
    GoDoc,
    HostDoc,
    LunsDoc,
    PlanDoc,
    RollupDoc,
    TimesDoc,
    WorkloadDoc,
)
from .section import Section, sections_below
from .yaml_positions import AlreadyReported, Faults, Path, sentence

# One element of these sections, for messages.
_ELEMENT: Final = {
    "steps": "a step",
    "hosts": "a host",
    "rollups": "a rollup",
    "attributes": "an entry of attributes",
    "slo": "a threshold",
}


def _nested(keys: Sequence[str]) -> str:
    """A key below others, as it is written in one line: `control: { pid: ... }`."""
    above, *below = keys
    return f"{above}: {{ {_nested(below)}: ... }}" if below else above


# Where keys belong that stand in another section; {key} is the one that does.
_HOMES: Final[list[tuple[str, type[Section]]]] = [
    ("the plan itself, at the left margin", PlanDoc),
    ("'engine: { {key}: ... }'", EngineDoc),
    ("'go' or 'defaults'", TimesDoc),
    ("'go'", GoDoc),
    ("a workload or an edit's 'set'", WorkloadDoc),
    ("'luns'", LunsDoc),
    ("'luns: { create: ... }'", CreateDoc),
    ("'ssh' or a host", Access),
    ("a host", HostDoc),
    ("'rollups'", RollupDoc),
    ("'edit'", EditDoc),
    # An unknown total_iops is meant for an edit rather than for a loop.
    *((f"'{_nested(keys)}'", model) for keys, model in sections_below(GoDoc) if keys != ("loop",)),
]
_ELSEWHERE: Final = {key: home.replace("{key}", key) for home, model in reversed(_HOMES) for key in model.model_fields}


def validated(data: dict[str, Any], faults: Faults) -> tuple[PlanDoc, list[Path]]:
    """The model of `data` without its faulty parts, and their paths (they are removed from the document, too)."""
    removed: list[Path] = []
    while True:  # each round removes something, so this ends
        try:
            return PlanDoc.model_validate(data), removed
        except ValidationError as error:
            details = error.errors(include_url=False)
            for detail in details if not removed else ():  # later faults follow from what was removed
                _report(detail, faults)
            removed += _prune(data, faults, details)


def _report(detail: ErrorDetails, faults: Faults) -> None:
    path, value = tuple(detail["loc"]), detail["input"]
    match detail["type"]:
        case "extra_forbidden":
            known, section = _model_at(path[:-1]).model_fields, _named(path[:-1])
            advice = unknown_key(str(path[-1]), section, known, _ELSEWHERE)
            faults.add_key(path, f"unknown key {path[-1]!r} in {section}{advice}")
        case "missing":
            faults.add(path[:-1], f"{_named(path[:-1])} needs {str(path[-1])!r}")
        case "value_error":
            _, unwritten = faults.document.find(path)  # of a short form
            error = detail["ctx"]["error"]
            if not isinstance(error, AlreadyReported):
                faults.add(path, sentence(_named(path[: len(path) - len(unwritten)]), error))
        case "list_type":
            faults.add(path, f"{_named(path)} is {kind_of(value)}; it needs a list, each entry after a -")
        case _:  # model_type, dict_type
            keys = ", ".join(list(_model_at(path).model_fields)[:5])
            faults.add(path, f"{_named(path)} is {kind_of(value)}; it needs keys, like {keys or 'name: value'}")


def _named(path: Path) -> str:
    """The value at `path` in words."""
    if not path:
        return "the plan"
    *above, last = path
    if isinstance(last, int):
        return _ELEMENT.get(str(above[-1]), str(above[-1])) if above else "the plan"
    if above == ["workloads"]:
        return f"workload {last!r}"
    return last


def _model_at(path: Path) -> type[Section]:
    """The model of the section at `path`; an empty one where the keys are the user's own names."""
    model: Any = PlanDoc
    for part in path:
        model = _section(model)
        if get_origin(model) in (list, dict):
            model = get_args(model)[-1]
        elif isinstance(model, type) and issubclass(model, Section) and part in model.model_fields:
            model = model.model_fields[str(part)].annotation
        else:
            return Section
    model = _section(model)
    return model if isinstance(model, type) and issubclass(model, Section) else Section


def _section(annotation: Any) -> Any:
    """An annotation without Annotated and None."""
    while hasattr(annotation, "__metadata__"):
        annotation = annotation.__origin__
    if get_origin(annotation) in (Union, UnionType):
        return _section(next(arm for arm in get_args(annotation) if arm is not type(None)))
    return annotation


def _prune(data: dict[str, Any], faults: Faults, details: list[ErrorDetails]) -> list[Path]:
    """Remove the values of `details` from the data and from the document."""
    paths = {_present(data, tuple(d["loc"][:-1] if d["type"] == "missing" else d["loc"])) for d in details}
    gone = {_without_husk(data, path) for path in paths}
    for path in sorted(gone, reverse=True):  # the later elements of a list first, so that numbers stay true
        above, _ = faults.document.find(path[:-1])
        holder: Any = data
        for part in path[:-1]:
            holder = holder[part]
        del holder[path[-1]]
        del above.value[path[-1]]  # type: ignore[union-attr, arg-type]
    return list(paths)


def _without_husk(data: dict[str, Any], path: Path) -> Path:
    """`path`, or that of the step which would have nothing left."""
    step = path[0] == "steps" and len(path) == 3 and isinstance(path[1], int)
    return path[:2] if step and len(data["steps"][path[1]]) == 1 else path


def _present(data: Any, path: Path) -> Path:
    """The longest beginning of `path` that is in the data: a short form has fewer levels than its model."""
    for depth, part in enumerate(path):
        inside = part in data if isinstance(data, dict) else isinstance(data, list) and isinstance(part, int)
        if not inside:
            return path[:depth]
        data = data[part]
    return path
