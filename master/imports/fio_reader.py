"""The options of one job of fio, read one by one.

Rule: as in fio.py; faults and what is dropped are collected.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from .description import Dropped, ImportContext
from .fio_text import FioSection, Option, of_each, size_of, whole_number

Value = TypeVar("Value")


@dataclass
class OptionReader:
    """Reads the options of a section, and collects their faults."""

    section: FioSection
    around: ImportContext
    faults: list[str]
    dropped: list[Dropped] = field(default_factory=list)

    def _fault(self, option: Option | None, why: str) -> None:
        where = option.where if option else self.section.where
        what = option.written if option else f"[{self.section.name}]"
        self.faults.append(f"{where}: {what}: {why}")

    def _drop(self, option: Option | None, why: str, nearest: str, *, matters: bool) -> None:
        where = option.where if option else self.section.where
        what = option.written if option else f"[{self.section.name}]"
        self.dropped.append(Dropped(where, what, why, nearest, matters))

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

    def _each(self, name: str, reads: Callable[[str], Value], default: Value) -> tuple[Value, Value, Value]:
        """Of reads, of writes and of trims: `4k`, `4k,8k` or `,8k`."""

        def each(text: str) -> tuple[Value, Value, Value]:
            first, second, third = (reads(part) if part else default for part in of_each(text))
            return first, second, third

        return self._value(name, each, (default, default, default))

    def _jobs(self) -> int:
        return max(self._value("numjobs", whole_number, 1), 1)
