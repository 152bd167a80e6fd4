"""The targets of one job of fio: which devices and files, how large, and the part of each that is driven.

Rule: as in fio.py; faults and what is dropped are collected.
"""

import os.path
import re
from typing import Final

from .description import ImportedTarget, is_device
from .fio_places import END, DrivenPart, FioPlace
from .fio_sizes import SizesReader
from .fio_text import Option, whole_number

MOST_CLONES: Final = 1024  # sequential streams of a job, and its files


class TargetsReader(SizesReader):
    """The targets of a job."""

    def _targets(self) -> tuple[list[ImportedTarget], list[DrivenPart]]:
        """The job's targets, and the part of each that is driven, by each clone."""
        before = len(self.faults)
        paths = self._paths()
        filesize = self._value("filesize", lambda text: self._size(text.split("-")[0]), 0)
        self._note_sizes(filesize)
        new = [path for path in paths if not is_device(path) and not self.around.is_file(path)]
        size = self._share_of_size(paths)
        offset, increment = self._place("offset"), self._place("offset_increment")
        shift = increment.times(self._jobs() - 1)
        total = filesize or (offset.bytes + size.bytes + shift.bytes if size.bytes else 0) or None
        known = total if filesize or len(new) == len(paths) else None
        if new and (offset.percent or shift.percent):
            option = self.section.options.get("offset" if offset.percent else "offset_increment")
            why = "of a file that is not there yet, fio has 0"
            self._drop(option, why, "the plan has the percentage of its size", matters=True)
        parts = [
            self._part(offset + increment.times(clone), size, known, is_file_larger=bool(filesize))
            for clone in range(min(self._jobs(), MOST_CLONES + 1))
        ]
        if any(part.is_empty for part in parts):
            self._fault(self._placing(), "nothing of the device is left")
        for path in new if total is None else []:
            self._fault(self.section.options.get("filename"), f"{path}: no such file; give its `size`")
        targets = [
            ImportedTarget(path, is_device(path), not is_device(path) and path not in new, total) for path in paths
        ]
        return ([], []) if len(self.faults) > before else (targets, parts)

    def _placing(self) -> Option | None:
        """The option that decides where a part begins, or how long it is."""
        names = ("offset_increment", "offset", "size")
        return next((self.section.options[name] for name in names if name in self.section.options), None)

    def _place(self, name: str) -> FioPlace:
        """`1g` or `20%`."""

        def place(text: str) -> FioPlace:
            if not text.endswith("%"):
                return FioPlace(bytes=self._size(text))
            return FioPlace(percent=whole_number(text[:-1]))  # fio has no others

        return self._value(name, place, FioPlace())

    def _share_of_size(self, paths: list[str]) -> FioPlace:
        """`size` of one file: fio divides that of a clone, where it is in bytes. FioPlace(): all."""
        count = max(len(paths), 1) if "filename" in self.section.options else self._files_of_clone()
        size = self._place("size")
        if not size.percent and "%" in self._text("size"):
            self._fault(self.section.options["size"], "nothing of the device is left")
        return FioPlace(size.percent, size.bytes // count)

    def _part(self, start: FioPlace, size: FioPlace, known: int | None, *, is_file_larger: bool) -> DrivenPart:
        """The part that is driven from `start` on, of a file of a size that is `known`, or not."""
        if known is None:
            end = start + size if size != FioPlace() else END
            return DrivenPart(start, end if end.percent < END.percent else END)
        block = self._least_size()
        begin = start.of(known, block)
        if size.percent:
            length = known * size.percent // (100 * block) * block
        else:  # a file of `filesize` is driven up to its end, wherever a clone begins
            length = known if is_file_larger else size.bytes
        return DrivenPart(begin, FioPlace(bytes=min(begin.bytes + length, known)))

    def _note_sizes(self, smallest: int) -> None:
        """Name files of random sizes."""
        option = self.section.options.get("filesize")
        if option and self._value("filesize", lambda text: self._size(text.split("-")[-1]), 0) != smallest:
            self._drop(option, "files of a job have one size", "the plan has the smallest", matters=True)

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
            names = self._generated_names(folders)
        if len(names) > MOST_CLONES:
            self._fault(option, f"more than {MOST_CLONES} files; `luns: create: count` of a plan has more")
            return []
        paths = [os.path.normpath(name) for name in names]
        for path in paths:
            if re.search(r"[*?\[\]\n\"\\]|\$\{|\{(host)?\}", path):
                self._fault(option, f"{path}: names of targets cannot have any of * ? [ ] {{}} here")
            elif path in ("/dev/null", "/dev/zero") or path.startswith("/dev/ng"):
                self._fault(option, f"{path}: not a block device")
        return paths

    def _generated_names(self, folders: list[str]) -> list[str]:
        """The files of each clone. One that an earlier clone has, fio leaves to that; a clone without files does
        nothing."""
        names: dict[str, None] = {}  # in their order
        busy = 0
        for job in range(min(self._jobs(), MOST_CLONES + 1)):
            files = [
                os.path.join(folders[job % len(folders)], self._generated(job, file))
                for file in range(min(self._files_of_clone(), MOST_CLONES + 1))
            ]
            left = [name for name in files if name not in names]
            if len(set(files)) < len(files) or len(left) not in (0, len(files)):
                option = self.section.options.get("filename_format")
                self._fault(option, "files of a clone would share a name; add $filenum")
                return []
            busy += bool(left)
            names.update(dict.fromkeys(left))
            if len(names) > MOST_CLONES:
                break
        if busy < self._jobs() and len(names) <= MOST_CLONES:
            why = f"fio leaves a file to the first clone that names it: {busy} of {self._jobs()} clones do I/O"
            nearest = "so does the plan; with `filename`, all would"
            self._drop(self.section.options["filename_format"], why, nearest, matters=False)
        return list(names)

    def _files_of_clone(self) -> int:
        """How many there are, where a clone has files of its own."""
        return max(self._value("nrfiles", whole_number, 1), 1)

    def _generated(self, job: int, file: int) -> str:
        """The name of a file that fio would make; a keyword that fio does not know stays, as there."""
        text = self._text("filename_format") or "$jobname.$jobnum.$filenum"
        keywords = {"jobname": self.section.name, "jobnum": str(job), "filenum": str(file), "clientuid": ""}
        for keyword, value in keywords.items():
            text = text.replace("$" + keyword, value)
        if not text:
            self._fault(self.section.options.get("filename_format"), "no name of a file; $clientuid is empty here")
        return text or "-"


def _parts(text: str) -> list[str]:
    """Of names with colons between them; `\\:` is a colon of a name."""
    return [part.replace("\\:", ":") for part in re.split(r"(?<!\\):", text) if part]
