"""Files of a run's folder that another user made: whoever reads neither waits for ever nor is led to his own files."""

import os
from pathlib import Path

import pytest

from ivypy.master.output.run_files import check_run_file, may_follow, open_run_file, read_run_file

OWNERS = [  # of a link, of the file that it leads to, the reader; whether it is followed
    (1, 1, 1, True),
    (1, 2, 1, True),  # the reader's own link
    (2, 2, 1, True),  # another user's link to a file of theirs
    (2, 1, 1, False),  # another user's link to a file of the reader
    (2, 3, 1, False),
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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's link")
def test_a_planted_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "plan.yaml").symlink_to("secret")
    os.chown(tmp_path / "plan.yaml", 65534, 65534, follow_symlinks=False)
    for opens in (open_run_file, check_run_file):
        with pytest.raises(PermissionError, match="another user's link"):
            opens(tmp_path / "plan.yaml")
