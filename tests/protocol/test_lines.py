"""Messages as lines and back: round trips, and everything that is not exactly a message."""

import base64
import json
import zlib
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.protocol import messages
from ivypy.protocol.errors import ProtocolError
from ivypy.protocol.lines import LineReader, decode_line, encode_line, shortened
from ivypy.protocol.messages import COMMANDS, HOST_MESSAGES, TYPES, ClockProbe, Go, Message, Ok, Result
from ivypy.protocol.payload import Array, ArrayType, Fact, Facts, Notice, NoticeKind
from ivypy.protocol.text import LONGEST_TEXT, printable

KIND = NoticeKind.CREATING_FILES


def arrays(kind: ArrayType) -> st.SearchStrategy[Array]:
    return st.integers(0, 40).flatmap(
        lambda n: st.binary(min_size=n * kind.size, max_size=n * kind.size).map(lambda data: Array(kind, data))
    )


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Whatever a field of that annotation may hold on the link."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        bounds = {"min_value": arguments[1].low, "max_value": arguments[1].high}
        return st.floats(**bounds) if arguments[0] is float else st.integers(**bounds)
    if kind is Facts:
        return st.lists(st.builds(Fact, TEXTS, TEXTS, TEXTS, values(int)), max_size=4).map(Facts)
    if kind is Array:
        return st.sampled_from(ArrayType).flatmap(arrays)
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        return st.builds(kind, **{f.name: values(hints[f.name]) for f in fields(kind)})
    if origin is tuple and arguments[1:] == (Ellipsis,):
        return st.lists(values(arguments[0]), max_size=4).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, arguments))
    if origin is dict:
        return st.dictionaries(TEXTS, values(arguments[1]), max_size=4)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, UnionType):
        return st.one_of([values(a) for a in arguments])
    if kind is str:
        return TEXTS
    if kind is int:
        return st.integers(-(1 << 63), (1 << 63) - 1)
    return st.floats(allow_nan=False, allow_infinity=False) if kind is float else st.from_type(kind)


TEXTS = st.text(max_size=20).map(printable)
MESSAGES: st.SearchStrategy[Message] = st.one_of([values(kind) for kind in (*COMMANDS, *HOST_MESSAGES)])


@given(MESSAGES)
def test_every_message_survives_its_line(said: Message) -> None:
    assert decode_line(encode_line(said)) == said


@given(MESSAGES)
def test_a_line_is_one_line(said: Message) -> None:
    encoded = encode_line(said)
    assert encoded.endswith(b"\n") and encoded.count(b"\n") == 1


def test_every_message_type_has_one_word() -> None:
    assert len(TYPES) == len(COMMANDS) + len(HOST_MESSAGES)
    assert messages.wire_name(ClockProbe) == "clock_probe"


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
    data = b"".join(encode_line(m) for m in said)
    for chunks in ([data], byte_by_byte(data), [data[:7], data[7:90], data[90:]], [b"", data, b""]):
        assert [decode_line(found) for found in fed(chunks)] == said


