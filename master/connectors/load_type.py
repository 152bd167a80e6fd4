"""Types of connectors by name: entry points of the group `ivypy.connectors`, ivypy's own and those of other packages.

Rule: a type is a class, or whatever makes a connector from keyword arguments. What is wrong with the plan's type or
options is a PlanError, here; a ValueError of the class itself becomes one.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, requires
from typing import Final

from ...protocol.connector import Cannot, Connector
from ..errors import PlanError
from ..text.libraries import to_install
from ..text.suggestions import did_you_mean, listed

GROUP: Final = "ivypy.connectors"

Maker = Callable[..., Connector]


def known_types() -> dict[str, EntryPoint]:
    """All that is installed, by name."""
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda one: one.name)}


def load_type(name: str) -> Maker:
    """Raises PlanError where there is no such type, or its library is missing."""
    known = known_types()
    if name not in known:
        there_are = listed([repr(one) for one in known], len(known))
        raise PlanError(f"there is no connector type {name!r}{did_you_mean(name, known)}; installed are {there_are}")
    try:
        loaded: Maker = known[name].load()
    except ImportError as error:
        raise PlanError(f"connector type {name!r}: {error}{_remedy(known[name], error.name)}") from None
    except AttributeError as error:
        raise PlanError(f"connector type {name!r} ({known[name].value}): {error}") from None
    return loaded


def make_connector(name: str, options: Mapping[str, object]) -> Connector:
    """A connector of this type. Raises PlanError where it is missing, or cannot be made with these options."""
    maker = load_type(name)
    if fault := _misfit(maker, options):
        raise PlanError(f"connector type {name!r}: {fault}")
    try:
        return maker(**options)
    except (ValueError, TypeError, Cannot) as error:
        raise PlanError(f"connector type {name!r}: {error}") from None


def _misfit(maker: Maker, options: Mapping[str, object]) -> str:
    """The fault in the names of the options; "" if nothing, or if the class itself checks them (`**options`)."""
    parameters = inspect.signature(maker).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return ""
    named = {one.name: one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    known = f"its options are {listed(list(named), len(named))}" if named else "it has no options"
    for option in options:
        if option not in named:
            return f"unknown option {option!r}{did_you_mean(option, named)}; {known}"
    missing = [one.name for one in named.values() if one.default is one.empty and one.name not in options]
    return f"option {missing[0]!r} is missing; {known}" if missing else ""


def _remedy(point: EntryPoint, missing: str | None) -> str:
    """How to install the library that a type lacks, where its package names it."""
    package = point.dist.name if point.dist is not None else ""
    try:
        needed = requires(package) or [] if package else []
    except PackageNotFoundError:
        needed = []
    top = (missing or "").split(".")[0].replace("_", "-").lower()
    for requirement in needed:
        found = re.match(r"[\w.-]+", requirement)
        if found and found[0].replace("_", "-").lower() == top:
            return f"; install it: {to_install(found[0])}"
    return f"; install what {package} needs for it" if package else ""
