"""The type `snmp`: tables of any device that has an SNMP agent (v2c, v3), switches above all.

Rule: a column is read from top to bottom with its neighbours, several rows at a time (GETBULK), with numbers only: no
MIB is needed, and none is looked up. The agent says of each value whether it counts (Counter32, Counter64), so that a
counter's kind and the size at which it wraps need not be said in the plan.
"""

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Final, Literal

from pysnmp.error import PySnmpError
from pysnmp.hlapi.v3arch.asyncio import (
    USM_AUTH_HMAC96_MD5,
    USM_AUTH_HMAC96_SHA,
    USM_AUTH_HMAC192_SHA256,
    USM_AUTH_HMAC384_SHA512,
    USM_PRIV_CBC56_DES,
    USM_PRIV_CFB128_AES,
    USM_PRIV_CFB256_AES,
    CommunityData,
    ContextData,
    ObjectIdentity,
    ObjectType,
    SnmpEngine,
    Udp6TransportTarget,
    UdpTransportTarget,
    UsmUserData,
    bulk_cmd,
)
from pysnmp.proto.rfc1902 import Counter32, Counter64, OctetString
from pysnmp.proto.rfc1905 import EndOfMibView

from ....protocol.connector import OPTIONAL, Cannot, Combine, ElementMetric, ReadingKind, Readings, Unit
from ....protocol.payload import Fact, Within
from ....protocol.text import printable
from .found_facts import FoundFacts, finite
from .options import MetricOptions, declared, read_options, read_secret, timeout_seconds

OID: Final = r"\.?\d+(\.\d+)+"
ROWS_AT_ONCE: Final = 25  # an agent sends fewer, if they do not fit into its largest packet
MOST_ROWS: Final = 10_000
TRIES: Final = 3  # packets get lost
AUTH: Final = {
    "md5": USM_AUTH_HMAC96_MD5,
    "sha": USM_AUTH_HMAC96_SHA,
    "sha256": USM_AUTH_HMAC192_SHA256,
    "sha512": USM_AUTH_HMAC384_SHA512,
}
PRIVACY: Final = {"des": USM_PRIV_CBC56_DES, "aes128": USM_PRIV_CFB128_AES, "aes256": USM_PRIV_CFB256_AES}
BITS: Final = {Counter32: 32, Counter64: 64}
REMEDY: Final = "name a column in `instance` that differs from row to row"
UNREACHED: Final = "check the address, that its agent answers this machine, and `community_file` or `user`"

Column = Mapping[str, Any]  # by index of the row: the value, of a class of pysnmp's


