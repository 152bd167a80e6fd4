"""The kernel's small files: pure, with the machine's own answers beside."""

import pytest

from ivypy.slave.kernel_files import cpu_list, first_line, number_in


@pytest.mark.parametrize(
    ("text", "cores"), [("", ()), ("0", (0,)), ("0-2,8", (0, 1, 2, 8)), ("0,4-5,7\n", (0, 4, 5, 7))]
)
def test_lists_of_cores(text: str, cores: tuple[int, ...]) -> None:
    assert cpu_list(text) == cores


def test_small_files_of_the_kernel() -> None:
    assert first_line("/proc/sys/kernel/ostype") == "Linux"
    assert (number_in("/proc/sys/kernel/pid_max") or 0) > 0
    assert (first_line("/proc/none"), number_in("/proc/none"), number_in("/proc/sys/kernel/ostype")) == ("", None, None)
