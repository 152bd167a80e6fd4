"""The options of one job of fio, read one by one; and its targets: which devices and files, how large, and the part of
each that is driven.

Rule: as in fio.py; faults and what is dropped are collected.
"""

import os.path
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from ..text.units import format_bytes
from .description import Dropped, ImportContext, ImportedTarget
from .fio_text import FioSection, Option, size_of, whole_number

Value = TypeVar("Value")
MOST_CLONES: Final = 64  # sequential streams of a job, and its files
_ONE_UNIT: Final = "write both in percent (size=50%, offset=10%), or both in bytes (size=8m, offset=1m)"


@dataclass
class OptionReader:
    """Reads the options of a section, and collects their faults."""

    section: FioSection
    around: ImportContext
    faults: list[str]
    dropped: list[Dropped] = field(default_factory=list)

    def _fault(self, option: Option | None, why: str) -> None:
        where = option.where if option else self.section.where
        what = f"[{self.section.name}]"
        if option:
            what = f"{option.typed}={option.value}" if option.value else option.typed
        self.faults.append(f"{where}: {what}: {why}")

    def _drop(self, option: Option | None, why: str, nearest: str, *, matters: bool) -> None:
        where = option.where if option else self.section.where
        what = f"{option.typed}={option.value}" if option and option.value else option.typed if option else ""
        self.dropped.append(Dropped(where, what or f"[{self.section.name}]", why, nearest, matters))

    def _text(self, name: str, default: str = "") -> str:
        option = self.section.options.get(name)
        return option.value if option else default

    def _flag(self, name: str) -> bool:
        option = self.section.options.get(name)
        return option is not None and option.value not in ("0", "false")

    def _value(self, name: str, reads: Callable[[str], Value], default: Value) -> Value:
        option = self.section.options.get(name)
        if option is None:
            return default
        try:
            return reads(option.value)
        except ValueError as error:
            self._fault(option, str(error))
            return default

    def _size(self, text: str) -> int:
        return size_of(text, 1000 if self._text("kb_base") == "1000" else 1024)

    def _each(self, name: str, reads: Callable[[str], Value], default: Value) -> tuple[Value, Value]:
        """Of reads and of writes: `4k`, `4k,8k` or `,8k`."""

        def pair(text: str) -> tuple[Value, Value]:
            parts = [part.strip() for part in text.split(",")]
            first = reads(parts[0]) if parts[0] else default
            if len(parts) == 1:
                return first, first
            return first, reads(parts[1]) if parts[1] else default

        return self._value(name, pair, (default, default))

    def _jobs(self) -> int:
        return max(self._value("numjobs", whole_number, 1), 1)


class TargetsReader(OptionReader):
    """The targets of a job."""

    def _targets(self) -> tuple[list[ImportedTarget], tuple[str, str] | None]:
        """The job's targets, and the part of each that is driven."""
        before = len(self.faults)
        paths = self._paths()
        size_text, offset_text = self._text("size"), self._text("offset", "0")
        filesize = self._value("filesize", lambda text: self._size(text.split("-")[0]), 0)
        self._note_sizes(filesize)
        # fio divides `size` over the files of a clone
        count = max(len(paths) // (1 if "filename" in self.section.options else self._jobs()), 1)
        if size_text.endswith("%") or offset_text.endswith("%"):
            span = self._share(size_text, offset_text)
            total = filesize or None
        else:
            offset = self._value("offset", self._size, 0)
            size = self._value("size", self._size, 0) // count
            clones = 0 if "filename" not in self.section.options else self._jobs() - 1
            shift = self._value("offset_increment", self._size, 0) * clones
            # a file of `filesize` is driven up to its end, wherever a clone begins
            total = filesize or (offset + size + shift if size else 0) or None
            end = format_bytes(filesize or offset + size) if filesize or size else "100%"
            span = (format_bytes(offset), end) if offset or size or filesize else None
        targets = []
        for path in paths:
            device = is_device(path)
            exists = not device and self.around.is_file(path)
            if not device and not exists and total is None:
                self._fault(self.section.options.get("filename"), f"{path}: no such file; give its `size`")
            targets.append(ImportedTarget(path, device, exists, total))
        return ([], None) if len(self.faults) > before else (targets, span)

    def _note_sizes(self, smallest: int) -> None:
        """Name files of random sizes."""
        option = self.section.options.get("filesize")
        if option and self._value("filesize", lambda text: self._size(text.split("-")[-1]), 0) != smallest:
            self._drop(option, "files of a job have one size", "the plan has the smallest", matters=True)

    def _share(self, size: str, offset: str) -> tuple[str, str] | None:
        """A part of a device in percent."""
        parts = [re.fullmatch(r"(\d+)%", text) for text in (size or "100%", "0%" if offset == "0" else offset)]
        if parts[0] is None or parts[1] is None:
            self._fault(self.section.options.get("size"), f"size={size or '100%'} and offset={offset}: {_ONE_UNIT}")
            return None
        start, end = int(parts[1][1]), min(int(parts[1][1]) + int(parts[0][1]), 100)
        if start >= end:
            self._fault(self.section.options.get("size"), "nothing of the device is left")
            return None
        return None if (start, end) == (0, 100) else (f"{start}%", f"{end}%")

    def _paths(self) -> list[str]:
        option = self.section.options.get("filename")
        folders = [os.path.join(self.around.folder, part) for part in _parts(self._text("directory"))]
        folders = folders or [self.around.folder]
        if option:
            if len(folders) > 1:
                self._fault(
                    self.section.options["directory"], "several directories for one `filename`: write the paths"
                )
                return []
            names = [os.path.join(folders[0], part) for part in _parts(option.value)]
        else:
            option = self.section.options.get("filename_format")
            files = max(self._value("nrfiles", whole_number, 1), 1)
            names = [
                os.path.join(folders[job % len(folders)], self._generated(job, file))
                for job in range(self._jobs())
                for file in range(files)
            ]
            if len(set(names)) < len(names):
                self._fault(option, "clones or files would share a name; add $jobnum and $filenum")
                return []
        if len(names) > MOST_CLONES:
            self._fault(option, f"{len(names)} files; more than {MOST_CLONES} are `luns: create: count` of a plan")
            return []
        paths = [os.path.normpath(name) for name in names]
        for path in paths:
            if re.search(r"[*?\[\]{}$\n\"\\]", path):
                self._fault(option, f"{path}: names of targets cannot have any of * ? [ ] {{ }} $ here")
            elif path in ("/dev/null", "/dev/zero") or path.startswith("/dev/ng"):
                self._fault(option, f"{path}: not a block device")
        return paths

    def _generated(self, job: int, file: int) -> str:
        """The name of a file that fio would make; a keyword that is not known stays, and is refused as `$`."""
        text = self._text("filename_format") or "$jobname.$jobnum.$filenum"
        for keyword, value in (("jobname", self.section.name), ("jobnum", str(job)), ("filenum", str(file))):
            text = text.replace("$" + keyword, value)
        return text


def _parts(text: str) -> list[str]:
    """Of names with colons between them; `\\:` is a colon of a name."""
    return [part.replace("\\:", ":") for part in re.split(r"(?<!\\):", text) if part]


def is_device(path: str) -> bool:
    return path.startswith("/dev/") and not path.startswith(("/dev/shm/", "/dev/mqueue/"))
