"""Messages as lines and back: round trips, and everything that is not exactly a message."""

import base64
import json
import zlib
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.protocol import messages
from ivypy.protocol.errors import ProtocolError
from ivypy.protocol.lines import LineReader, line, message, shortened
from ivypy.protocol.messages import COMMANDS, SAYINGS, TYPES, Array, ArrayType, ClockProbe, Go, Message, Ok, Result
from ivypy.protocol.parameters import Iosequencer, Parameters


def arrays(kind: ArrayType) -> st.SearchStrategy[Array]:
    return st.integers(0, 40).flatmap(
        lambda n: st.binary(min_size=n * kind.size, max_size=n * kind.size).map(lambda data: Array(kind, data))
    )


PARAMETERS = st.builds(
    Parameters,
    iosequencer=st.sampled_from(Iosequencer),
    iops=st.one_of(st.just("max"), st.floats(0, 1e9)),
    fraction_read=st.floats(0, 1),
    range=st.tuples(st.integers(0, 10**15), st.integers(0, 10**15)),
)
for _type in (Parameters,):
    st.register_type_strategy(_type, PARAMETERS)
st.register_type_strategy(Array, st.sampled_from(ArrayType).flatmap(arrays))
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
MESSAGES: st.SearchStrategy[Message] = st.one_of([st.from_type(kind) for kind in (*COMMANDS, *SAYINGS)])


@given(MESSAGES)
def test_every_message_survives_its_line(said: Message) -> None:
    assert message(line(said)) == said


@given(MESSAGES)
def test_a_line_is_one_line(said: Message) -> None:
    encoded = line(said)
    assert encoded.endswith(b"\n") and encoded.count(b"\n") == 1


def test_every_message_type_has_one_word() -> None:
    assert len(TYPES) == len(COMMANDS) + len(SAYINGS)
    assert messages.word(ClockProbe) == "clock_probe"


def fed(chunks: Iterable[bytes]) -> list[bytes]:
    reader = LineReader()
    return [found for chunk in chunks for found in reader.feed(chunk)]


def byte_by_byte(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


def test_lines_arrive_however_they_are_cut() -> None:
    said: list[Message] = [
        ClockProbe(1),
        Ok(1, 5),
        Go(2, 3, 4, Array(ArrayType.U32, b"\1\0\0\0"), Array(ArrayType.U32, b"\0\0\0\0")),
    ]
    data = b"".join(line(m) for m in said)
    for chunks in ([data], byte_by_byte(data), [data[:7], data[7:90], data[90:]], [b"", data, b""]):
        assert [message(found) for found in fed(chunks)] == said


@given(st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), max_size=8), st.data())
def test_the_reader_splits_at_newlines_only(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(found + b"\n" for found in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert fed(chunks) == lines


def test_a_stream_cut_inside_a_line_is_said() -> None:
    reader = LineReader()
    assert list(reader.feed(line(ClockProbe(1))[:-1])) == []
    with pytest.raises(ProtocolError, match="ended inside a line of 29 bytes that begins"):
        reader.close()


@pytest.mark.parametrize(
    "chunks", [[b"x" * 101], byte_by_byte(b"x" * 101), [b"x" * 100 + b"\n"], [b"ok\n" + b"x" * 101]]
)
def test_a_line_too_long_is_known_before_it_ends(chunks: list[bytes]) -> None:
    reader = LineReader(longest=100)
    with pytest.raises(ProtocolError, match="longer than 100 bytes"):
        for chunk in chunks:
            list(reader.feed(chunk))


def packed(**changes: Any) -> bytes:
    """A `go` line whose `order` array is changed."""
    array = {"t": "u4", "n": 2, "z": base64.b64encode(zlib.compress(bytes(8))).decode()} | changes
    empty = {"t": "u4", "n": 0, "z": base64.b64encode(zlib.compress(b"")).decode()}
    return json.dumps({"type": "go", "id": 1, "start_ns": 0, "length_ns": 1, "order": array, "classes": empty}).encode()


def deflated(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


RUBBISH = [
    (b"", "not JSON"),
    (b"hello world", "not JSON"),
    (b"\xff\xfe{}", "not JSON"),
    (b"[" * 100_000, "not JSON"),
    (b"[]", "not a JSON object"),
    (b"{}", "unknown message None"),
    (b'{"type":"go!","id":1}', "unknown message 'go!'"),
    (b'{"type":["go"],"id":1}', r"unknown message \['go'\]"),
    (b'{"type":"clock_probe"}', r"clock_probe: missing \['id'\], unknown \[\]"),
    (b'{"type":"clock_probe","id":1,"x":2}', r"missing \[\], unknown \['x'\]"),
    (b'{"type":"clock_probe","id":1,"id":2}', "a key stands twice"),
    (b'{"type":"clock_probe","id":true}', "clock_probe.id: 'True' is not int"),
    (b'{"type":"clock_probe","id":1.0}', "clock_probe.id: '1.0' is not int"),
    (b'{"type":"clock_probe","id":NaN}', "NaN is not a number here"),
    (b'{"type":"clock_probe","id":Infinity}', "Infinity is not a number here"),
    (b'{"type":"remark","text":7}', "remark.text: '7' is not str"),
    (b'{"type":"delete_workloads","id":1,"numbers":7}', "delete_workloads.numbers: not a list"),
    (b'{"type":"delete_workloads","id":1,"numbers":["a"]}', r"delete_workloads.numbers\[0\]: 'a' is not int"),
    (packed(t="f8"), "go.order: damaged array"),
    (packed(n=-1), "go.order: -4 bytes are no size"),
    (packed(n=1 << 40), "are no size for an array"),
    (packed(n=True), "not a packed array"),
    (packed(z="!"), "go.order: damaged array"),
    (packed(z=base64.b64encode(b"rubbish").decode()), "go.order: damaged array"),
    (packed(z=deflated(bytes(7))), "does not inflate to the 8 bytes"),
    (packed(z=deflated(bytes(9))), "does not inflate to the 8 bytes"),
    (packed(z=deflated(bytes(100_000_000))), "does not inflate to the 8 bytes"),
    (packed(z=base64.b64encode(zlib.compress(bytes(8)) + b"x").decode()), "does not inflate to the 8 bytes"),
    (packed(z=base64.b64encode(zlib.compress(bytes(8))[:-2]).decode()), "does not inflate to the 8 bytes"),
]


@pytest.mark.parametrize("data, fault", RUBBISH, ids=[str(i) for i in range(len(RUBBISH))])
def test_what_is_not_a_message_is_refused_with_its_place(data: bytes, fault: str) -> None:
    with pytest.raises(ProtocolError, match=fault):
        message(data)


@given(st.binary(max_size=200))
def test_no_bytes_do_anything_but_parse_or_be_refused(data: bytes) -> None:
    try:
        message(data)
    except ProtocolError:
        pass


def test_a_log_shows_arrays_by_their_size() -> None:
    big = Array(ArrayType.U64, bytes(range(256)) * 64)
    empty = Array(ArrayType.U32, b"")
    result = Result(3, 0, 1, False, 2, (1.5,), big, empty, empty, empty, empty, (), ())
    text = shortened(line(result))
    assert "kB>" in text and len(text) < 500
    assert shortened(line(ClockProbe(1))) == '{"type":"clock_probe","id":1}'
