"""The user's end of a control socket: find the run, send a request, follow its reports.

Rule: blocking, one thing per command. Every error names the run that was meant.
"""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ...protocol.errors import ProtocolError
from ...protocol.lines import LineReader, decode, encode_line
from ..errors import PlanError
from ..exit_codes import ExitCode
from ..summary.measured import StepEnds
from ..text.foreign_json import json_of
from .reports import EventLine, Instances, MeasuredSoFar, Report, RunBegins, RunEnds, RunStatus, StepBegins, Subinterval
from .socket_messages import ANSWERS, LONGEST_ANSWER, Answer, Done, FollowRequest, Rejection, Request, StatusRequest
from .socket_paths import answers, connect, running
from .socket_server import user_name

CONNECT_S: Final = 5
ANSWER_S: Final = 60.0  # for an edit that waits for another, and a host that is being lost
REPORTS: Final = (RunBegins, StepBegins, Subinterval, Instances, MeasuredSoFar, StepEnds, EventLine, RunEnds)
_CREDENTIALS: Final = struct.Struct("3i")  # of SO_PEERCRED: process, user, group
_UNSET: Final = 2**32 - 1  # a login that the kernel does not know: a container, a daemon


class NoSuchRun(PlanError):
    """The word that was given names no run."""


def socket_of(run: str | None, only: bool = False) -> Path:
    """The socket of a run: its folder, its id, or how the id of one alone begins; None is the newest that runs.

    Raises PlanError.

    `only`: None must not be a guess, since the run is going to be changed: there has to be one alone, and of the person
    who asks, where several are root.
    """
    if run is None:
        paths = running()
        if not paths:
            raise PlanError("you have no active run on this machine; `ivypy run PLAN.yaml` starts one")
        if only:
            paths = _own(paths)
        if only and len(paths) > 1:
            names = ", ".join(path.stem for path in paths)
            raise PlanError(f"several runs are active; name one of them: {names}")
        return paths[0]
    if not run:  # with which every id begins
        raise NoSuchRun("RUN is empty; name a run, or leave it out")
    folder = Path(run)
    if (folder / "run.json").is_file():
        return _of_folder(folder)
    paths = running()
    named = [path for path in paths if path.stem == run] or [path for path in paths if path.stem.startswith(run)]
    if len(named) == 1:
        return named[0]
    if named:
        raise NoSuchRun(f"{run}: several active runs begin so: {', '.join(path.stem for path in named)}")
    under_way = ", ".join(path.stem for path in paths) or "none"
    raise NoSuchRun(f"{run}: is neither a run's folder nor an active run; active: {under_way}")


def _own(paths: list[Path]) -> list[Path]:
    """Without the runs that another person began as root, as this one is. Raises PlanError where all are."""
    others = {path: user for path in paths if (user := of_another(path)) is not None}
    own = [path for path in paths if path not in others]
    if not own:
        names = ", ".join(f"{path.stem} (begun by {user_name(user)})" for path, user in others.items())
        raise PlanError(f"no active run is yours; to change another's, name it: {names}")
    return own


def _of_folder(folder: Path) -> Path:
    try:
        record = json_of((folder / "run.json").read_text())
        owner = (folder / "run.json").stat().st_uid
        ended, path = record.get("end_utc"), Path(str(record.get("socket", "")))
    except (OSError, ValueError, AttributeError) as error:
        raise PlanError(f"{folder}/run.json: cannot be read: {error}") from None
    if ended:
        raise PlanError(f"{folder}: the run has ended, at {ended}; what it measured: ivypy show {folder}")
    if not record.get("socket"):
        raise PlanError(f"{folder}: the run has no control socket; its events.csv says why")
    if os.geteuid() not in (0, owner):
        allowed = f"{user_name(owner)}, or root," if owner else "root"
        raise PlanError(f"{folder}: the run is not yours: only {allowed} may follow or change it")
    if not _is_in_folder_of(owner, record.get("uid"), path) or not answers(path):
        raise PlanError(
            f"{folder}: the run did not end properly (killed, or the machine restarted): no process listens at {path}"
        )
    return path


def _is_in_folder_of(owner: int, user: object, socket: Path) -> bool:
    """Whether a socket is in a folder of the run's user, as its run.json names him where NFS calls him another."""
    try:
        return socket.parent.stat().st_uid in (owner, user)
    except OSError:
        return False


