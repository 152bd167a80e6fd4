"""The text of a plan from a neutral description. Rule: pure; the plan has no consent: that stays with the user."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Final

from ..text.units import format_bytes, format_fraction, format_operations, format_sizes
from .description import Description, ImportedEdit, ImportedRun, ImportedTarget, Settings, Stream

FEW_STEPS: Final = 4  # fewer have their times with them
FEW_FILES: Final = 8  # as many are named one by one
_TIMES: Final = ("subinterval", "warmup", "measure", "cooldown")


def to_plan(description: Description, command: str) -> str:
    """A commented plan that the ordinary loader reads; `command` becomes its first comment.

    Where it would overwrite block devices or files that exist, the loader first demands the user's `destroy: true`.
    """
    by_volume = any(stream.until for stream in description.streams)  # such a step's times are its own
    runs = [action for action in description.actions if isinstance(action, ImportedRun)]
    shared = () if by_volume else _shared(runs)
    lines = [
        f"# {_one_line(command)}",
        *(f"# {_one_line(note)}" for note in description.notes),
        *(f"# not in the plan: {_one_line(str(dropped))}" for dropped in description.dropped),
        f"name: {_quoted(_plan_name(description.source))}",
        *([f"engine: {{ backend: {_quoted(description.backend)} }}"] if description.backend != "auto" else []),
        *(
            [f"hosts: [ {', '.join(_host(name, description) for name in description.hosts)} ]"]
            if description.hosts
            else []
        ),
        *([f"ssh: {{ user: {_quoted(description.user)} }}"] if description.user else []),
        "",
        *_luns(description),
        *_consent(description),
        "",
        "workloads:",
        *(line for stream in description.streams for line in _workload(stream, description.targets)),
        "",
        *_rollups(description),
        *([f"defaults: {{ {_flow(shared)} }}", ""] if shared else []),
        "steps:",
        *(_step(action, shared) for action in description.actions),
    ]
    return "\n".join(lines) + "\n"


def _host(name: str, description: Description) -> str:
    keys = dict(description.host_keys).get(name, ())
    return f"{{ name: {_quoted(name)}, {_flow(keys)} }}" if keys else _quoted(name)


def _luns(description: Description) -> Iterator[str]:
    yield "luns:"
    devices = [target for target in description.targets if target.device]
    if any(target.host for target in devices):
        ones = [f"{{ host: {_quoted(one.host)}, path: {_quoted(one.path)} }}" for one in devices]
        yield f"  select: [ {', '.join(ones)} ]"
        devices = []
    files = [target for target in description.targets if target.exists]
    for key, chosen in (("paths", devices), ("files", files)):
        if chosen:
            yield f"  {key}: [ {', '.join(_quoted(path) for path in dict.fromkeys(one.path for one in chosen))} ]"
    new = [target for target in description.targets if not target.device and not target.exists]
    if new:
        yield "  create:                       # written in full, and removed at the end"
    sizes = {target.path: target.size or 0 for target in new}
    for path, size, count in _numbered(sizes) if len(sizes) > FEW_FILES else [(*item, 1) for item in sizes.items()]:
        number = f", count: {count}" if count > 1 else ""
        yield f"    - {{ path: {_quoted(path)}, size: {format_bytes(size)}{number} }}"


def _numbered(sizes: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """Paths and sizes of files, each with the count of files that it stands for: `{}` in it is a number from 0 on."""
    series: dict[tuple[str, int], dict[int, str]] = {}
    for path, size in sizes.items():
        for number in re.finditer(r"(?<!\d)(0|[1-9]\d*)(?!\d)", path):
            pattern = f"{path[: number.start()]}{{}}{path[number.end() :]}"
            series.setdefault((pattern, size), {})[int(number[0])] = path
    left = dict(sizes)
    for (pattern, size), files in sorted(series.items(), key=lambda item: -len(item[1])):
        if len(files) > 1 and set(files) == set(range(len(files))) and left.keys() >= set(files.values()):
            yield pattern, size, len(files)
            for path in files.values():
                del left[path]
    yield from ((path, size, 1) for path, size in left.items())


def _consent(description: Description) -> Iterator[str]:
    writing = [stream for stream in description.streams if stream.fraction_read < 1]
    edited = [value for action in description.actions if isinstance(action, ImportedEdit) for value in action.settings]
    looped = [one for action in description.actions if isinstance(action, ImportedRun) for one in action.loop]
    edited += [(key, value) for key, values in looped for value in values]
    everywhere = any(key == "fraction_read" and value != "100%" for key, value in edited)
    streams = list(description.streams) if everywhere else writing
    paths = {path for stream in streams for path in stream.paths}
    whole = any(not stream.paths for stream in streams)
    doomed = [
        target.path
        for target in description.targets
        if (whole or target.path in paths) and (target.device or target.exists)
    ]
    if not doomed:
        return
    yield ""
    yield f"# This plan overwrites {', '.join(map(_one_line, doomed))}: what is there is lost."
    yield "# If that is meant, take the next line's # away, and give `ivypy run` the token that `ivypy devices`"
    yield "# prints: --destroy TOKEN."
    yield "# destroy: true"


def _workload(stream: Stream, targets: tuple[ImportedTarget, ...]) -> Iterator[str]:
    yield f"  {_quoted(stream.name)}:"
    yield f"    iosequencer: {stream.iosequencer}"
    yield f"    blocksize: {format_sizes(stream.blocksize)}"
    if stream.operations:
        yield f"    operations: {format_operations(stream.operations)}"
    else:
        yield f"    fraction_read: {_share(stream.fraction_read)}"
    yield f"    maxtags: {stream.depth}                    # queue depth of each LUN"
    yield f"    iops: {stream.iops if stream.iops != '0' else '0                       # until its step'}"
    if stream.span is not None and not _is_whole(stream, targets):
        yield f"    range: {stream.span[0]}..{stream.span[1]}"
    if stream.random_map:
        yield "    random_map: true"
    if stream.until:
        yield f"    until: {stream.until}"
    yield from (f"    {key}: {value}" for key, value in stream.more)
    if stream.seed is not None:
        yield f"    seed: {stream.seed}"
    if stream.on:
        ones = [f"{{ host: {_quoted(host)}, path: [ {', '.join(map(_quoted, paths))} ] }}" for host, paths in stream.on]
        yield f"    select: [ {', '.join(ones)} ]"
    elif stream.paths and set(stream.paths) != {target.path for target in targets}:
        yield f"    select: {{ path: [ {', '.join(map(_quoted, stream.paths))} ] }}"


def _share(fraction: float) -> str:
    """In percent, with as many digits as matter; a small share is not none."""
    rounded = round(fraction, 6)
    return format_fraction(fraction if rounded in (0.0, 1.0) else rounded)


def _is_whole(stream: Stream, targets: tuple[ImportedTarget, ...]) -> bool:
    """Whether the stream drives all of files that the plan creates."""
    driven = [target for target in targets if target.path in stream.paths]
    wholes = [("0", format_bytes(target.size or 0)) for target in driven if not target.device and not target.exists]
    return len(wholes) == len(driven) and all(whole == stream.span for whole in wholes)


def _rollups(description: Description) -> list[str]:
    by_workload = len(description.streams) > 1 or any(isinstance(one, ImportedEdit) for one in description.actions)
    return ["rollups: [ workload ]", ""] if by_workload else []


def _shared(runs: list[ImportedRun]) -> Settings:
    """The times that many steps have in common."""
    if len(runs) < FEW_STEPS:
        return ()
    return tuple(one for one in runs[0].keys if one[0] in _TIMES and all(one in run.keys for run in runs))


def _step(action: ImportedEdit | ImportedRun, shared: Settings) -> str:
    if isinstance(action, ImportedEdit):
        return f"  - edit: {{ rollup: {_quoted(action.rollup)}, set: {{ {_flow(action.settings)} }} }}"
    loop = _flow(tuple((key, f"[ {', '.join(values)} ]") for key, values in action.loop))
    keys = [("name", _quoted(action.name)), *(key for key in action.keys if key not in shared)]
    return f"  - go: {{ {_flow((*keys, *([('loop', f'{{ {loop} }}')] if loop else [])))} }}"


def _flow(settings: Settings) -> str:
    return ", ".join(f"{key}: {value}" for key, value in settings)


def _plan_name(source: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", PurePath(source).stem).strip("._-") or "imported"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
