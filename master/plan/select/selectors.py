"""A `select` as it is written, read into conditions, with a fault for every one that cannot be read."""

from collections.abc import Collection
from typing import Any, Final

from ...text.suggestions import suggestion
from ..read.field_types import kind_of
from ..read.places import sentence
from ..read.yaml_positions import Faults, Path
from .attributes import ATTRIBUTES
from .conditions import condition
from .selection import Condition, Select

_INSTEAD: Final = {
    "workload": "a select chooses LUNs, before workloads are placed on them",
    "lun": "name its host and path",
    "all": "leave the select out to have all",
}


def read_select(raw: Any, path: Path, faults: Faults, own: Collection[str]) -> Select | None:
    """A mapping of attributes to conditions, or a list of such; None where there was a fault.

    `own` are the attributes which the plan itself defines.
    """
    clauses = raw if isinstance(raw, list) else [raw]
    if not clauses or not all(isinstance(clause, dict) and clause for clause in clauses):
        faults.add(path, f"{path[-1]} is {kind_of(raw) if raw else 'empty'}; it needs attributes, like vendor: HITACHI")
        return None
    known = len(faults.found)
    read = tuple(
        _clause(clause, (*path, i) if isinstance(raw, list) else path, faults, own) for i, clause in enumerate(clauses)
    )
    return Select(read) if len(faults.found) == known else None


def _clause(raw: dict[str, Any], path: Path, faults: Faults, own: Collection[str]) -> dict[str, tuple[Condition, ...]]:
    clause = {}
    for name, wanted in raw.items():
        about = ATTRIBUTES.get(name)
        if about is not None and not about.selectable:
            faults.add_key((*path, name), f"nothing can be selected by {name!r}; {_INSTEAD[name]}")
        elif about is None and name not in own:
            choices = [a for a, row in ATTRIBUTES.items() if row.selectable] + list(own)
            faults.add_key((*path, name), f"LUNs have no attribute {name!r}{suggestion(name, choices)}")
        else:
            clause[name] = tuple(_conditions(name, wanted, (*path, name), faults))
    return clause


def _conditions(name: str, wanted: Any, path: Path, faults: Faults) -> list[Condition]:
    found = []
    if wanted == []:
        faults.add(path, f"{name} is an empty list; it needs at least one condition")
    for i, text in enumerate(wanted if isinstance(wanted, list) else [wanted]):
        place = (*path, i) if isinstance(wanted, list) else path
        if not isinstance(text, str):
            faults.add(place, f"{name} is {kind_of(text)}; it needs a value, a list of values, or a comparison")
            continue
        try:
            found.append(condition(name, text))
        except ValueError as error:
            faults.add(place, sentence(name, error))
    return found
