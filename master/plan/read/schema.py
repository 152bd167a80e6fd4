"""The plan as it is written: one pydantic model per section, the source of the JSON schema and of docs/plan.md.

Rule: a model knows its own keys and nothing of other sections; what one section says of another is looked at when
the plan is resolved. Workload parameters come from the table in protocol/parameters.py. Short forms are rewritten
to long ones before the model sees them.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, ConfigDict, Field, create_model

from ....protocol.parameters import PARAMETERS
from ...hosts.spec import HostSpec, Launcher
from ...rollup.overload import DEFAULT_TOLERANCE
from ...text.units import format_duration
from ..model import OnIoError
from .field_types import (
    ABSOLUTE,
    CHANGES,
    CORES,
    FLAG,
    PARAMETER_FIELDS,
    TEXT,
    TEXT_SCHEMA,
    WORDS,
    Reads,
    choice_field,
    count_field,
    duration_field,
    fraction_field,
    scalar,
    size_field,
)
from .places import Predicate
from .schema_control import FRACTIONS, ControlDoc, FindDoc, MeasureDoc, Slo, StaircaseDoc, SteadyDoc
from .section import Section, about, not_empty, one_or_many, short
from .substitute import Unreadable

# In seconds, what steps have where neither they nor `defaults:` say it.
TIMES: Final[Mapping[str, float]] = {"subinterval": 1.0, "warmup": 10.0, "measure": 60.0, "cooldown": 0.0}
BACKENDS: Final = ("auto", "libaio", "io_uring", "null")
SHORTEST_SUBINTERVAL_S: Final = 0.25
LONGEST_SUBINTERVAL_S: Final = 3600.0
LARGEST_FILE: Final = 8191 << 50  # in whole PiB: Linux counts bytes of a file in 63 bits


_USUAL: Final = HostSpec("", Launcher.SSH, "")  # for its defaults


class Access(Section):
    """How hosts are reached; what is left out is ssh's own default."""

    user: Annotated[str | None, TEXT] = about("The user to log in as.")
    port: Annotated[int | None, count_field(1, 65535)] = about("The port of sshd.")
    identity: Annotated[str | None, TEXT] = about("A file with a private key; else the agent and the usual files.")
    known_hosts: Annotated[str | None, TEXT] = about("A file with known host keys; else the user's own.")
    connect_timeout: Annotated[float | None, duration_field(0.1)] = about(
        f"How long to wait for a connection ({format_duration(_USUAL.connect_timeout_s)})."
    )
    python: Annotated[tuple[str, ...] | None, WORDS] = about("Shell words that start Python: `sudo -n python3.11`.")
    cache_dir: Annotated[str | None, TEXT] = about("Where the slave is kept on the host (the user's cache directory).")
    ssh_config: Annotated[bool | None, FLAG] = about("Whether ~/.ssh/config is honoured (true).")


class HostDoc(Access):
    """A test host, or a range of them. Text alone is its name; `local` is this machine, without ssh."""

    name: Annotated[str, TEXT] = Field(description="Unique in the plan; `lab[01-16]` stands for sixteen hosts.")
    address: Annotated[str | None, TEXT] = about("Where ssh goes, if not to the name; a range fits the name's.")
    launcher: Annotated[Launcher | None, choice_field(Launcher)] = about(
        "How the slave is started: ssh, local or command."
    )
    command: Annotated[tuple[str, ...] | None, WORDS] = about(
        "A command line that gives a pipe to the host: `kubectl exec -i {name} --`, `ssh {name}`, "
        "`ip netns exec {name}`. It may hand its words on as they are, or to one shell."
    )


class CreateDoc(Section):
    """Files that ivypy makes: every byte is written once, then they are LUNs, each of one run at a time."""

    path: Annotated[str, ABSOLUTE] = Field(
        description="Absolute; `{}` in it becomes the file's number, from 0, `{host}` the host's name."
    )
    size: Annotated[int, size_field(1, LARGEST_FILE)] = Field(description="Size of each file.")
    count: Annotated[int, count_field(1, 100_000)] = about("How many files.", 1)
    keep: Annotated[bool, FLAG] = about(
        "Whether they stay when the run has ended. The next run uses them as they are, as long as nobody else has "
        "written to them; else it asks for the token, as for any file.",
        False,
    )


