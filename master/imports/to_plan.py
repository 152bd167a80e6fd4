"""The text of a plan from a neutral description. Rule: pure; the plan has no consent: that stays with the user."""

import json
import re
from collections.abc import Iterator
from pathlib import PurePath

from ..text.units import format_bytes, format_duration, format_fraction, format_number
from .description import Description, Group, Stream, Target


def to_plan(description: Description, command: str) -> str:
    """A commented plan that the ordinary loader reads; `command` becomes its first comment.

    Where it would overwrite block devices or files that exist, the loader first demands the user's `destroy: true`.
    """
    streams = [stream for group in description.groups for stream in group.streams]
    lines = [
        f"# {_one_line(command)}",
        *(f"# not in the plan: {_one_line(str(dropped))}" for dropped in description.dropped),
        f"name: {_quoted(_plan_name(description.source))}",
        *([f"backend: {_quoted(description.backend)}"] if description.backend != "auto" else []),
        "",
        *_luns(description.targets),
        *_consent(description.targets, streams),
        "",
        "workloads:",
        *(line for group in description.groups for line in _workloads(group, description)),
        "",
        *(["rollups: [ workload ]", ""] if len(streams) > 1 else []),
        "steps:",
        *_steps(description.groups),
    ]
    return "\n".join(lines) + "\n"


def _luns(targets: tuple[Target, ...]) -> Iterator[str]:
    yield "luns:"
    for key, chosen in (
        ("paths", [target.path for target in targets if target.device]),
        ("files", [target.path for target in targets if target.exists]),
    ):
        if chosen:
            yield f"  {key}: [ {', '.join(map(_quoted, chosen))} ]"
    new = [target for target in targets if not target.device and not target.exists]
    if new:
        yield "  create:                       # written in full, and removed at the end"
    for target in new:
        yield f"    - {{ path: {_quoted(target.path)}, size: {format_bytes(target.size or 0)} }}"


def _consent(targets: tuple[Target, ...], streams: list[Stream]) -> Iterator[str]:
    written = {path for stream in streams if stream.fraction_read < 1 for path in stream.paths}
    doomed = [target.path for target in targets if target.path in written and (target.device or target.exists)]
    if doomed:
        yield ""
        yield f"# This plan overwrites {', '.join(map(_one_line, doomed))}: what is there is lost."
        yield "# If that is meant, take the next line's # away, and give `ivypy run` the token that `ivypy devices`"
        yield "# prints: --destroy TOKEN."
        yield "# destroy: true"


def _workloads(group: Group, description: Description) -> Iterator[str]:
    first = group is description.groups[0]
    for stream in group.streams:
        sequencer = "sequential" if stream.sequential else "random_independent" if stream.poisson else "random_steady"
        yield f"  {_quoted(stream.name)}:"
        yield f"    iosequencer: {sequencer}"
        yield f"    blocksize: {format_bytes(stream.blocksize)}"
        yield f"    fraction_read: {format_fraction(stream.fraction_read)}"
        yield f"    maxtags: {stream.depth}                    # queue depth of each LUN"
        yield f"    iops: {_iops(stream) if first else '0                       # until its step'}"
        if stream.span is not None and not _is_whole(stream, description.targets):
            yield f"    range: {stream.span[0]}..{stream.span[1]}"
        if stream.seed is not None:
            yield f"    seed: {stream.seed}"
        if set(stream.paths) != {target.path for target in description.targets}:
            yield f"    select: {{ path: [ {', '.join(map(_quoted, stream.paths))} ] }}"


def _is_whole(stream: Stream, targets: tuple[Target, ...]) -> bool:
    """Whether the stream drives all of files that the plan creates."""
    driven = [target for target in targets if target.path in stream.paths]
    wholes = [("0", format_bytes(target.size or 0)) for target in driven if not target.device and not target.exists]
    return len(wholes) == len(driven) and all(whole == stream.span for whole in wholes)


def _steps(groups: tuple[Group, ...]) -> Iterator[str]:
    before: tuple[Stream, ...] = ()
    for group in groups:
        if before:
            yield _edit([stream.name for stream in before], "0")
            yield from (_edit([stream.name], _iops(stream)) for stream in group.streams)
        before = group.streams
        warmup = f"warmup: {format_duration(group.warmup_s)}"
        yield f"  - go: {{ name: {_quoted(group.name)}, {warmup}, {_measure(group)} }}"


def _measure(group: Group) -> str:
    if group.steady is None:
        return f"measure: {format_duration(group.measure_s)}"
    steady = group.steady
    return (
        f"steady: {{ criterion: {steady.criterion}, limit: {steady.limit}, window: {format_duration(steady.window_s)},"
        f" timeout: {format_duration(steady.timeout_s)} }}"
    )


def _edit(names: list[str], iops: str) -> str:
    rollup = "workload={" + ",".join(names) + "}"
    return f"  - edit: {{ rollup: {_quoted(rollup)}, set: {{ iops: {iops} }} }}"


def _iops(stream: Stream) -> str:
    return "max" if stream.iops is None else format_number(round(stream.iops, 6))


def _plan_name(source: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", PurePath(source).stem).strip("._-") or "imported"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _one_line(text: str) -> str:
    return " ".join(text.split())
