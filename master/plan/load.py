"""A plan from its file or text, in five stages; all faults of all stages are reported at once.

text -> positions (yaml_positions) -> parameters replaced (substitute) -> models (schema, schema_errors)
     -> sections built and compared (build_plan) -> Plan
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ..errors import PlanError
from .build_plan import resolved
from .model import Plan
from .read.schema_errors import validated
from .read.substitute import substitute
from .read.yaml_positions import Faults, PlanFaults, parse

NO_DEFINES: Final[Mapping[str, str]] = MappingProxyType({})


def load(path: Path, defines: Mapping[str, str] = NO_DEFINES) -> Plan:
    """The plan in a file. `defines`: values for its parameters, as from -D.

    Raises PlanError if the file cannot be read, and PlanFaults, whose text is the complete report of all faults.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlanError(f"{path}: byte {error.start} is not UTF-8 text; save the plan as UTF-8") from None
    except OSError as error:
        raise PlanError(f"{path}: {error.strerror or error}; a plan is a YAML file") from None
    return _read(text, str(path), defines, path)


def read(text: str, name: str, defines: Mapping[str, str] = NO_DEFINES) -> Plan:
    """The plan in a text; `name` is its name in faults. Raises PlanFaults."""
    return _read(text, name, defines, None)


def _read(text: str, name: str, defines: Mapping[str, str], path: Path | None) -> Plan:
    document = parse(text.replace("\r\n", "\n"), name)
    faults = Faults(document)
    faults.found += document.faults
    substituted = substitute(document, defines)
    faults.found += substituted.faults
    doc, removed = validated(substituted.data, faults)
    plan = resolved(doc, removed, substituted.values, path, faults)
    if plan is None:
        raise PlanFaults(faults.found, document.text)
    return plan
