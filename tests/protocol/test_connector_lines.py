"""The lines of the link to a connector: what any program may write, and how what is wrong is named."""

import json
from typing import Any

import pytest

from ivypy.master.connectors.serve import answer_to
from ivypy.protocol.connector import (
    CONNECTOR_COMMANDS,
    CONNECTOR_MESSAGES,
    Cannot,
    Combine,
    Connector,
    ConnectorConfig,
    ConnectorHello,
    Declined,
    ElementMetric,
    Gather,
    ReadConfig,
    ReadingKind,
    Readings,
    Unit,
)
from ivypy.protocol.errors import ProtocolError
from ivypy.protocol.lines import decode, encode_line
from ivypy.protocol.payload import Fact, Facts

BUSY = ElementMetric("port", "busy_percent", Unit.PERCENT)
FACTS = Facts([Fact("port", "1A", "busy_percent", 41.5), Fact("port", "1A", "pool", "gold")])


def message(**fields: Any) -> Any:
    return decode(json.dumps(fields).encode(), CONNECTOR_MESSAGES)


@pytest.mark.parametrize(
    "sent",
    [
        ConnectorHello(1, "example", "2.0"),
        ConnectorConfig(1, (BUSY,), FACTS),
        ConnectorConfig(
            1, (ElementMetric("d", "read_us", Unit.US, ReadingKind.COUNTER, Combine.SUM, 2.0, "reads", 32),)
        ),
        Readings(2, FACTS, 5, 6, {"port": 5}),
        Declined(2, "the array is busy"),
    ],
)
def test_a_message_reads_back_as_it_was_sent(sent: Any) -> None:
    assert decode(encode_line(sent)[:-1], CONNECTOR_MESSAGES) == sent


def test_a_program_may_leave_out_what_has_a_default() -> None:
    assert message(type="connector_hello", protocol=1, name="a") == ConnectorHello(1, "a", "")
    assert message(
        type="connector_config",
        re=1,
        metrics=[{"element": "port", "attribute": "busy_percent", "unit": "%"}],
    ) == ConnectorConfig(1, (BUSY,), Facts())
    assert message(type="readings", re=1, facts=[]) == Readings(1, Facts())


@pytest.mark.parametrize(
    "fact, fault",
    [
        (["port", "1A", "busy"], "is not [element, instance, attribute, value]"),
        ("port", "is not [element, instance, attribute, value]"),
        (["port", "1A", "busy", None], "None is neither text nor a number"),
        (["port", "1A", "busy", True], "True is neither text nor a number"),
        (["port", "1A", "busy", [1]], "is neither text nor a number"),
        (["port", ["1A"], "busy", 1], "is not str"),
        (["port", 7, "busy", 1], "7 is not str"),
        (["port", "1\u001bA", "busy", 1], "U+001B"),
        (["port", "1A", "busy", "x\n"], "U+000A"),
        (["port", "1A", "busy", 10**400], "is too large"),
    ],
)
def test_what_is_no_fact_is_named_by_its_place(fact: Any, fault: str) -> None:
    with pytest.raises(ProtocolError) as found:
        message(type="readings", re=1, facts=[["port", "1A", "busy", 1], fact])
    assert "readings.facts[1]" in str(found.value) and fault in str(found.value)


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"1e999"])
def test_a_number_that_is_none_is_rejected(number: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(b'{"type":"readings","re":1,"facts":[["a","b","c",' + number + b"]]}", CONNECTOR_MESSAGES)


def test_an_unknown_unit_is_named_with_those_that_there_are() -> None:
    with pytest.raises(ProtocolError, match=r"'percent' is none of \['%', 'us'"):
        message(
            type="connector_config", re=1, metrics=[{"element": "p", "attribute": "b", "unit": "percent"}], facts=[]
        )


class Port:
    """The smallest connector."""

    def __init__(self, fault: Exception | None = None) -> None:
        self._fault = fault

    def config(self, luns: Any) -> Any:
        return [BUSY], [Fact("lun", luns[0], "serial", "A1")]

    def gather(self) -> Any:
        if self._fault:
            raise self._fault
        yield Fact("port", "1A", "busy_percent", 41.5)


def answered(connector: Connector, command: Any) -> Any:
    ticks = iter([100, 250])
    assert decode(encode_line(command)[:-1], CONNECTOR_COMMANDS) == command
    return decode(answer_to(connector, command, lambda: next(ticks))[:-1], CONNECTOR_MESSAGES)


def test_a_class_with_two_methods_is_a_connector() -> None:
    assert answered(Port(), ReadConfig(1, ("/dev/sdb",))) == ConnectorConfig(
        1, (BUSY,), Facts([Fact("lun", "/dev/sdb", "serial", "A1")])
    )
    assert answered(Port(), Gather(2)) == Readings(2, Facts([Fact("port", "1A", "busy_percent", 41.5)]), 100, 250)


def test_the_stamps_of_a_class_include_the_time_in_which_a_generator_reads() -> None:
    assert answered(Port(), Gather(2)).end_ns == 250


@pytest.mark.parametrize(
    "fault, reason",
    [(Cannot("the array is busy"), "the array is busy"), (KeyError("port"), "KeyError: 'port'")],
)
def test_what_a_class_cannot_do_now_is_declined(fault: Exception, reason: str) -> None:
    assert answered(Port(fault), Gather(2)) == Declined(2, reason)


@pytest.mark.slow
def test_a_line_has_room_for_as_many_facts_as_the_page_says() -> None:
    facts = Facts(Fact("port", f"p{number}", "busy_percent", number) for number in range(100_000))
    line = encode_line(Readings(1, facts, 1, 2, {"port": 1})).strip()
    assert decode(line, CONNECTOR_MESSAGES) == Readings(1, facts, 1, 2, {"port": 1})