def exit_code_of(folder: str) -> int:
    """The exit code in run.json, for a run that ended without RunEnds; 1 if there is none."""
    with suppress(OSError, ValueError, AttributeError):
        code = json_of((Path(folder) / "run.json").read_text()).get("exit_code")
        return code if isinstance(code, int) else ExitCode.INTERNAL
    return ExitCode.INTERNAL


class Client:
    """One connection."""

    def __init__(self, connection: socket.socket, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._lines = self._read_lines()

    def request(self, request: Request) -> Answer:
        """Raises PlanError where the run refuses, or does not answer."""
        self._connection.settimeout(ANSWER_S)
        try:
            with suppress(BrokenPipeError):  # the run closed it at once: it has sent why
                self._connection.sendall(encode_line(request))
            answer = next(self._lines, None)
        except OSError as error:
            raise PlanError(f"{self._path.stem}: the run does not answer: {error.strerror or error}") from None
        if answer is None or isinstance(answer, REPORTS):
            raise PlanError(f"{self._path.stem}: the run ended before it could answer")
        if isinstance(answer, Rejection):
            raise PlanError("\n".join(answer.reasons))
        return answer

    def standing(self, by: str = "") -> RunStatus:
        """How the run stands; `by`: with the instances of a rollup type. Raises PlanError."""
        answer = self.request(StatusRequest(by))
        assert isinstance(answer, RunStatus)
        return answer

    def follow(self, by: str = "") -> Iterator[Report]:
        """Every report until the run ends; `by`: with the instances of a rollup type. Raises PlanError."""
        assert isinstance(self.request(FollowRequest(by)), Done)
        self._connection.settimeout(None)
        for report in self._lines:
            if isinstance(report, REPORTS):
                yield report

    def _read_lines(self) -> Iterator[Answer | Report]:
        reader = LineReader(LONGEST_ANSWER)
        try:
            while data := self._connection.recv(1 << 16):
                for found in reader.feed(data):
                    yield decode(found, ANSWERS)
        except ConnectionResetError:
            return
        except ProtocolError as error:
            raise PlanError(
                f"{self._path.stem}: a message of the run is invalid: {error}; use the run's version of ivypy"
            ) from None


@contextmanager
def connected(run: str | None, only: bool = False) -> Iterator[Client]:
    """A connection to a run; `only` as in socket_of. Raises PlanError."""
    path = socket_of(run, only)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connect(connection, path, CONNECT_S)
        except OSError as error:
            raise PlanError(f"{path.stem}: the run cannot be reached: {error.strerror or error}") from None
        client = Client(connection, path)
        if run and (Path(run) / "run.json").is_file():
            _check_folder(Path(run), client.standing())
        yield client


def _check_folder(folder: Path, standing: RunStatus) -> None:
    """Raises PlanError where a run.json names the socket of another run, as one that was copied, or made to, does."""
    try:
        if os.path.samefile(folder, standing.folder):
            return
    except OSError:
        pass
    raise PlanError(f"{folder}: at the socket that its run.json names is another run, of {standing.folder}")


def real_user(process: int) -> int | None:
    """The user who became root, of a process: by sudo, or else by logging in; None where nothing says so."""
    place = Path(f"/proc/{process}")
    with suppress(OSError, ValueError):
        for one in (place / "environ").read_bytes().split(b"\0"):
            name, _, value = one.partition(b"=")
            if name == b"SUDO_UID":
                return int(value)
    with suppress(OSError, ValueError):
        login = int((place / "loginuid").read_text())
        return None if login == _UNSET else login
    return None


def of_another(path: Path) -> int | None:
    """The real user of the run at this socket, where both of us are root and it is surely another person; else None.

    Several may be root on one machine, and their runs have one folder of sockets. This only keeps a person from a
    mistake: who is root may do everything, and name any run.
    """
    if os.geteuid() != 0:
        return None
    own, other = real_user(os.getpid()), _listener(path)
    return other if own is not None and own != other else None


def _listener(path: Path) -> int | None:
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connect(connection, path, 1)
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        return real_user(_CREDENTIALS.unpack(found)[0])
    return None
