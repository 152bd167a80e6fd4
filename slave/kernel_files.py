"""The kernel's small files: /proc and /sys, a word or a number each.

Rule: what cannot be read is absent ("" or None), never an exception: half of these files exist only on some
machines, and a device may disappear while it is read.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Union

Place = Union[str, "os.PathLike[str]"]


def first_line(path: Place) -> str:
    """The first line of a file, stripped; "" where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.readline().decode("utf-8", "replace").strip(" \t\r\n\0")
    except OSError:
        return ""


def path_in(path: Place) -> str:
    """The path that is all of a file, any bytes but its one last newline: names may end in a blank, or hold a newline.

    "" where it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read().removesuffix(b"\n"))
    except OSError:
        return ""


def number_in(path: Place) -> int | None:
    """The whole number in a file; None where there is none."""
    try:
        return int(first_line(path))
    except ValueError:
        return None


def cpu_list(text: str) -> tuple[int, ...]:
    """The kernel's way to write sets of cores: "0-2,8" is (0, 1, 2, 8)."""
    cpus: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return tuple(cpus)


def ranges(cores: Collection[int]) -> str:
    """Cores as the kernel writes them: (0, 1, 2, 8) is "0-2,8"."""
    runs: list[tuple[int, int]] = []
    for core in sorted(cores):
        if runs and core == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], core)
        else:
            runs.append((core, core))
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)


def aio_left() -> int:
    """How many more asynchronous I/Os the kernel lets all processes together prepare for (libaio only)."""
    return max((number_in("/proc/sys/fs/aio-max-nr") or 0) - (number_in("/proc/sys/fs/aio-nr") or 0), 0)