@given(st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), max_size=8), st.data())
def test_the_reader_splits_at_newlines_only(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(found + b"\n" for found in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert fed(chunks) == lines


def test_a_stream_cut_inside_a_line_is_reported() -> None:
    reader = LineReader()
    assert list(reader.feed(encode_line(ClockProbe(1))[:-1])) == []
    with pytest.raises(ProtocolError, match="ended inside a line of 49 bytes that begins"):
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
    fields = {"id": 1, "start_ns": 0, "length_ns": 1, "order": array, "classes": empty, "sections": 0}
    return json.dumps({"type": "go", **fields}).encode()


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
    (b'{"type":["go"],"id":1}', "unknown message a list of 1"),
    (b'{"type":"die"}', r"die: missing \['id'\], unknown \[\]"),
    (b'{"type":"die","id":1,"x":2}', r"missing \[\], unknown \['x'\]"),
    (b'{"type":"clock_probe","id":1,"id":2}', "duplicate key"),
    (b'{"type":"die","id":true}', "die.id: True is not int"),
    (b'{"type":"die","id":1.0}', "die.id: 1.0 is not int"),
    (b'{"type":"clock_probe","id":NaN}', "NaN is not a number here"),
    (b'{"type":"clock_probe","id":Infinity}', "Infinity is not a number here"),
    (b'{"type":"notice","kind":"no_answer","text":7}', "notice.text: 7 is not str"),
    (b'{"type":"notice","kind":"gossip","text":""}', "notice.kind: 'gossip' is none of"),
    (b'{"type":"delete_workloads","id":1,"numbers":7}', "delete_workloads.numbers: not a list"),
    (b'{"type":"delete_workloads","id":1,"numbers":["a"]}', r"delete_workloads.numbers\[0\]: 'a' is not int"),
    (packed(t="f9"), "go.order: damaged array"),
    (packed(n=-1), "go.order: -4 bytes are no size"),
    (packed(n=1 << 40), "its arrays announce"),
    (packed(n=True), "not a packed array"),
    (packed(z="!"), "go.order: damaged array"),
    (packed(z=base64.b64encode(b"rubbish").decode()), "go.order: damaged array"),
    (packed(z=deflated(bytes(7))), "does not inflate to the 8 bytes"),
    (packed(z=deflated(bytes(9))), "does not inflate to the 8 bytes"),
    (packed(z=deflated(bytes(10_000_000))), "does not inflate to the 8 bytes"),
    (packed(z=base64.b64encode(zlib.compress(bytes(8)) + b"x").decode()), "does not inflate to the 8 bytes"),
    (packed(z=base64.b64encode(zlib.compress(bytes(8))[:-2]).decode()), "does not inflate to the 8 bytes"),
]


HUGE = "9" * 400
BEYOND = [  # of the right shape, and no number or text that anyone means
    ('"type":"die","id":9223372036854775808', "die.id: 9223372036854775808 is not within"),
    (f'"type":"die","id":{HUGE}', r"die.id: 99999999999999999999\.\.\. is not within"),
    (f'"type":"die","id":{"9" * 5000}', "not JSON"),
    (f'"type":"clock_reading","re":1,"received_ns":{1 << 62},"sent_ns":{(1 << 62) + 1},"done":0', "sent_ns"),
    ('"type":"ok","re":1,"effective_ns":-9223372036854775808,"discarded":0,"backend":""', "ok.effective_ns"),
    ('"type":"luns","re":1,"luns":[],"luns":[]', "duplicate key"),
    ('"type":"notice","kind":"no_answer","text":"\\ud800"', r"notice.text: it holds the character U\+D800"),
    ('"type":"notice","kind":"no_answer","text":"\\u001b[31m"', r"notice.text: it holds the character U\+001B"),
    ('"type":"notice","kind":"no_answer","text":"\\u009b31m"', r"notice.text: it holds the character U\+009B"),
    ('"type":"notice","kind":"no_answer","text":"\\u202egnp.exe"', r"notice.text: it holds the character U\+202E"),
    (f'"type":"notice","kind":"no_answer","text":"{"x" * 100_000}"', "notice.text: 100000 characters are too many"),
    (f'"type":"delete_workloads","id":1,"numbers":[{"0," * 200_000}0]', "numbers: 200001 are more than 100,000"),
    (f'"type":"delete_workloads","id":1,"numbers":[{"[]," * 1_000_000}0]', "holds more than 600,000 values"),
    (f'"type":"delete_workloads","id":1,"numbers":{"[" * 900}{"]" * 900}', r"numbers\[0\]: a list of 1 is not int"),
    (f'"type":{"[" * 900}{"]" * 900}', "unknown message a list of 1"),
    (f'"type":"{"x" * 100_000}"', "unknown message 'x{40}'"),
    (f'"type":"clock_probe","id":1,"{"x" * 100_000}":2', r"unknown \['x{40}'\]"),
    ('"type":"stopped","reason":["died"]', "missing"),
]


@pytest.mark.parametrize("inside, fault", BEYOND, ids=[str(i) for i in range(len(BEYOND))])
def test_values_out_of_bounds_are_refused_in_a_short_sentence(inside: str, fault: str) -> None:
    with pytest.raises(ProtocolError, match=fault) as refused:
        decode_line(b"{" + inside.encode() + b"}")
    assert len(str(refused.value)) < 300


def a_result(**changes: Any) -> bytes:
    empty = Array(ArrayType.U32, b"")
    said = json.loads(encode_line(Result(3, 0, 1, False, 2, (1.5,), empty, empty, empty, empty, empty, (), ())))
    return json.dumps(said | changes).encode()


@pytest.mark.parametrize(
    "changes, fault",
    [
        ({"cpu": [101.0]}, r"result.cpu\[0\]: 101.0 is not within 0 and 100"),
        ({"cpu": [-1]}, r"result.cpu\[0\]: -1 is not within"),
        ({"cpu": [int(HUGE)]}, r"result.cpu\[0\]"),
        ({"length_ns": 1 << 70}, "result.length_ns"),
        ({"length_ns": -1}, "result.length_ns"),
        ({"subinterval": -1}, "result.subinterval"),
        ({"subinterval": 1 << 40}, "result.subinterval"),
        ({"start_ns": 1 << 63}, "result.start_ns"),
        ({"missing": [-1]}, "result.missing"),
        ({"faults": [{"number": 0, "errno": 1 << 31, "count": 1}]}, "errno"),
        ({"last": 1}, "result.last: 1 is not bool"),
    ],
)
def test_results_out_of_bounds_are_refused(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(ProtocolError, match=fault):
        decode_line(a_result(**changes))


def test_no_float_is_infinite_however_it_is_written() -> None:
    with pytest.raises(ProtocolError, match=r"result.cpu\[0\]: inf is not within"):
        decode_line(a_result().replace(b"1.5", b"1e999"))


def test_arrays_of_a_message_share_its_size_limit() -> None:
    array = {"t": "u8", "n": 100, "z": deflated(bytes(800))}
    said = a_result(counts=array, moments=array)
    assert decode_line(said, room=1600)
    with pytest.raises(ProtocolError, match="result: its arrays announce 1600 bytes, and may have 1599"):
        decode_line(said, room=1599)
    with pytest.raises(ProtocolError, match="its arrays announce"):
        decode_line(a_result(counts=array | {"n": 10**4000}))


def test_arrays_within_a_list_count_as_well() -> None:
    values = {"t": "f8", "n": 100, "z": deflated(bytes(800))}
    read = {"subinterval": 0, "start_ns": 0, "end_ns": 0, "stamps": [], "values": values}
    said = a_result(readings=[read, read])
    assert decode_line(said, room=1600)
    with pytest.raises(ProtocolError, match="result: its arrays announce 1600 bytes, and may have 1599"):
        decode_line(said, room=1599)


@given(st.text())
def test_any_text_is_sent_as_printable_text(text: str) -> None:
    assert decode_line(encode_line(Notice(KIND, text))) == Notice(KIND, printable(text))


def test_texts_beyond_the_limit_are_cut() -> None:
    said = decode_line(encode_line(Notice(KIND, "x" * (LONGEST_TEXT + 1))))
    assert said == Notice(KIND, "x" * (LONGEST_TEXT - 3) + "...")


@pytest.mark.parametrize("data, fault", RUBBISH, ids=[str(i) for i in range(len(RUBBISH))])
def test_what_is_not_a_message_is_refused_with_its_place(data: bytes, fault: str) -> None:
    with pytest.raises(ProtocolError, match=fault):
        decode_line(data)


@given(st.binary(max_size=200))
def test_no_bytes_do_anything_but_parse_or_be_refused(data: bytes) -> None:
    try:
        decode_line(data)
    except ProtocolError:
        pass


def test_a_log_gets_the_beginning_of_a_line_without_end() -> None:
    text = shortened(b'{"type":"notice","kind":"no_answer","text":"' + b"x" * (2 << 20))
    assert text.startswith('{"type":"notice"') and text.endswith("... (2097.2 kB)") and len(text) < 20_000


def test_a_log_shows_arrays_by_their_size() -> None:
    big = Array(ArrayType.U64, bytes(range(256)) * 64)
    empty = Array(ArrayType.U32, b"")
    result = Result(3, 0, 1, False, 2, (1.5,), big, empty, empty, empty, empty, (), ())
    text = shortened(encode_line(result))
    assert "kB>" in text and len(text) < 600
    assert shortened(encode_line(ClockProbe(1))) == '{"type":"clock_probe","id":1,"newest_stamp_ns":0}'
