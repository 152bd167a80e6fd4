"""Whatever a controller commands, in whatever order, costs the slave no crash: it obeys, or refuses, and goes on."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from random import Random
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from ivypy.protocol import messages as m
from ivypy.protocol.lines import encode_line
from ivypy.protocol.parameters import Parameters
from ivypy.protocol.payload import Array, ArrayType, Consent
from ivypy.protocol.states import State, check_answer
from ivypy.slave.engine._engine import now_ns
from ivypy.slave.link.command_server import Exit
from tests.support.slave_client import Client, u32

EDGES = [0, 1, 2, -1, 100, 1 << 16, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 53, 1 << 62, (1 << 63) - 1, -(1 << 63)]
FLOATS = [0.0, -1.0, 0.5, 1.0, 1e-300, 1e9, 1e300, -1e308]
TEXTS = [
    "",
    "x",
    "null",
    "libaio",
    "auto",
    "io_uring",
    "é\N{GRINNING FACE}",
    "x" * 5000,
    "{}",
    "/",
    "/nowhere/{}",
    "%s*[!",
]
KINDS: list[type[m.Command]] = [kind for kind in m.COMMANDS if kind not in (m.Die, m.MeasureClock)]
SLOW = (m.ListLuns, m.InspectLuns, m.CreateFiles)  # they look around on the machine
STEERING = (m.Continue, m.Cooldown, m.Stop, m.Halt)
INSTANCES = 3
PATIENCE_S = 60.0  # for all answers, on a machine with other work


class Controller:
    """Makes up commands. `folder` is all that they can name of the machine."""

    def __init__(self, random: Random, folder: Path) -> None:
        self.random = random
        self.agreed: Consent | None = None
        self.luns = [str(folder / "lun0"), str(folder / "lun1")]
        self.paths = [*self.luns, str(folder / "new{}"), str(folder / "*"), str(folder), *TEXTS]

    def command(self, number: int, state: State) -> m.Command:
        often = STEERING if state is State.RUNNING else (m.Go, m.CreateWorkloads, m.EditWorkloads)
        kind = self.random.choice(KINDS if self.random.random() < 0.5 else often)
        if kind in SLOW and self.random.random() < 0.8:
            kind = m.ClockProbe
        hints = get_type_hints(kind, include_extras=True)
        wild = self.random.choice([0.0, 0.1, 0.5])
        values = {f.name: self.value(hints[f.name], f.name, wild) for f in fields(kind)}
        never = {"blocks": False} if kind is m.ListLuns else {}  # a test looks at no device of the machine
        if kind is m.Go and self.random.random() < 0.6:
            numbers = range(self.random.randint(1, INSTANCES))
            values |= {"order": u32(*numbers), "classes": u32(*numbers)}
        return kind(**values | never | {"id": number})

    def value(self, hint: Any, name: str, wild: float) -> Any:
        """Something that a field of that annotation can hold; with probability `wild`, not what it is meant for."""
        random, origin, arguments = self.random, get_origin(hint), get_args(hint)
        if random.random() >= wild and name in SANE:
            return SANE[name](self)
        if origin is Annotated:
            within = arguments[1]
            fitting = [edge for edge in (*EDGES, within.low, within.high) if within.low <= edge <= within.high]
            return arguments[0](random.choice(fitting))
        if hint is Array:
            kind = random.choice(list(ArrayType))
            return Array(kind, random.randbytes(kind.size * random.choice([0, 1, 2, 1000])))
        if isinstance(hint, type) and is_dataclass(hint):
            hints = get_type_hints(hint, include_extras=True)
            return hint(**{f.name: self.value(hints[f.name], f.name, wild) for f in fields(hint)})
        if origin is tuple and arguments[1:] == (Ellipsis,):
            return tuple(self.value(arguments[0], "", wild) for _ in range(random.choice([0, 1, 1, 2, 20])))
        if origin is tuple:
            return tuple(self.value(a, "", wild) for a in arguments)
        if origin is dict:
            return {
                random.choice(self.paths): self.value(arguments[1], name, wild) for _ in range(random.choice([0, 2]))
            }
        if origin is Literal:
            return random.choice(arguments)
        if origin in (Union, UnionType):
            return self.value(random.choice(arguments), name, wild)
        if hint is NoneType:
            return None
        if hint is bool:
            return random.random() < 0.5
        if hint is int:
            return random.choice(EDGES)
        if hint is float:
            return random.choice(FLOATS)
        return random.choice(self.paths) if hint is str else random.choice(list(hint))


# What a field is meant for, by its name.
SANE: dict[str, Callable[[Controller], Any]] = {
    "backend": lambda c: "null",
    "threads": lambda c: c.random.choice([1, 2]),
    "lease_ns": lambda c: 5 * 10**9,
    "newest_stamp_ns": lambda c: now_ns(),
    "cpus": lambda c: (),
    "lun": lambda c: c.random.choice(c.luns),
    "number": lambda c: c.random.randrange(INSTANCES - 1, 2 * INSTANCES),
    "numbers": lambda c: tuple(c.random.sample(range(INSTANCES, 2 * INSTANCES), 2)),
    "consent": lambda c: c.random.choice([None, c.agreed]),
    "tags": lambda c: 4,
    "ceiling": lambda c: 8,
    "blocksize_ceiling": lambda c: 8192,
    "parameters": lambda c: Parameters(iops=c.random.choice([100.0, 0.0, "max"]), maxtags=c.random.choice([1, 8])),
    "size": lambda c: c.random.choice([4096, 1 << 20]),
    "count": lambda c: 1,
    "order": lambda c: u32(*range(c.random.randrange(3))),
    "classes": lambda c: u32(*range(c.random.randrange(3))),
    "start_ns": lambda c: now_ns() + 20_000_000,
    "length_ns": lambda c: 20_000_000,
    "boundary_ns": lambda c: now_ns() + c.random.randrange(60_000_000),
    "subinterval": lambda c: c.random.randrange(10),
    "last": lambda c: c.random.randrange(10),
    "edit": lambda c: c.random.randrange(100),
    "globs": lambda c: (c.random.choice(c.paths),),
    "paths": lambda c: tuple(c.random.sample(c.paths, 2)),
}


def conversation(slave: Client, controller: Controller, first: int, commands: int) -> None:
    """So many commands, each answered in the end, and a slave that then ends as it is told."""
    slave.prepare()
    controller.agreed = slave.agreed(controller.luns[0])
    if controller.random.random() < 0.9:
        slave.create(controller.luns[0], *[Parameters(iops=1000.0)] * INSTANCES, consent=True)
    asked, taken = dict[int, m.Command](), 0
    for number in range(first, first + commands):
        asked[number] = command = controller.command(number, slave.state)
        slave.tell(encode_line(command))
        if controller.random.random() < 0.3:
            slave.ask(m.ClockProbe)
            time.sleep(controller.random.choice([0, 0, 0, 0.03]))  # for a subinterval, where one runs
    until = time.monotonic() + PATIENCE_S
    while asked or slave.state is not State.IDLE:
        assert time.monotonic() < until, (slave.state, asked)
        slave.ask(m.ClockProbe)
        if slave.state is not State.IDLE:
            slave.send(m.Halt)
        for said in slave.all[taken:]:
            number = getattr(said, "re", 0)
            if number in asked and check_answer(type(asked[number]), said):
                del asked[number]
        taken = len(slave.all)
        time.sleep(0.02)
    slave.send(m.Die)
    assert slave.gone() == Exit.COMMANDED, slave.errors
    assert "Traceback" not in slave.errors


def judge(folder: Path, seed: int, conversations: int, commands: int) -> None:
    controller = Controller(Random(seed), folder)
    for lun in controller.luns:
        Path(lun).write_bytes(bytes(1 << 20))
    for i in range(conversations):
        with contextlib.chdir(folder), Client() as slave:
            conversation(slave, controller, 1_000_000 + i * commands, commands)


@pytest.mark.slow
def test_any_command_is_obeyed_or_refused(tmp_path: Path) -> None:
    judge(tmp_path, seed=0, conversations=1, commands=40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 3))
def test_any_command_is_obeyed_or_refused_in_many_cases(tmp_path: Path, seed: int) -> None:
    judge(tmp_path, seed, conversations=3, commands=60)
