"""log/<host>.log."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ivypy.master.errors import OutputError
from ivypy.master.hosts import host_logs
from ivypy.master.hosts.host_logs import HostLogs
from ivypy.master.hosts.stderr import LAST_LINES, LONGEST, LONGEST_SAID, MOST_LOGGED, Stderr


class Logs:
    """A run's logs; `flush` is called where the writer's thread would."""

    def __init__(self, now_s: Callable[[], float] = lambda: 0.0) -> None:
        self.wakes = 0
        self.lacks: list[tuple[str, int]] = []
        self.logs = HostLogs(self._wake, lambda host, lines: self.lacks.append((host, lines)), now_s=now_s)

    def _wake(self) -> None:
        self.wakes += 1


def test_each_line_has_its_time_and_the_time_since_the_last(tmp_path: Path) -> None:
    times: Iterator[float] = iter([1772366400.0, 1772366400.25, 1772366399.0])
    logs = Logs(lambda: next(times)).logs
    log = logs.of("h1", tmp_path / "h1.log")
    log('-> {"type":"halt","id":7}')
    log("<- yes")
    log("the clock was set back")
    logs.close()
    assert (tmp_path / "h1.log").read_text() == (
        '2026-03-01T12:00:00.000000Z +0.000000 -> {"type":"halt","id":7}\n'
        "2026-03-01T12:00:00.250000Z +0.250000 <- yes\n"
        "2026-03-01T11:59:59.000000Z -1.250000 the clock was set back\n"
    )


def test_lines_of_all_hosts_are_written_together_and_an_old_log_is_kept(tmp_path: Path) -> None:
    (tmp_path / "h1.log").write_text("before\n")
    run = Logs()
    one, two = (run.logs.of(host, tmp_path / f"{host}.log") for host in ("h1", "h2"))
    one("a")
    two("b")
    one("c")
    assert run.wakes == 1 and not (tmp_path / "h2.log").exists()
    run.logs.flush()
    assert [line[-8:] for line in (tmp_path / "h1.log").read_text().splitlines()] == ["before", "000000 a", "000000 c"]
    assert (tmp_path / "h2.log").read_text().endswith(" b\n")
    two("d")
    assert run.wakes == 2
    run.logs.close()
    assert (tmp_path / "h2.log").read_text().endswith(" d\n")


def test_a_host_can_neither_end_the_line_nor_steer_the_terminal(tmp_path: Path) -> None:
    logs = Logs().logs
    logs.of("h1", tmp_path / "h1.log")("!! a\nb\r\x1b[31mred\x9b \u2028 \udcff é")
    logs.close()
    (line,) = (tmp_path / "h1.log").read_text().splitlines()
    assert line.endswith("+0.000000 !! a\\nb\\r\\x1b[31mred\\x9b \\u2028 \\udcff é")


def test_lines_that_the_disk_does_not_take_in_time_are_dropped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it takes nothing, no more is held; every line is either there or counted."""
    monkeypatch.setattr(host_logs, "MOST_HELD", 1000)
    run = Logs()
    hosts = {host: run.logs.of(host, tmp_path / f"{host}.log") for host in ("h1", "h2")}
    for number in range(100):
        for log in hosts.values():
            log(f"line {number}")
    assert run.logs._held <= 1000
    run.logs.flush()
    hosts["h1"]("and on")
    run.logs.close()
    assert [host for host, _ in run.lacks] == ["h1", "h2"] and run.logs._held == 0
    for host, lacks in run.lacks:
        lines = (tmp_path / f"{host}.log").read_text().splitlines()
        there = [line for line in lines if " line " in line]
        assert len(there) + lacks == 100
        assert lines[len(there)].endswith(f"... {lacks} lines were dropped: the disk was too slow")
    assert (tmp_path / "h1.log").read_text().endswith(" and on\n")


def test_a_log_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    logs = Logs().logs
    logs.of("h1", tmp_path / "no" / "h1.log")("a line")
    with pytest.raises(OutputError) as caught:
        logs.flush()
    assert str(caught.value) == (
        f"{tmp_path}/no/h1.log cannot be written (No such file or directory); choose another folder with -o"
    )


def test_a_full_disk_is_reported() -> None:
    logs = Logs().logs
    logs.of("h1", Path("/dev/full"))("a line")
    with pytest.raises(OutputError, match=r"^/dev/full cannot be written \(No space left on device\)"):
        logs.flush()
    logs.close()


@pytest.mark.parametrize("piece", [1, 2, 3, 100])
def test_stderr_is_logged_line_by_line_however_it_comes(piece: int) -> None:
    log: list[str] = []
    stderr = Stderr(log.append)
    data = b"one\r\n\n  two\xff\nthr"
    for at in range(0, len(data), piece):
        stderr.feed(data[at : at + piece])
    assert log == ["!! one", "!!   two\\xff"]
    stderr.feed(b"\n")
    assert stderr.words == ("one", "  two\\xff", "thr")


def test_the_last_lines_are_kept_and_a_long_one_is_cut() -> None:
    log: list[str] = []
    stderr = Stderr(log.append)
    for number in range(20):
        stderr.feed(b"%d\n" % number)
    assert stderr.words == ("15", "16", "17", "18", "19")
    assert len(stderr.words) == LAST_LINES
    for _ in range(100):
        stderr.feed(b"x" * 1000)
    stderr.feed(b"\n")
    assert log[-1] == "!! " + "x" * LONGEST
    assert stderr.words[-1] == "x" * LONGEST_SAID + "..."


def test_a_flood_of_stderr_does_not_fill_the_log() -> None:
    log: list[str] = []
    stderr = Stderr(log.append)
    for number in range(10_000):
        stderr.feed(b"%d " % number + b"x" * 1500 + b"\n")
    assert sum(map(len, log)) < MOST_LOGGED + 100
    assert log[-1] == "!! (no more of its stderr is kept here than 10 MiB)"
    assert stderr.words[-1].startswith("9999 ")
