"""The controller's half of the first contact; bootstrap_script.py is the other.

Rule: whatever comes before a line `ivypy-boot ...` is a login script's noise: it is logged and skipped. The
conversation ends with `run`, which is answered with a newline, and the next byte on the pipe is the slave's; or with a
fault and its remedy.
"""

import asyncio
import base64
import re
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from ...protocol.errors import ProtocolError
from ...protocol.lines import LineReader
from ..errors import HostFault
from .bootstrap_script import NEWEST, OF_RED_HAT, OLDEST
from .bundle import OLDEST_GLIBC, PORTABLE, Bundle
from .errors import HostUnusable
from .host_spec import DEFAULT_PYTHON, HostSpec, Launcher
from .pipe import Pipe, PipeLost

READ_BYTES: Final = 1 << 12
MOST_NOISE: Final = 1 << 16  # bytes; beyond it the far end is no bootstrap of ours
MARK: Final = "ivypy-boot "
BUILD_PORTABLE: Final = "run scripts/portable in the controller's checkout, or install ivypy's wheel there"
ANOTHER_CACHE: Final = "name another directory with cache_dir:"
OLDEST_PYTHON: Final = f"CPython {OLDEST[0]}.{OLDEST[1]}"
ANOTHER_PYTHON: Final = "install Python 3.9 or newer there, or name it with python:"

# On the host: the first Python that is there, by name; an old one looks for a newer one (bootstrap_script.py).
_NAMES: Final = ("python3", *(f"python3.{minor}" for minor in range(NEWEST, OLDEST[1] - 1, -1)), OF_RED_HAT)
ANY_PYTHON: Final = (
    "sh",
    "-c",
    f'for p in {" ".join(_NAMES)}; do if command -v $p >/dev/null; then exec $p "$@"; fi; done; '
    f'echo "{_NAMES[0]}: not found, nor {_NAMES[-2]} to {_NAMES[1]}, nor {OF_RED_HAT}" >&2; exit 127',
    "sh",
)


class Damaged(Exception):
    """The host received something else than was sent."""


@cache
def loader() -> str:
    """The program on the command line. No single quote, dollar or backslash: every login shell leaves it alone."""
    return f"import base64,zlib;exec({_source()})"


@cache
def loader_for_words() -> str:
    """The same where nobody knows whether the words go straight to Python (kubectl) or through one more shell (ssh).

    As it stands it is an f-string, whose expression is the program; once a shell has taken the quotes away, it is an
    assignment to `f`, of a set of what the program returns.
    """
    source = _source().replace("zlib", '__import__("zlib")', 1).replace("base64", '__import__("base64")', 1)
    return f"f'={{exec({source})}}'"


def _source() -> str:
    packed = base64.b64encode(zlib.compress((files(__package__) / "bootstrap_script.py").read_bytes(), 9)).decode()
    return f'zlib.decompress(base64.b64decode("{packed}"))'


def words(host: HostSpec, python: tuple[str, ...], bundles: Sequence[Bundle]) -> list[str]:
    """The command line of the first contact, after the words of the launcher."""
    program = loader_for_words() if host.launcher is Launcher.COMMAND else loader()
    offers = ",".join(f"{bundle.machine}:{bundle.hash}:{len(bundle.payload)}" for bundle in bundles)
    if host.launcher is Launcher.SSH and python == DEFAULT_PYTHON:
        python = ANY_PYTHON
    return [*python, "-IS", "-c", program, offers, *([host.cache_dir] if host.cache_dir else [])]


def shown(words: Sequence[str]) -> str:
    """A command line for the log, without the program."""
    return " ".join("<bootstrap>" if word in (loader(), loader_for_words()) else word for word in words)


async def make(pipe: Pipe, host: HostSpec, bundles: Sequence[Bundle], log: Callable[[str], None]) -> None:
    """Bring the far process to where it becomes the slave. Raises HostUnusable, or Damaged."""
    bootstrap = _Bootstrap(pipe, log)
    payloads = {bundle.machine: bundle for bundle in bundles}
    try:
        while True:
            async with asyncio.timeout(host.connect_timeout_s):
                word, *arguments = await bootstrap.next_line()
                match word, arguments:
                    case "note", _:
                        pass  # for the log
                    case "send", [machine] if machine in payloads:
                        bundle = payloads[machine]
                        log(f"-> the bundle {bundle.hash[:12]}, {len(bundle.payload) / 1000:.1f} kB")
                        await pipe.write(bundle.payload)
                    case "run", _:
                        await pipe.write(b"\n")
                        return
                    case "damaged", _:
                        raise Damaged
                    case _:
                        raise HostUnusable(HostFault(host.name, *bootstrap_fault(word, arguments, bundles)))
    except PipeLost as error:
        what, remedy = interrupted_fault(error) if bootstrap.heard else not_started_fault(host, error)
        raise HostUnusable(HostFault(host.name, what, remedy)) from None
    except TimeoutError:
        what = f"no answer from its Python for {host.connect_timeout_s:g} s"
        remedy = f'see why "{" ".join(host.python)} -IS -c pass" takes so long there, or raise connect_timeout:'
        raise HostUnusable(HostFault(host.name, what, remedy)) from None