# attribute -> condition, or a list of conditions; read once it is known which attributes there are
_CONDITION_SCHEMA: Final = {"type": ["string", "number", "boolean"]}
_CLAUSE_SCHEMA: Final = {
    "type": "object",
    "additionalProperties": {"anyOf": [_CONDITION_SCHEMA, {"type": "array", "items": _CONDITION_SCHEMA}]},
}
SELECT: Final = Reads(lambda value: value, {"anyOf": [_CLAUSE_SCHEMA, {"type": "array", "items": _CLAUSE_SCHEMA}]})
_Path = Annotated[str, ABSOLUTE]
_Paths = Annotated[list[_Path], BeforeValidator(one_or_many, json_schema_input_type=_Path | list[_Path])]


class LunsDoc(Section):
    """What is driven. Nothing is taken that is not named here."""

    select: Annotated[Any, SELECT] = about("Block devices, by their attributes.")
    paths: _Paths = about(
        "Block devices, by their paths: any name that leads to one, as in /dev/disk/by-id. Each has to be there, on "
        "every host; a path with * or ? takes what there is. Where hosts have different devices, name them in a "
        "`select`: `[ { host: a, path: /dev/sdb }, { host: b, path: /dev/sdc } ]`.",
        [],
    )
    files: _Paths = about("Files that are there, by absolute paths with * and ?.", [])
    create: Annotated[
        list[CreateDoc], BeforeValidator(one_or_many, json_schema_input_type=CreateDoc | list[CreateDoc])
    ] = about("Files to be made.", [])


class AttributesDoc(Section):
    """Attributes of the plan's own, for LUNs that match."""

    match: Annotated[Any, SELECT] = Field(description="Which LUNs.")
    set: Annotated[dict[str, Annotated[str, TEXT]], not_empty("names and values, like port: 1A")] = Field(
        description="Attribute names and values, for select and rollups."
    )


def _settings(name: str, doc: str, keys: Iterable[str], **more: Any) -> type[Section]:
    """A model whose fields are parameters, all of which may be left out."""
    rows = {key: (Annotated[Any, PARAMETER_FIELDS[key]], about(CHANGES[key].doc)) for key in keys}
    made: type[Section] = create_model(name, __base__=Section, __doc__=doc, **(rows | more))
    return made


WorkloadDoc: Final = _settings(
    "WorkloadDoc",
    "An I/O stream on a set of LUNs.",
    PARAMETERS,
    select=(Annotated[Any, SELECT], about("Which of the plan's LUNs; all of them if left out.")),
)
SetDoc: Final = _settings("SetDoc", "New settings.", CHANGES)


def _values(name: str) -> Any:
    """One value of a parameter, or a list of values; one range may be a list of its two ends."""

    def listed(value: Any) -> Any:
        ends = name == "range" and isinstance(value, list) and all(isinstance(v, str) and ".." not in v for v in value)
        return [value] if ends else one_or_many(value)

    item = Annotated[Any, PARAMETER_FIELDS[name]]
    return Annotated[list[item], BeforeValidator(listed, json_schema_input_type=item | list[item])]


_LOOPED: Final[dict[str, Any]] = {key: (_values(key), about(row.doc, [])) for key, row in CHANGES.items()}
LoopDoc: Final = create_model(
    "LoopDoc",
    __base__=Section,
    __doc__="A step for every combination of the values; the first key turns slowest.",
    **_LOOPED,
)


def _attribute_names(value: Any) -> tuple[str, ...]:
    names = value.split("+") if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(n, str) and n.strip() for n in names):
        raise Predicate("needs attribute names, like serial+port or [serial, port]")
    return tuple(name.strip() for name in names)


