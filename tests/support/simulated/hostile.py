"""A host that garbles some of what it says: mutations that know the shape of a message, from a seed.

Rule: `mutated` is a function of its random source alone, so that a seed is a case.
"""

import base64
import contextlib
import json
import zlib
from random import Random
from typing import Any

from ivypy.protocol.errors import ProtocolError
from tests.support.simulated.slave import SimulatedSlave

EXTREMES: list[Any] = [
    0, 1, -1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, -(2**63), 2**64, 2**70, 10**400,
    0.5, -0.0, 1e308, -1e308, 1e-320, True, False, None, [], {}, [[]], [None], ["x"] * 3, {"a": {"b": []}},
    "", "x", "x" * 100_000, "max", "running", "/dev/null", "../../x", "~", "%s%n{0}",
    "\x1b]0;PWNED\x07\x1b[31m", "\x9b31m", "\u202egnp.exe", "a\nb\r\0", "\ud800", "\udcff", "\u00e9" * 9,
]  # fmt: skip
RAW = [  # in a value's place
    b"1e999", b"-1e999", b"NaN", b"Infinity", b"9" * 400, b"9" * 5000, b"[" * 999, b'"\\ud800"', b"\xff\xfe", b"{", b"",
]  # fmt: skip
WAITED_FOR = ("luns", "end")  # for a day: files may be created meanwhile. So they are garbled, but not kept back
MOST = 8  # of the elements of an array that are changed


def packed_of(value: dict[str, Any], random: Random) -> dict[str, Any]:
    """A packed array, with other numbers in it, or other than it announces."""
    data = bytearray(zlib.decompress(base64.b64decode(value["z"])))
    size = int(value["t"][1])
    kind = random.randrange(5)
    if kind == 0 and data:
        for _ in range(random.randint(1, MOST)):
            at = random.randrange(len(data) // size) * size
            number = random.choice([0, 1, 2**31, 2**32 - 1, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 2])
            data[at : at + size] = (number % (1 << 8 * size)).to_bytes(size, "little")
    elif kind == 1:
        data += bytes(size * random.randint(1, 100))
    elif kind == 2:
        del data[: size * random.randint(1, 20)]
    elif kind == 3:
        value = value | {"t": random.choice(["u4", "u8", "i8", "f8"])}
        size = int(value["t"][1])
    else:
        return value | {"n": random.choice([-1, 0, value["n"] + 1, 2**20, 2**40, 10**300, 1.5, None])}
    return value | {"n": len(data) // size, "z": base64.b64encode(zlib.compress(bytes(data), 1)).decode()}


def places_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value within a message; an array is one."""
    if path and isinstance(value, dict) and "z" in value:
        return [path]
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, part in parts for found in places_of(part, (*path, key)))]


def mutated(data: bytes, random: Random) -> bytes:
    """One message's line, with something else in it."""
    message = json.loads(data)
    if random.random() < 0.1:
        cut = random.randrange(len(data))
        return random.choice([data[:cut], data[:cut] + random.randbytes(5) + data[cut:], random.randbytes(30) + b"\n"])
    path = random.choice(places_of(message)[1:])
    within = message
    for part in path[:-1]:
        within = within[part]
    key = path[-1]
    value = within[key]
    match random.randrange(6):
        case 0:
            del within[key]
        case 1 if isinstance(within, dict):
            within[random.choice(["x", "\x1b[31m", "type", "re"])] = random.choice(EXTREMES)
        case 2:
            within[key] = "%RAW%"
            return json.dumps(message).encode().replace(b'"%RAW%"', random.choice(RAW)) + b"\n"
        case 3 if isinstance(value, list):
            within[key] = value * random.choice([2, 100, 2000]) if value else [random.choice(EXTREMES)] * 3
        case _ if isinstance(value, dict) and "z" in value:
            within[key] = packed_of(value, random)
        case 4 if isinstance(value, int | float):
            within[key] = random.choice([value + 1, value - 1, -value, value * 2, value * 1000, value / 3, str(value)])
        case _:
            within[key] = random.choice(EXTREMES)
    return json.dumps(message).encode() + b"\n"


class HostileSlave(SimulatedSlave):
    """Says what a simulated slave says, but the n-th message of a type is garbled, said again, held back, or another.

    `garbled` is what it said instead. `kind`: the message's word.
    """

    def __init__(self, name: str, kind: str, nth: int, random: Random, **slave: Any) -> None:
        super().__init__(name, **slave)
        self.garbled: list[bytes] = []
        self._kind, self._nth, self._random = kind, nth, random
        self._held: list[bytes] = []
        self._sent: list[bytes] = []
        wire = self.pipe.say

        def say(data: bytes) -> None:
            for message in self._instead(data):
                wire(message)

        self.pipe.say = say  # type: ignore[method-assign]

    async def serve(self) -> None:
        with contextlib.suppress(ProtocolError):  # out of step with itself
            await super().serve()

    def _instead(self, data: bytes) -> list[bytes]:
        self._sent.append(data)
        if not data.startswith(b'{"type":"%s"' % self._kind.encode()):
            held, self._held = self._held, []
            return [data, *held]
        self._nth -= 1
        if self._nth >= 0:
            return [data]
        random, way = self._random, self._random.randrange(12)
        if self._kind in WAITED_FOR and way in (1, 4):
            way = 5
        if way == 0:
            found = [data] * random.choice([2, 3, 2000])
        elif way == 1:
            self._held.append(data)  # after what comes next
            found = []
        elif way == 2:
            found = [random.choice(self._sent)]
        elif way == 3:
            found = [data, random.choice(self._sent)]
        elif way == 4:
            found = []
        else:
            found = [mutated(data, random)]
        self.garbled += found
        if random.random() < 0.7:
            self._nth = 1 << 60  # only this once
        return found
