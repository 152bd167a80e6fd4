"""Options of a connector type: from the plan's mapping to a frozen dataclass, strictly.

Rule: the dataclass is the grammar. Its field types are those of messages, and protocol/lines.py reads the values; names
are checked here, so that a misspelt one gets a suggestion. What is wrong is a ValueError with the place and the remedy.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

from ....protocol.connector import OPTIONAL, Cannot, Combine, ElementMetric, ReadingKind, Unit
from ....protocol.errors import ProtocolError
from ....protocol.lines import decode
from ....protocol.payload import Within
from ...text.suggestions import did_you_mean, listed
from ...text.units import parse_duration

OptionsKind = TypeVar("OptionsKind")

AUTO: Final = "auto"
LEAST_TIMEOUT_S, MOST_TIMEOUT_S = 0.01, 3600.0
_PLACE: Final = re.compile(r"\{(\w[\w.]*)\}")


@dataclass(frozen=True, kw_only=True)
class MetricOptions:
    """The plan's options for one metric, whatever its value is read from: see ElementMetric."""

    attribute: str
    unit: Unit
    kind: Literal["auto", "gauge", "counter"] = field(default="auto", metadata=OPTIONAL)  # auto: as the source says
    combine: Combine = field(default=Combine.MEAN, metadata=OPTIONAL)
    scale: float = field(default=1.0, metadata=OPTIONAL)
    per: str = field(default="", metadata=OPTIONAL)
    bits: Annotated[int, Within(0, 64)] = field(default=0, metadata=OPTIONAL)
    meaning: str = field(default="", metadata=OPTIONAL)
    optional: bool = field(default=False, metadata=OPTIONAL)  # it may be missing

    def element_metric(self, element: str, kind: ReadingKind, bits: int = 0) -> ElementMetric:
        """`kind` and `bits`: what the source says, where the plan does not."""
        if self.kind != AUTO:
            kind = ReadingKind(self.kind)
        bits = (self.bits or bits) if kind is ReadingKind.COUNTER else 0
        return ElementMetric(
            element, self.attribute, self.unit, kind, self.combine, self.scale, self.per, bits, self.meaning
        )


def read_options(kind: type[OptionsKind], given: Mapping[str, object]) -> OptionsKind:
    """Raises ValueError."""
    _check_names(kind, given, "options")
    try:
        return decode(json.dumps({"type": "options", **given}).encode(), {"options": kind})
    except ProtocolError as error:
        raise ValueError(str(error)) from None


def _check_names(kind: Any, value: Any, path: str) -> None:
    """Raises ValueError at an unknown or missing name, wherever it stands."""
    if is_dataclass(kind):
        if not isinstance(value, Mapping):
            raise ValueError(f"{path}: {value!r} is no mapping; it has {listed([f.name for f in fields(kind)], 30)}")
        hints = get_type_hints(kind, include_extras=True)
        for name in value:
            if name not in hints:
                known = listed(list(hints), len(hints))
                raise ValueError(f"{path}: unknown option {name!r}{did_you_mean(name, hints)}; its options are {known}")
        for option in fields(kind):
            if option.name not in value and not option.metadata.get("optional"):
                needed = [f.name for f in fields(kind) if not f.metadata.get("optional")]
                raise ValueError(f"{path}: option {option.name!r} is missing; it needs {listed(needed, len(needed))}")
        for name, inner in value.items():
            _check_names(hints[name], inner, f"{path}.{name}")
    elif get_origin(kind) is tuple and isinstance(value, (list, tuple)):
        for i, inner in enumerate(value):
            _check_names(get_args(kind)[0], inner, f"{path}[{i}]")


def timeout_seconds(text: str) -> float:
    """Raises ValueError."""
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise ValueError(f"options.timeout: {error}") from None
    if not LEAST_TIMEOUT_S <= seconds <= MOST_TIMEOUT_S:
        raise ValueError(f"options.timeout: {text} is not between 10 ms and 1 h")
    return seconds


def read_secret(path: str) -> str:
    """The first line of a file that holds a secret: it stands in no plan and in no copy of one. Raises Cannot."""
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Cannot(f"cannot read the secret in {path}: {error}") from None
    if not lines or not lines[0].strip():
        raise Cannot(f"{path} is empty: its first line should be the secret")
    return lines[0].strip()


def instance_of(pattern: str, value: Callable[[str], str]) -> str:
    """The name of an instance. `pattern` is one column (or label), or a text with them in braces: "{node}:{disk}"."""
    if "{" not in pattern:
        return value(pattern)
    return _PLACE.sub(lambda found: value(found[1]), pattern)


def declared(metrics: Iterable[ElementMetric]) -> list[ElementMetric]:
    """Each metric once. Raises Cannot where one is declared in two ways."""
    by_name: dict[tuple[str, str], ElementMetric] = {}
    for metric in metrics:
        if by_name.setdefault((metric.element, metric.attribute), metric) != metric:
            name = f"{metric.element}_{metric.attribute}"
            raise Cannot(f"options.metrics declare {name} in two ways; give it the same unit, kind and scale in both")
    return list(by_name.values())
