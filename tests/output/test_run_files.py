"""Files of a run's folder that another user made: whoever reads neither waits for ever nor is led to his own files."""

import contextlib
import os
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ivypy.master.output.run_files import check_run_file, may_follow, open_run_file, read_run_file

OWNERS = [  # of a link, of the file that it leads to, the reader; whether it is followed
    (1, 1, 1, True),
    (1, 2, 1, True),  # the reader's own link
    (2, 2, 1, True),  # another user's link to a file of theirs
    (2, 1, 1, False),  # another user's link to a file of the reader
    (2, 3, 1, False),
    (0, 1, 1, True),  # root can read them anyway
    (0, 2, 1, True),
]


@pytest.mark.parametrize(("link", "file", "reader", "followed"), OWNERS)
def test_a_link_is_followed_only_for_who_made_it(link: int, file: int, reader: int, followed: bool) -> None:
    assert may_follow(link, file, reader) is followed


def test_only_plain_files_are_read_and_nothing_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "plain").write_text("x")
    (tmp_path / "own").symlink_to("plain")
    (tmp_path / "to_fifo").symlink_to("fifo")
    (tmp_path / "device").symlink_to("/dev/zero")
    assert read_run_file(tmp_path / "plain") == read_run_file(tmp_path / "own") == b"x"
    for name in ("fifo", "to_fifo", "device", "."):
        for opens in (open_run_file, check_run_file):
            with pytest.raises(OSError, match="not a plain file"):
                opens(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        open_run_file(tmp_path / "gone")


only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's link")
NOBODY = 65534


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        open_run_file(tmp_path / "a")


def test_a_path_may_be_relative_and_go_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "plain").write_text("x")
    (tmp_path / "in/up").symlink_to("../plain")
    (tmp_path / "in/absolute").symlink_to(tmp_path / "plain")
    monkeypatch.chdir(tmp_path / "in")
    assert {read_run_file(Path(name)) for name in ("up", "absolute", "../plain", "../in/up")} == {b"x"}


@only_root
def test_a_path_is_read_from_a_folder_that_the_reader_may_not_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """`sudo -u ivy ivypy web /srv/runs`, typed in root's own folder."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        (Path(folder) / "plain").write_text("x")
        (Path(folder) / "own").mkdir(0o700)
        monkeypatch.chdir(Path(folder) / "own")
        os.seteuid(NOBODY)
        try:
            assert read_run_file(Path(folder) / "plain") == b"x"
        finally:
            os.seteuid(0)


@only_root
@pytest.mark.parametrize("leads_to", ["secret", "theirs"])
def test_a_folder_that_another_users_link_leads_to_is_read_where_it_is_theirs(tmp_path: Path, leads_to: str) -> None:
    for name, owner in (("secret", 0), ("theirs", NOBODY)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cpu.csv").write_text("x")
        os.chown(tmp_path / name / "cpu.csv", owner, owner)
    (tmp_path / "step").symlink_to(leads_to)
    os.chown(tmp_path / "step", NOBODY, NOBODY, follow_symlinks=False)
    if leads_to == "theirs":
        assert read_run_file(tmp_path / "step/cpu.csv") == b"x"
    else:
        with pytest.raises(PermissionError, match="another user's link"):
            read_run_file(tmp_path / "step/cpu.csv")


@pytest.mark.slow
@only_root
def test_a_link_that_is_put_there_in_between_is_not_followed(tmp_path: Path) -> None:
    """The file's name leads to a plain file and to a secret in turn, as fast as another user can change that."""
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "plain").write_text("plain")
    (tmp_path / "link").symlink_to("secret")
    os.chown(tmp_path / "link", NOBODY, NOBODY, follow_symlinks=False)
    os.chown(tmp_path / "plain", NOBODY, NOBODY)
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            for name in ("plain", "link"):
                os.link(tmp_path / name, tmp_path / "next", follow_symlinks=False)
                os.replace(tmp_path / "next", tmp_path / "it")

    swapping = threading.Thread(target=swap)
    swapping.start()
    read = set()
    try:
        for _ in range(5000):
            with contextlib.suppress(OSError):
                read.add(read_run_file(tmp_path / "it"))
    finally:
        over.set()
        swapping.join()
    assert read == {b"plain"}


@only_root
def test_a_planted_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "plan.yaml").symlink_to("secret")
    os.chown(tmp_path / "plan.yaml", NOBODY, NOBODY, follow_symlinks=False)
    for opens in (open_run_file, check_run_file):
        with pytest.raises(PermissionError, match="another user's link"):
            opens(tmp_path / "plan.yaml")
