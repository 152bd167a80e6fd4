"""Which cores submit to the same hardware queue of a device, read from made folders in the kernel's own format."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.engine import run

pytestmark = pytest.mark.slow


def _sets(folder: Path, cores: int) -> list[int]:
    """The set of each core, from 0 on, and of one that there is not."""
    numbers = run("hw_queues", folder, *range(cores), -1, 100_000).split()
    assert numbers[-2:] == ["0", "0"]
    return [int(number) for number in numbers[1:-2]]


def _made(folder: Path, queues: Mapping[str, str]) -> Path:
    for name, cores in queues.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "cpu_list").write_text(cores + "\n")
        (folder / name / "nr_tags").write_text("127\n")
    return folder


def _alike(numbers: list[int]) -> list[set[int]]:
    """The cores that have the same number, whatever it is."""
    return [{core for core, other in enumerate(numbers) if other == number} for number in dict.fromkeys(numbers)]


def test_cores_of_one_queue_belong_together_and_those_of_others_do_not(tmp_path: Path) -> None:
    found = _sets(_made(tmp_path, {"0": "0, 4, 8", "1": "1, 5", "10": "2, 6, 7"}), 10)
    assert _alike(found) == [{0, 4, 8}, {1, 5}, {2, 6, 7}, {3, 9}]
    assert found[3] == 0
    assert all(found[core] for core in (0, 1, 2))


def test_nvme_tcp_with_a_queue_for_each_of_16_cores(tmp_path: Path) -> None:
    found = _sets(_made(tmp_path, {str(n): str(n) for n in range(16)}), 16)
    assert sorted(found) == list(range(1, 17))


def test_queues_for_polling_that_serve_more_cores_do_not_join_those_of_other_default_queues(tmp_path: Path) -> None:
    queues = {"0": "0, 1", "1": "2, 3", "2": "0, 1, 2, 3"}
    assert _alike(_sets(_made(tmp_path, queues), 4)) == [{0, 1}, {2, 3}]


def test_read_queues_separate_cores_that_share_a_write_queue(tmp_path: Path) -> None:
    queues = {"0": "0, 1, 2, 3", "1": "0", "2": "1", "3": "2, 3"}
    assert _alike(_sets(_made(tmp_path, queues), 4)) == [{0}, {1}, {2, 3}]


@pytest.mark.parametrize("cores", ["0, 1, 2, 3", ""])
def test_a_single_queue_groups_all_cores(tmp_path: Path, cores: str) -> None:
    assert _sets(_made(tmp_path, {"0": cores}), 4) == [0] * 4


def test_malformed_cpu_lists_name_no_core(tmp_path: Path) -> None:
    queues = {"0": "0, 1, 99999999999999999999", "1": "2, x, 3", "2": "", "x": "3"}
    assert _alike(_sets(_made(tmp_path, queues), 4)) == [{0, 1}, {2}, {3}]


def test_without_the_mq_folder_no_queue_is_known(tmp_path: Path) -> None:
    assert run("hw_queues", tmp_path / "mq", 0).split() == ["no", "folder", "0", "0"]


def test_the_devices_of_this_machine_can_be_read() -> None:
    for folder in Path("/sys/block").glob("*/mq"):
        queues = len(list(folder.iterdir()))
        sets = int(run("hw_queues", folder).split()[0])
        assert (sets > 0) == (queues > 1)