@dataclass(frozen=True, kw_only=True)
class OidOptions(MetricOptions):
    oid: str  # of a column


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Columns that have their rows in common."""

    element: str
    metrics: tuple[OidOptions, ...]
    instance: str = field(default="", metadata=OPTIONAL)  # OID of the column with the rows' names; "": their index
    attributes: dict[str, str] = field(default_factory=dict, metadata=OPTIONAL)  # OID: attribute of the element


@dataclass(frozen=True, kw_only=True)
class SnmpOptions:
    address: str
    port: Annotated[int, Within(1, 65_535)] = field(default=161, metadata=OPTIONAL)
    community_file: str = field(default="", metadata=OPTIONAL)  # "": it is `public`
    user: str = field(default="", metadata=OPTIONAL)  # makes it v3
    auth: Literal["md5", "sha", "sha256", "sha512"] = field(default="sha", metadata=OPTIONAL)
    auth_file: str = field(default="", metadata=OPTIONAL)  # with a passphrase
    privacy: Literal["des", "aes128", "aes256"] = field(default="aes128", metadata=OPTIONAL)
    privacy_file: str = field(default="", metadata=OPTIONAL)  # with a passphrase
    preset: Literal["", "interfaces"] = field(default="", metadata=OPTIONAL)
    tables: tuple[TableOptions, ...] = field(default=(), metadata=OPTIONAL)
    timeout: str = field(default="2s", metadata=OPTIONAL)


IF_TABLE, IF_X_TABLE = "1.3.6.1.2.1.2.2.1", "1.3.6.1.2.1.31.1.1.1"  # IF-MIB


def _events(column: str, attribute: str, meaning: str) -> OidOptions:
    return OidOptions(
        oid=f"{IF_TABLE}.{column}", attribute=attribute, unit=Unit.PER_S, combine=Combine.SUM, meaning=meaning,
        optional=True,
    )  # fmt: skip


def _transfer(column: str, attribute: str, meaning: str) -> OidOptions:
    return OidOptions(
        oid=f"{IF_X_TABLE}.{column}", attribute=attribute, unit=Unit.MIB_PER_S, combine=Combine.SUM, scale=2.0**-20,
        meaning=meaning,
    )  # fmt: skip


INTERFACES: Final = TableOptions(
    element="interface",
    instance=f"{IF_X_TABLE}.1",  # ifName
    metrics=(
        _transfer("6", "in_mib_per_s", "received by the switch (ifHCInOctets)"),
        _transfer("10", "out_mib_per_s", "sent by the switch (ifHCOutOctets)"),
        _events("13", "in_discards_per_s", "received and discarded without an error (ifInDiscards)"),
        _events("14", "in_errors_per_s", "received with an error (ifInErrors)"),
        _events("19", "out_discards_per_s", "not sent, without an error (ifOutDiscards)"),
        _events("20", "out_errors_per_s", "not sent for an error (ifOutErrors)"),
    ),
    attributes={f"{IF_X_TABLE}.15": "speed_mbit_per_s", f"{IF_X_TABLE}.18": "alias"},
)


class Snmp:
    """A connector."""

    def __init__(self, **options: Any) -> None:
        self._options = read_options(SnmpOptions, options)
        self._timeout_s = timeout_seconds(self._options.timeout)
        presets = (INTERFACES,) if self._options.preset == "interfaces" else ()
        self._tables = (*presets, *map(_checked, self._options.tables))
        if not self._tables:
            raise ValueError("options have no 'tables'; for a switch, write `preset: interfaces`")
        self._login = _login(self._options)
        self._sent: list[tuple[TableOptions, OidOptions]] = []  # those that config declared
        self._runner = asyncio.Runner()
        self._engine: SnmpEngine | None = None

    def config(self, luns: Sequence[str]) -> tuple[list[ElementMetric], list[Fact]]:
        metrics: list[ElementMetric] = []
        facts: dict[Fact, None] = {}
        self._sent = []
        for table in self._tables:
            columns = self._read([*_names(table), *(metric.oid for metric in table.metrics), *table.attributes])
            for metric in table.metrics:
                values = list(columns[metric.oid].values())
                if not values and not metric.optional:
                    raise Cannot(f"{self._options.address} has no values at OID {metric.oid} ({metric.attribute}); "
                                 "if it may be missing, write `optional: true`")  # fmt: skip
                if values or metric.kind != "auto":
                    bits = BITS.get(type(values[0]), 0) if values else 0
                    kind = ReadingKind.COUNTER if bits else ReadingKind.GAUGE
                    metrics.append(metric.element_metric(table.element, kind, bits))
                    self._sent.append((table, metric))
            for oid, attribute in table.attributes.items():
                for index, instance in _instances(table, columns).items():
                    if index in columns[oid] and (text := _text(columns[oid][index])) != "":
                        facts[Fact(table.element, instance, attribute, text)] = None
        return declared(metrics), list(facts)

    def gather(self) -> Readings:
        collected = FoundFacts(REMEDY)
        start_ns = time.monotonic_ns()
        for table in self._tables:
            sent = [metric for of_table, metric in self._sent if of_table is table]
            columns = self._read([*_names(table), *(metric.oid for metric in sent)])
            for index, instance in _instances(table, columns).items():
                for metric in sent:
                    if index in columns[metric.oid]:
                        value = _number(columns[metric.oid][index], f"{metric.oid}.{index}")
                        if value is not None:
                            collected.add(Fact(table.element, instance, metric.attribute, value), f"row {index}")
        return Readings(0, collected.facts(), start_ns, time.monotonic_ns())

    def _read(self, oids: Sequence[str]) -> dict[str, Column]:
        """Columns. Raises Cannot."""
        where = f"{self._options.address}, port {self._options.port}"
        try:
            return self._runner.run(self._read_in_time(list(dict.fromkeys(oids))))
        except TimeoutError:
            what = f"no whole answer within {self._timeout_s:g} s"
            raise Cannot(f"{where}: {what}; {UNREACHED}, or give a longer `timeout`") from None
        except (PySnmpError, OSError) as error:
            raise Cannot(f"{where}: {printable(str(error))}; {UNREACHED}") from None

    async def _read_in_time(self, oids: Sequence[str]) -> dict[str, Column]:
        if self._engine is None:
            self._engine = SnmpEngine()
        async with asyncio.timeout(self._timeout_s):
            kind = Udp6TransportTarget if ":" in self._options.address else UdpTransportTarget
            address = (self._options.address, self._options.port)
            target = await kind.create(address, timeout=self._timeout_s / TRIES, retries=TRIES - 1)
            return await self._walk(partial(self._bulk, self._engine, target), oids)

    async def _bulk(self, engine: SnmpEngine, target: Any, oids: Sequence[str]) -> list[tuple[str, Any]]:
        """The next values after these, column by column and then row by row. Raises Cannot."""
        error, status, at, binds = await bulk_cmd(
            engine, self._login, target, ContextData(), 0, ROWS_AT_ONCE,
            *(ObjectType(ObjectIdentity(oid)) for oid in oids), lookupMib=False,
        )  # fmt: skip
        if error or status:
            what = f"{status.prettyPrint()} at OID {oids[int(at) - 1]}" if not error else str(error)
            raise Cannot(f"{self._options.address}, port {self._options.port}: {printable(what)}; {UNREACHED}")
        return [(str(oid), value) for oid, value in binds]

    async def _walk(self, bulk: Callable[..., Any], oids: Sequence[str]) -> dict[str, Column]:
        """Columns, each up to its end. Raises Cannot."""
        values_by_oid: dict[str, dict[str, Any]] = {oid: {} for oid in oids}
        after = {oid: oid for oid in oids}  # of the columns that have not ended: the OID that was read last
        while after:
            columns = list(after)
            binds = await bulk([after[column] for column in columns])
            for i, (oid, value) in enumerate(binds):
                column = columns[i % len(columns)]
                index = oid.removeprefix(f"{column}.")
                if index == oid or isinstance(value, EndOfMibView):
                    after.pop(column, None)
                elif column in after:
                    if index in values_by_oid[column] or len(values_by_oid[column]) == MOST_ROWS:
                        raise Cannot(f"{self._options.address} sends {oid} again and again, or too many rows")
                    values_by_oid[column][index] = value
                    after[column] = oid
        return dict(values_by_oid)


def _checked(table: TableOptions) -> TableOptions:
    """Raises ValueError at what is no OID; without leading dots."""
    for oid in (*_names(table), *(one.oid for one in table.metrics), *table.attributes):
        if not re.fullmatch(OID, oid):
            raise ValueError(f"options.tables: {oid!r} is no OID; write it in numbers, as in {IF_X_TABLE}.6")
    return replace(
        table,
        instance=table.instance.lstrip("."),
        metrics=tuple(replace(one, oid=one.oid.lstrip(".")) for one in table.metrics),
        attributes={oid.lstrip("."): name for oid, name in table.attributes.items()},
    )


def _login(options: SnmpOptions) -> CommunityData | UsmUserData:
    """Raises Cannot where a secret cannot be read, ValueError where one is missing."""
    if not options.user:
        community = read_secret(options.community_file) if options.community_file else "public"
        return CommunityData(community, mpModel=1)
    if options.privacy_file and not options.auth_file:
        raise ValueError("options: 'privacy_file' needs 'auth_file', too")
    secrets: dict[str, Any] = {}
    if options.auth_file:
        secrets = {"authKey": read_secret(options.auth_file), "authProtocol": AUTH[options.auth]}
    if options.privacy_file:
        secrets |= {"privKey": read_secret(options.privacy_file), "privProtocol": PRIVACY[options.privacy]}
    return UsmUserData(options.user, **secrets)


def _names(table: TableOptions) -> list[str]:
    return [table.instance] if table.instance else []


def _instances(table: TableOptions, columns: Mapping[str, Column]) -> dict[str, str]:
    """The name of each row, by its index."""
    if table.instance:
        return {index: _text(value) or index for index, value in columns[table.instance].items()}
    return {index: index for column in columns.values() for index in column}


def _text(value: Any) -> str:
    text: str = value.prettyPrint()
    return printable(text)


def _number(value: Any, where: str) -> float | None:
    """None: no value. Raises Cannot where it is something else than a number."""
    try:
        return finite(float(bytes(value)) if isinstance(value, OctetString) else int(value))
    except (ValueError, TypeError):
        raise Cannot(f"{where} is {_text(value)[:60]!r}, no number; it may be an attribute instead") from None
