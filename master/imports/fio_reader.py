"""The options of one job, read one by one. Rule: as in fio.py; faults and what is dropped are collected."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from .description import Dropped, ImportContext
from .fio_text import FioSection, Option, size_of, whole_number

Value = TypeVar("Value")


@dataclass
class OptionReader:
    """What the options of a section say."""

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