class _Bootstrap:
    """The bootstrap's lines. Keeps those that arrived together, and counts noise."""

    def __init__(self, pipe: Pipe, log: Callable[[str], None]) -> None:
        self._pipe = pipe
        self._log = log
        self._reader = LineReader(MOST_NOISE)
        self._noise = 0
        self._words: deque[list[str]] = deque()
        self.heard = False

    async def next_line(self) -> list[str]:
        """The next line: its word, then the arguments. Raises PipeLost.

        After `send` and `run` the bootstrap waits for us, so nothing stays in the reader that is the program's.
        """
        while not self._words:
            data = await self._pipe.read(READ_BYTES)
            if not data:
                raise PipeLost("it exited with status 0", 0)
            try:
                for line in self._reader.feed(data):
                    self._receive(line.decode("utf-8", "backslashreplace").rstrip("\r"))
            except ProtocolError:
                self._noise = MOST_NOISE
            if self._noise >= MOST_NOISE:
                raise PipeLost(f"it sent {MOST_NOISE} bytes that are not the bootstrap's")
        return self._words.popleft()

    def _receive(self, text: str) -> None:
        if text.startswith(MARK):
            self._log(f"<- {text}")
            self._words.append(text.removeprefix(MARK).split("\t"))
            self.heard = True
        elif text:
            self._log(f"<- (skipped) {text}")
            self._noise += len(text)


def bootstrap_fault(word: str, arguments: list[str], bundles: Sequence[Bundle]) -> tuple[str, str]:
    """The meaning of the bootstrap's last word, and the remedy."""
    match word, arguments:
        case "old", [found, *others]:
            return f"its Python is {'; '.join([found, *others])}; the slave needs {OLDEST_PYTHON}", ANOTHER_PYTHON
        case "machine", [found]:
            ours = " and ".join(bundle.machine for bundle in bundles)
            return f"its processor is {found}, this controller's engine is for {ours}", another_engine(found)
        case "open-cache", [path, reason]:
            return f"the cache {path} {reason}", f'run "chmod 700 {path}" there if it is yours, or {ANOTHER_CACHE}'
        case "open-parent", [path, reason]:
            return (
                f"the directory {path} above its cache {reason}",
                f'run "chmod go-w {path}" there if it is yours, or {ANOTHER_CACHE}',
            )
        case "os-error", [path, reason]:
            return f"the cache {path} cannot be used ({reason})", ANOTHER_CACHE
        case "native", [path, libc, reason]:
            return native_fault(path, libc, reason)
    return f"its bootstrap sent {word!r}, which is unknown here", "report this as a bug of ivypy"


def another_engine(machine: str) -> str:
    """The remedy where no engine is for such a processor."""
    if machine in PORTABLE:
        return f"for hosts of another kind than the controller, {BUILD_PORTABLE}"
    return f"leave the host out: the engine can be built for {' and '.join(PORTABLE)}"


def native_fault(path: str, libc: str, reason: str) -> tuple[str, str]:
    """Why a compiled file does not load; `reason` is the dynamic loader's."""
    name = path.rsplit("/", 1)[-1]
    if needed := re.search(r"version `GLIBC_([0-9.]+)' not found", reason):
        return (
            f"its libc is {libc}, {name} needs glibc {needed[1]}",
            f"its system is older than ivypy supports (glibc {OLDEST_GLIBC[0]}.{OLDEST_GLIBC[1]}): leave the host out"
            if tuple(map(int, needed[1].split("."))) <= OLDEST_GLIBC
            else f"for hosts older than the controller, {BUILD_PORTABLE}",
        )
    if libc == "not glibc":
        return f"its C library is not glibc, which {name} needs", "leave the host out, or use one with glibc"
    if "failed to map segment" in reason:  # mmap(PROT_EXEC) refused
        return f"{name} may not be executed where the cache is (mounted noexec?)", ANOTHER_CACHE
    return f"{name} does not load there ({reason}; libc: {libc})", "ivypy and the host must have the same platform"


@dataclass(frozen=True, slots=True)
class _Symptom:
    """A message of shells, sudo or launchers when a program did not even start."""

    pattern: str  # searched in a line of stderr
    names_python: bool  # the line must name one of the words of `python:`; else it is about something else
    what: str  # {python}: the plan's words; {line}: the line
    remedy: str


_SYMPTOMS: Final = (
    _Symptom(
        r"sudo: .*(password is required|terminal is required|askpass)",
        False,
        "sudo asks for a password there",
        'allow "{python}" without one (NOPASSWD in sudoers), or leave sudo out of python:',
    ),
    _Symptom(r"[Uu]nknown option:? -I", False, 'its "{python}" is a Python older than 3.4', ANOTHER_PYTHON),
    _Symptom(r"^SyntaxError: invalid syntax", False, 'its "{python}" is a Python older than 3.6', ANOTHER_PYTHON),
    _Symptom(
        r"(?i)syntax error.*unexpected",
        False,
        "a shell on the way rejects the command line ({line})",
        "use a command: that passes its arguments on directly, or to one shell only",
    ),
    _Symptom(
        r"(?i)not found|no such file or directory|unknown command",
        True,
        'there is no "{python}" there ({line})',
        ANOTHER_PYTHON,
    ),
    _Symptom(
        r"(?i)permission denied|not allowed",
        True,
        '"{python}" may not be run there ({line})',
        "change its permissions, or name another with python:",
    ),
)


def interrupted_fault(error: PipeLost) -> tuple[str, str]:
    return f"the bootstrap failed: {error}", "check that it stays up, and try again"


def not_started_fault(host: HostSpec, error: PipeLost) -> tuple[str, str]:
    """Why the pipe ended before the bootstrap sent a line, and the remedy."""
    python = " ".join(host.python)
    for line in reversed(error.words):
        for symptom in _SYMPTOMS:
            named = any(word in line for word in host.python) or not symptom.names_python
            if named and re.search(symptom.pattern, line):
                values = {"python": python, "line": line}
                return symptom.what.format(**values), symptom.remedy.format(**values)
    if error.status == 127:  # what a shell gives for a command that it does not find
        return f'there is no "{python}" there (exit status 127)', ANOTHER_PYTHON
    if error.status is None:
        return interrupted_fault(error)
    return f"its Python did not start: {error}", f'see what "{python} -IS -c pass" says there'
