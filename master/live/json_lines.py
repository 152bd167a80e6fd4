"""A run as JSON lines on standard output, one object per report, for programs that follow it."""

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from ..verdicts import Finding
from .reports import Report


def plain(value: Any) -> Any:
    """A report's value as JSON has it; a finding becomes its reason, severity, detail and remedy."""
    if isinstance(value, Finding):
        reason = value.reason
        return {"reason": reason.word, "severity": value.severity, "detail": value.detail, "remedy": reason.remedy}
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [plain(v) for v in value]
    return value


class JsonLines:
    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def show(self, report: Report) -> None:
        kind = "".join("_" + c.lower() if c.isupper() else c for c in type(report).__name__).lstrip("_")
        self._write(json.dumps({"report": kind, **plain(report)}, allow_nan=False))

    def close(self) -> None:
        pass
