"""Which elements of a connector are which LUNs, and what it says about these.

Rule: an element is a LUN where one of the join attributes has the same value in both: by default the wwn, else the
serial. Everything that the connector says about that element becomes an attribute of the LUN, and its instance one
named like its element type. An attribute may have several values, for a LUN that is reached by two ports.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from ...protocol.payload import Attribute, Fact
from .connector_spec import ConnectorSpec

_WWN: Final = re.compile(r"^(0x|naa\.|eui\.|uuid\.|wwn-0x|t10\.)", re.IGNORECASE)

Values = tuple[str, ...]
Attributes = Mapping[str, Values]  # of a LUN, from a connector
NOTHING: Final[Attributes] = {}


class JoinedLuns:
    """The config facts of one connector about LUNs, indexed by the values of the join attributes."""

    def __init__(self, spec: ConnectorSpec, facts: Iterable[Fact]) -> None:
        self._spec = spec
        self.elements: dict[tuple[str, str], dict[str, list[str]]] = {}  # element, instance: its attributes
        for element, instance, attribute, value in facts:
            values = self.elements.setdefault((element, instance), {}).setdefault(attribute, [])
            if str(value) not in values:
                values.append(str(value))
        self._by_key: dict[tuple[str, str], list[tuple[str, str]]] = {}  # LUN's attribute, value: elements
        for key, attributes in self.elements.items():
            for of_lun, own in spec.join.items():
                for value in attributes.get(own, ()):
                    self._by_key.setdefault((of_lun, _plain(of_lun, value)), []).append(key)

    @property
    def related(self) -> frozenset[str]:
        """The element types that may be a LUN's: those that have a join attribute, or that an attribute of these is
        named like. What only other elements name, as a processor does its controller, no LUN can name."""
        keys = set(self._spec.join.values())
        joined = {element for (element, _), attributes in self.elements.items() if keys & attributes.keys()}
        named = {name for (element, _), names in self.elements.items() if element in joined for name in names}
        return frozenset(named | joined)

    def of_lun(self, host: str, lun: Mapping[str, Attribute]) -> Attributes:
        """Its attributes of a LUN with these attributes; empty where no element is this LUN."""
        if self._spec.test_host not in ("", host):
            return NOTHING
        for of_lun in self._spec.join:
            value = lun.get(of_lun)
            if value is None or value == "":
                continue
            if found := self._by_key.get((of_lun, _plain(of_lun, str(value)))):
                return self._together(found)
        return NOTHING

    def _together(self, elements: Iterable[tuple[str, str]]) -> Attributes:
        """Of several elements that are one LUN: all values of each attribute."""
        attributes: dict[str, dict[str, None]] = {}
        for element, instance in elements:
            attributes.setdefault(element, {})[instance] = None
            for name, values in self.elements[element, instance].items():
                attributes.setdefault(name, {}).update(dict.fromkeys(values))
        return {name: tuple(values) for name, values in attributes.items()}


def _plain(attribute: str, value: str) -> str:
    """A value as it is compared: kernels and arrays write world-wide names in different ways."""
    plain = value.strip().lower()
    return re.sub(r"[:\s-]", "", _WWN.sub("", plain)) if attribute == "wwn" else plain


def shown(values: Values) -> str:
    """An attribute of a LUN in a plan's selections and in files."""
    return ",".join(values)
