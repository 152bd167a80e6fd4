"""The plan's connectors: what starts each of them, and the attributes that it gives to LUNs."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Final

from ..connectors.connector_spec import HOST, LATEST_DEADLINE, ConnectorSpec
from ..connectors.load_type import make_connector
from ..errors import PlanError
from ..hosts.host_spec import HostSpec, Launcher
from .hosts import host_of
from .read.schema import ConnectorDoc, PlanDoc
from .read.yaml_positions import Faults, Path
from .select.attributes import ATTRIBUTES

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")  # part of metrics' names, where a dot ends it
SERVE: Final = (sys.executable, "-P", "-m", "ivypy.master.connectors.serve")  # a class as a program


def connectors_of(doc: PlanDoc, faults: Faults) -> tuple[ConnectorSpec, ...]:
    """All but that of the test hosts."""
    found = (_spec(doc, name, one, faults) for name, one in doc.connectors.items() if name != HOST and one.enabled)
    return tuple(one for one in found if one is not None)


def host_connector_of(doc: PlanDoc, faults: Faults) -> ConnectorSpec | None:
    """That of the test hosts; None where it is off."""
    spec = ConnectorSpec(HOST, HostSpec(HOST, Launcher.LOCAL, HOST), (), join={"path": "path"}, required=False)
    given = doc.connectors.get(HOST)
    if given is None:
        return spec
    for key in sorted(given.model_fields_set - {"enabled"}):
        text = f"the connector {HOST} is ivypy's own, and has no {key!r}; give another one another name"
        faults.add_key(("connectors", HOST, key), text)
    return spec if given.enabled else None


def attributes_of(doc: PlanDoc, faults: Faults) -> Iterator[str]:
    """The LUNs' attributes that connectors give."""
    for name, one in doc.connectors.items():
        for place, attribute in enumerate(one.attributes):
            if attribute in ATTRIBUTES:
                text = f"the attribute {attribute!r} is found on the host; a connector cannot give it"
                faults.add(("connectors", name, "attributes", place), text)
            elif not _NAME.fullmatch(attribute):
                text = f"{attribute!r} cannot be an attribute's name; use a-z, 0-9 and _"
                faults.add(("connectors", name, "attributes", place), text)
            yield attribute


def _spec(doc: PlanDoc, name: str, connector: ConnectorDoc, faults: Faults) -> ConnectorSpec | None:
    path: Path = ("connectors", name)
    if not _NAME.fullmatch(name):
        faults.add_key(path, f"{name!r} cannot be a connector's name; use a-z, 0-9 and _")
    if (connector.program is None) == (connector.type is None):
        if not any(faults.unreadable((*path, key)) for key in ("program", "type")):
            faults.add(path, "a connector has either a program, a command line that starts it, or a type")
        return None
    if connector.program is not None and connector.options:
        faults.add_key((*path, "options"), "options are for a type; a program has them in its command line")
    if connector.type is not None and connector.on is not None:
        faults.add_key((*path, "on"), "a type runs on this machine, where ivypy is installed; remove `on`")
    host: HostSpec | None = HostSpec(name, Launcher.LOCAL, name)
    if connector.program is not None and connector.on is not None:
        host = host_of(connector.on, doc.ssh, (*path, "on"), faults)
    if connector.type is not None:
        _check_type(connector.type, connector.options, path, faults)
    words = connector.program or (*SERVE, connector.type or "", json.dumps(connector.options))
    if host is None:
        return None
    return ConnectorSpec(
        name, host, words, tuple(connector.attributes), _join(connector, path, faults), connector.gather,
        _deadline(connector, name, faults), connector.required,
    )  # fmt: skip


def _check_type(name: str, options: Mapping[str, object], path: Path, faults: Faults) -> None:
    """By making one, as its process will: it opens nothing before it is asked."""
    try:
        make_connector(name, options)
    except PlanError as error:
        faults.add((*path, "type"), str(error))


def _join(connector: ConnectorDoc, path: Path, faults: Faults) -> dict[str, str]:
    for attribute in connector.join:
        if attribute not in ATTRIBUTES or not ATTRIBUTES[attribute].selectable:
            faults.add((*path, "join"), f"LUNs have no attribute {attribute!r} to join by; use serial, wwn or path")
    return dict(connector.join)


def _deadline(connector: ConnectorDoc, name: str, faults: Faults) -> float:
    if not 0 < connector.deadline <= LATEST_DEADLINE:
        given = f"deadline is {connector.deadline:.0%} of a subinterval"
        text = f"{given}; it must be above 0% and at most {LATEST_DEADLINE:.0%}"
        faults.add(("connectors", name, "deadline"), text)
    return connector.deadline
