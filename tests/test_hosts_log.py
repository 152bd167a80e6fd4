"""log/<host>.log."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ivypy.master.errors import OutputError
from ivypy.master.hosts.log import HostLog
from ivypy.master.hosts.stderr import LAST_LINES, LONGEST, Stderr


def test_each_line_has_its_time_and_the_time_since_the_last(tmp_path: Path) -> None:
    times: Iterator[float] = iter([1772366400.0, 1772366400.25, 1772366399.0])
    log = HostLog(tmp_path / "h1.log", lambda: next(times))
    log('-> {"type":"halt","id":7}')
    log("<- yes")
    log("the clock was set back")
    log.close()
    assert (tmp_path / "h1.log").read_text() == (
        '2026-03-01T12:00:00.000000Z +0.000000 -> {"type":"halt","id":7}\n'
        "2026-03-01T12:00:00.250000Z +0.250000 <- yes\n"
        "2026-03-01T11:59:59.000000Z -1.250000 the clock was set back\n"
    )


def test_a_line_is_in_the_file_at_once_and_an_old_log_is_kept(tmp_path: Path) -> None:
    (tmp_path / "h1.log").write_text("before\n")
    log = HostLog(tmp_path / "h1.log", lambda: 0.0)
    log("now")
    assert (tmp_path / "h1.log").read_text() == "before\n1970-01-01T00:00:00.000000Z +0.000000 now\n"
    log.close()


def test_a_host_can_neither_end_the_line_nor_steer_the_terminal(tmp_path: Path) -> None:
    log = HostLog(tmp_path / "h1.log", lambda: 0.0)
    log("!! a\nb\r\x1b[31mred\x9b \u2028 \udcff é")
    log.close()
    (line,) = (tmp_path / "h1.log").read_text().splitlines()
    assert line.endswith("+0.000000 !! a\\nb\\r\\x1b[31mred\\x9b \\u2028 \\udcff é")


def test_a_log_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    with pytest.raises(OutputError) as caught:
        HostLog(tmp_path / "no" / "h1.log")
    assert str(caught.value) == (
        f"{tmp_path}/no/h1.log cannot be written (No such file or directory); name another place with -o"
    )


def test_a_full_disk_is_said() -> None:
    log = HostLog(Path("/dev/full"))
    with pytest.raises(OutputError, match=r"^/dev/full cannot be written \(No space left on device\)"):
        log("a line")
    log.close()


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
    stderr = Stderr(lambda text: None)
    for number in range(20):
        stderr.feed(b"%d\n" % number)
    assert stderr.words == ("15", "16", "17", "18", "19")
    assert len(stderr.words) == LAST_LINES
    for _ in range(100):
        stderr.feed(b"x" * 1000)
    stderr.feed(b"\n")
    assert stderr.words[-1] == "x" * LONGEST
