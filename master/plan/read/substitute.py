"""`${name}`: a plan's parameters in its texts, before anything is read from them.

Rule: parameters are declared with their defaults under `parameters:`; one without a default must be given
(`-D name=value`). A value replaces its reference as text, in any value, quoted or not, but never in a key. `$${` is
a plain `${`. `${user}`, the name of who reads the plan, is there undeclared, for defaults too: paths that no two users
share.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ...text.suggestions import suggestion
from .yaml_positions import PARAMETERS, Document, Node, Place, PlanFault

USER: Final = "user"
NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_REFERENCE: Final = re.compile(r"\$(\$\{|\{([^}]*)\}?)")


class Unreadable(str):
    """A text with a reference that could not be replaced. Its fault is noted; it causes no other."""


@dataclass(slots=True)
class Substituted:
    """A plan's content as lists, dictionaries, texts and None, with every reference replaced."""

    data: dict[str, Any]
    values: dict[str, str] = field(default_factory=dict)  # of every parameter
    faults: list[PlanFault] = field(default_factory=list)


def substitute(document: Document, defines: Mapping[str, str], user: str) -> Substituted:
    """Everything but the section `parameters`, which is read here. `defines` are the values of -D; `user` is who reads
    the plan."""
    assert isinstance(document.root.value, dict)
    section = document.root.value.get(PARAMETERS)
    result = Substituted({}, dict(defines))
    unset = _declare(document, section, result, user) if section else set[str]()
    for name in defines:
        declared = document.keys((PARAMETERS,))
        if name not in declared:
            place = document.key_place((PARAMETERS,)) if section else Place(document.name, 1, 1)
            known = suggestion(name, declared) if declared else "; this plan declares none"
            result.faults.append(PlanFault(place, f"-D {name}: the plan has no parameter {name!r}{known}"))
    plain = _Plain(document.name, result, unset, document.keys((PARAMETERS,)), user)
    result.data = {key: plain(node) for key, node in document.root.value.items() if key != PARAMETERS}
    return result


def _declare(document: Document, section: Node, result: Substituted, user: str) -> set[str]:
    """Note each parameter's value; returns the names of those that have none."""

    def fault(node: Node, text: str) -> None:
        result.faults.append(PlanFault(Place(document.name, node.line, node.column), text))

    if not isinstance(section.value, dict):
        fault(section, "parameters: needs a mapping of names to defaults: parameters: { size: 1GiB }")
        return set()
    unset = set[str]()
    for name, node in section.value.items():
        place = document.key_place((PARAMETERS, name))
        if not re.fullmatch(NAME, name):
            result.faults.append(PlanFault(place, f"{name!r} cannot be a parameter's name; use letters, digits and _"))
        if isinstance(node.value, (list, dict)):
            fault(node, f"parameter {name!r}: a default is one value, not a list or mapping")
        elif node.value is None and name not in result.values:
            unset.add(name)
            result.faults.append(PlanFault(place, f"parameter {name!r} has no default; give -D {name}=VALUE"))
        elif node.value is not None and _REFERENCE.search(default := _with_user(node.value, user)):
            fault(node, f"parameter {name!r}: a default cannot refer to another parameter")
        elif node.value is not None:
            result.values.setdefault(name, default)
    return unset


def _with_user(text: str, user: str) -> str:
    return text.replace(f"${{{USER}}}", user)


class _Plain:
    """Turns nodes into plain data, replacing references."""

    def __init__(self, name: str, result: Substituted, unset: set[str], declared: Iterable[str], user: str) -> None:
        self.name = name
        self.result = result
        self.unset = unset
        self.declared = declared
        self.values = {USER: user, **result.values}

    def __call__(self, node: Node) -> Any:
        value = node.value
        if isinstance(value, dict):
            return {key: self(child) for key, child in value.items()}
        if isinstance(value, list):
            return [self(child) for child in value]
        return self.replaced(node, value) if value and "${" in value else value

    def replaced(self, node: Node, text: str) -> str:
        lost = False

        def value(match: re.Match[str]) -> str:
            nonlocal lost
            name = match[2]
            if name is None:
                return "${"
            values = self.values
            if match[0].endswith("}") and name in values:
                return values[name]
            lost = True
            if name not in self.unset:
                place = Place(self.name, node.line, node.column + match.start() + node.quoted)
                self.result.faults.append(PlanFault(place, _unknown(match[0], name, self.declared)))
            return ""

        replaced = _REFERENCE.sub(value, text)
        return Unreadable() if lost else replaced


def _unknown(reference: str, name: str, declared: Iterable[str]) -> str:
    if not reference.endswith("}"):
        return "${ has no }; for a plain ${ write $${"
    remedy = suggestion(name, declared) if declared else "; declare it: parameters: { NAME: DEFAULT }"
    return f"{reference}: the plan has no parameter {name!r}{remedy}"
