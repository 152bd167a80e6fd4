"""The definitions of a parameter file: which parameters belong to which hd, sd, wd and rd, with their defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from .description import Dropped
from .vdbench_text import Parameter
from .vdbench_words import FILE_SYSTEM, LOOPS, TABLES, RefusedFile, Without, keyword_of, unknown

# Definitions stand in this order. The keywords that begin one are also parameters of those after it.
_ORDER: Final = ("general", "hd", "sd", "wd", "rd")
_DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True)
class Record:
    """An hd, sd, wd or rd with all its parameters, those of its default included."""

    kind: str
    name: str
    where: str
    text: str
    parameters: Mapping[str, Parameter]  # by keyword; the order is that of the last of each
    places: tuple[Parameter, ...] = ()  # of an sd: every lun and host of its own, in their order


@dataclass
class _Open:
    """A definition while it is being read."""

    kind: str
    started: Parameter
    parameters: dict[str, Parameter]
    places: list[Parameter] = field(default_factory=list)

    def record(self) -> Record:
        start, own = self.started, self.parameters
        if self.kind == "hd" and len(start.values) > 1:  # hd=(address,name), as vdbench once had it
            own = {"system": replace(start, values=start.values[:1]), **own}
        return Record(self.kind, start.values[-1], start.where, start.text, own, tuple(self.places))


def records(
    parameters: list[Parameter], faults: list[str], dropped: list[Dropped]
) -> tuple[list[Record], Mapping[str, Parameter]]:
    """The definitions in their order, and the parameters of `wd=default`, which an rd without a wd uses."""
    defaults: dict[str, dict[str, Parameter]] = {kind: {} for kind in _ORDER}
    opened: list[_Open] = []
    current = _Open("general", Parameter("", (), "", ""), {})
    for parameter in parameters:
        if parameter.keyword in FILE_SYSTEM:
            faults.append(
                f"{parameter.where}: {parameter.text}: a file system test; ivypy drives block devices and large files"
            )
            break
        if (kind := _begun(parameter, current.kind)) is not None:
            default = parameter.values[:1] == (_DEFAULT,)
            current = _Open(kind, parameter, defaults[kind] if default else dict(defaults[kind]))
            opened += [] if default else [current]
            continue
        keyword = keyword_of(parameter.keyword, current.kind)
        if keyword is None:
            faults.append(f"{parameter.where}: {parameter.text}: {unknown(parameter.keyword, current.kind)}")
            continue
        _settle(parameter, keyword, current.kind, faults, dropped)
        current.parameters.pop(keyword, None)
        current.parameters[keyword] = parameter
        if keyword in ("lun", "host", "hd"):
            current.places.append(parameter)
    return [one.record() for one in opened], defaults["wd"]


def _begun(one: Parameter, kind: str) -> str | None:
    """The kind of definition that begins here."""
    keyword = "hd" if one.keyword == "host" and kind in ("general", "hd") else one.keyword
    if keyword in _ORDER[1:] and _ORDER.index(keyword) >= _ORDER.index(kind):
        return keyword
    return None


def _settle(parameter: Parameter, keyword: str, kind: str, faults: list[str], dropped: list[Dropped]) -> None:
    """Notes a parameter that has no counterpart."""
    fate = TABLES[kind][keyword]
    asked = not isinstance(fate, Without | RefusedFile) or not all(
        value.lower() in fate.off for value in parameter.values
    )
    if isinstance(fate, RefusedFile) and asked:
        faults.append(f"{parameter.where}: {parameter.text}: {fate.why}")
    elif isinstance(fate, Without) and asked:
        nearest = "; ".join(filter(None, [fate.nearest, _runs_once(parameter, keyword, kind)]))
        dropped.append(Dropped(parameter.where, parameter.text, fate.why, nearest, fate.matters))


def _runs_once(one: Parameter, keyword: str, kind: str) -> str:
    """State what becomes of a list over which vdbench loops."""
    return f"one step instead of {len(one.values)}" if kind == "rd" and keyword in LOOPS and len(one.values) > 1 else ""