ATTRIBUTE_NAMES: Final = Reads(
    _attribute_names, {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
)


class RollupDoc(Section):
    """A slicing of the results. Text alone is `by`."""

    by: Annotated[tuple[str, ...], ATTRIBUTE_NAMES] = Field(
        description="Attributes: `host`, `serial+port` or [serial, port]."
    )
    quantity: Annotated[int | None, count_field(1)] = about(
        "How many instances there must be; else results are invalid."
    )
    max_droop: Annotated[float | None, fraction_field()] = about(
        "How far the slowest instance's IOPS may be below the fastest's, or the result is invalid."
    )
    csv: Annotated[bool, FLAG] = about("Whether its instances get files in every step's folder.", True)


class TimesDoc(Section):
    """What holds for steps that say nothing else."""

    subinterval: Annotated[float | None, duration_field(SHORTEST_SUBINTERVAL_S, LONGEST_SUBINTERVAL_S)] = about(
        "Everything is recorded, merged and decided once per subinterval."
    )
    warmup: Annotated[float | None, duration_field()] = about("Driven, but not measured.")
    measure: Annotated[
        MeasureDoc | None,
        BeforeValidator(short("time"), json_schema_input_type=Annotated[Any, duration_field()] | MeasureDoc),
    ] = about("The measurement: its time, or how well its metric is to be known.")
    steady: Annotated[SteadyDoc | None, not_empty("a criterion")] = about("Instead: measure a steady state.")
    control: Annotated[ControlDoc | None, not_empty("pid")] = about("What steers the load.")
    slo: Slo | None = about("Thresholds that make a step fail.")
    cooldown: Annotated[float | None, duration_field()] = about("Without I/O, before the next step.")


class GoDoc(TimesDoc):
    """One step: warmup, measurement and cooldown, with one result. Text alone is its name."""

    name: Annotated[str, TEXT] = Field(description="Unique; `50% of step NAME` refers to it.")
    loop: Annotated[LoopDoc | None, not_empty("parameters and values, like blocksize: [4KiB, 8KiB]")] = about(  # type: ignore[valid-type]
        "Parameters and lists of values: one step for every combination."
    )
    iops_curve: Annotated[tuple[float, ...] | None, FRACTIONS] = about(
        "Fractions, like [10%, 50%, 98%]: a step at max, then a step at each fraction of what it did."
    )
    staircase: Annotated[StaircaseDoc | None, not_empty("start and step")] = about("Several loads in this step.")
    find: Annotated[FindDoc | None, not_empty("metric and target")] = about("Instead of measure: search a load.")


class LiveDoc(Section):
    """The most that edits of a running step may ask for, where that is more than the steps do."""

    maxtags: Annotated[int | None, PARAMETER_FIELDS["maxtags"]] = about(
        "Tags: buffers are made for so many. Without it, for the most in any step."
    )
    blocksize: Annotated[int | None, PARAMETER_FIELDS["blocksize"]] = about(
        "Block size: buffers are made so large. Without it, as large as the step begins with."
    )
    range: Annotated[Any, PARAMETER_FIELDS["range"]] = about(
        "Where workloads that write may be sent to write. Without it, where the steps write."
    )


class EditDoc(Section):
    """New settings from here on."""

    rollup: Annotated[str, TEXT] = Field(description="Where: `all=all`, `host=h1`, `host={h1,h2}`, `host` (all hosts).")
    set: Annotated[SetDoc, not_empty("settings, like iops: 1000")] = Field(description="The new settings.")  # type: ignore[valid-type]


class StepDoc(Section):
    """Exactly one of its keys."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    go: Annotated[GoDoc | None, BeforeValidator(short("name"), json_schema_input_type=str | GoDoc)] = about("A step.")
    edit: EditDoc | None = about("New settings for the steps that follow.")


def _host_list(value: Any) -> Any:
    """`lab[01,03], local` is a list of two."""
    if isinstance(value, str) and not isinstance(value, Unreadable):
        return [name.strip() for name in re.split(r",(?![^\[]*\])", value)]
    if value == []:
        raise Predicate("is empty; it needs a host, or leave it out for this machine")
    return one_or_many(value)


_Host = Annotated[HostDoc, BeforeValidator(short("name"), json_schema_input_type=str | HostDoc)]
_Rollup = Annotated[RollupDoc, BeforeValidator(short("by"), json_schema_input_type=str | RollupDoc)]


class PlanDoc(Section):
    """A test plan."""

    model_config = ConfigDict(title="ivypy test plan")

    name: Annotated[str | None, TEXT] = about("The plan's name, and the beginning of its run folders' (the file's).")
    description: Annotated[str | None, scalar(str, "text", TEXT_SCHEMA)] = about("For people.")
    parameters: dict[str, Any] = about(
        "Names and defaults; `${name}` stands for the value, `-D name=value` gives it.", {}
    )
    hosts: Annotated[list[_Host], BeforeValidator(_host_list, json_schema_input_type=str | list[_Host])] = about(
        "The test hosts, as a list or as one text with commas; this machine if left out.", []
    )
    ssh: Access = about("What holds for all hosts that say nothing else.", Access())
    may_miss: Annotated[int, count_field(0, 100_000)] = about(
        "So many hosts may be unreachable, or be lost before the first step: the run goes on without them, which is "
        "said, and rows that would have been theirs, too, are partial.",
        0,
    )
    luns: Annotated[LunsDoc | None, not_empty("select, paths, files or create")] = about("What is driven.")
    attributes: list[AttributesDoc] = about("Attributes of the plan's own.", [])
    destroy: Annotated[bool, FLAG] = about(
        "Block devices, and files that are there, may be overwritten, if the token of exactly these is given as well; "
        "see [consent](#consent).",
        False,
    )
    workloads: dict[str, WorkloadDoc] = about("I/O streams, by name.", {})  # type: ignore[valid-type]
    rollups: list[_Rollup] = about("How results are sliced; `all` is always there.", [])
    defaults: TimesDoc = about("Times of the steps that say nothing else.", TimesDoc())
    steps: list[StepDoc] = about("What is run, in this order.", [])
    live: Annotated[LiveDoc | None, not_empty("maxtags, blocksize or range")] = about(
        "The most that `ivypy edit` may ask of a running step."
    )
    backend: Annotated[str, choice_field(BACKENDS)] = about(
        "How I/O is done: libaio, io_uring, auto for the faster of these (tried on the LUNs of each host), or null to "
        "measure ivypy itself.",
        "libaio",
    )
    threads: Annotated[int, count_field(0, 256)] = about("Workload threads per host; 0: one per core.", 0)
    cpus: Annotated[tuple[int, ...], CORES] = about(
        "The cores of each host that workload threads run on, like `0-3,8`: a thread on each, or `threads` of them "
        "spread evenly. If left out, all but core 0 and its sibling (all of less than four).",
        (),
    )
    spin: Annotated[bool, FLAG] = about(
        "Whether a workload thread with paced load looks at the clock and the ring without a pause instead of "
        "sleeping: the lowest lateness, for a core of each thread that is busy throughout.",
        False,
    )
    polled: Annotated[bool, FLAG] = about(
        "With backend io_uring: workload threads look for completions in the devices' own queues, which then raise no "
        "interrupt; every LUN's driver must have such queues (`queue/io_poll` is 1; NVMe: nvme.poll_queues=N).",
        False,
    )
    sqpoll: Annotated[bool, FLAG] = about(
        "With backend io_uring: a thread of the kernel beside each workload thread takes its submissions, so that "
        "these make no system calls. It keeps a core of its own busy, is not in the figures of CPU time, and submits "
        "what it was handed before the lease ended even if that is a moment later.",
        False,
    )
    lease: Annotated[float, duration_field(1.0, 3600.0)] = about(
        "A host that hears nothing for so long stops all I/O. One that does not answer for half of it (3 s at least) "
        "is given up: a longer lease bears longer gaps of the network.",
        10.0,
    )
    achieved_iops_tolerance: Annotated[float, fraction_field()] = about(
        "How much of what fell due for a workload instance, or for all of a rollup instance's, may be left over before "
        "a step counts as not having reached its IOPS.",
        DEFAULT_TOLERANCE,
    )
    on_io_error: Annotated[OnIoError, choice_field(OnIoError)] = about("count them, or stop the run.", OnIoError.COUNT)
