"""The plan as it is written: one pydantic model per section, the source of the JSON schema and of docs/plan.md.

Rule: a model knows its own keys and nothing of other sections; faults between sections are found when the plan is
resolved. Workload parameters come from the table in protocol/parameters.py. Short forms are rewritten to long ones
before the model sees them.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, ConfigDict, Field, create_model

from ....protocol.counters import MOST_SECTIONS
from ....protocol.parameters import PARAMETERS, VolumeKind
from ....protocol.payload import Spin
from ...connectors.connector_spec import LATEST_DEADLINE, USUAL_DEADLINE, USUAL_JOIN, GatherAt
from ...control.choices import SNIA_ROUNDS, USUAL_METRIC, USUAL_MOST, OnDisturbance
from ...hosts.heartbeat import SHORTEST_LEASE_NS, USUAL_LEASE_NS, USUAL_PREPARE_S, USUAL_START_S
from ...hosts.host_spec import HostSpec, Launcher
from ...text.plan_parameters import Volume
from ...text.units import format_duration
from ..attempts import OnInvalid
from ..model import OnIoError, OnLoss
from .field_types import (
    ABSOLUTE,
    CHANGES,
    CORES,
    FLAG,
    LARGEST_SIZE,
    ON_INVALID,
    PARAMETER_FIELDS,
    SPIN,
    TEXT,
    TEXT_SCHEMA,
    WORDS,
    Reads,
    choice_field,
    count_field,
    duration_field,
    fraction_field,
    kind_of,
    scalar,
    size_field,
    volume_field,
)
from .schema_control import (
    COMMAND,
    FRACTIONS,
    METRIC,
    ControlDoc,
    FindDoc,
    MeasureDoc,
    ProfileDoc,
    Slo,
    StaircaseDoc,
    SteadyDoc,
    UntilDoc,
)
from .section import Section, about, not_empty, one_or_many, short
from .substitute import Unreadable
from .yaml_positions import Predicate

# Of the engine (a test compares them), and `auto`, for which a host chooses.
BACKENDS: Final = ("auto", "libaio", "io_uring", "nvme", "null")
POLLED: Final = frozenset({"io_uring"})  # those that can poll for completions
RARE: Final = frozenset({"nvme"})  # those that need hardware of their own
SHORTEST_SUBINTERVAL_S: Final = 0.25
LONGEST_SUBINTERVAL_S: Final = 3600.0
MOST_ROUNDS: Final = 1000
LARGEST_FILE: Final = 8191 << 50  # in whole PiB: Linux counts bytes of a file in 63 bits
# Seconds, for steps where neither they nor the plan's `defaults` set a time.
TIMES: Final[Mapping[str, float]] = {"subinterval": 1.0, "warmup": 10.0, "measure": 60.0, "cooldown": 0.0}


_USUAL: Final = HostSpec("", Launcher.SSH, "")  # for its defaults


class Access(Section):
    """How to connect to hosts; keys left out take ssh's defaults."""

    user: Annotated[str | None, TEXT] = about("The user to log in as.")
    port: Annotated[int | None, count_field(1, 65535)] = about("The port of sshd.")
    identity: Annotated[str | None, TEXT] = about("File with a private key (the agent, the usual files).")
    known_hosts: Annotated[str | None, TEXT] = about("File with known host keys (the user's own).")
    connect_timeout: Annotated[float | None, duration_field(0.1)] = about(
        f"Timeout of a connection attempt ({format_duration(_USUAL.connect_timeout_s)})."
    )
    python: Annotated[tuple[str, ...] | None, WORDS] = about("Command that starts Python: `sudo -n python3.11`.")
    cache_dir: Annotated[str | None, TEXT] = about("The slave's directory on the host (the user's cache directory).")
    ssh_config: Annotated[bool | None, FLAG] = about("Whether ~/.ssh/config applies (true).")


class HostDoc(Access):
    """A test host, or a range of hosts. A text is its name; `local` is this machine, without ssh."""

    name: Annotated[str, TEXT] = Field(description="Unique in the plan; `lab[01-16]` stands for sixteen hosts.")
    address: Annotated[str | None, TEXT] = about(
        "Address for ssh, if not the name; may be a range as long as the name's."
    )
    launcher: Annotated[Launcher | None, choice_field(Launcher)] = about(
        "How to start the slave: ssh, local or command."
    )
    command: Annotated[tuple[str, ...] | None, WORDS] = about(
        "Command line that opens a pipe to the host: `kubectl exec -i {name} --`, `ssh {name}`, "
        "`ip netns exec {name}`. At most one shell may interpret the arguments that ivypy adds to it."
    )


class CreateDoc(Section):
    """Files that ivypy creates, writes in full, and then drives as LUNs. Only one run at a time can use them."""

    path: Annotated[str, ABSOLUTE] = Field(
        description="Absolute path; `{}` in it becomes the file's number, from 0, `{host}` the host's name."
    )
    size: Annotated[int, size_field(1, LARGEST_FILE)] = Field(description="Size of each file.")
    count: Annotated[int, count_field(1, 100_000)] = about("Number of files.", 1)
    keep: Annotated[bool, FLAG] = about(
        "Whether the files stay after the run. The next run uses them; if somebody else has changed them, it "
        "needs the token.",
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


def _connector(value: Any) -> Any:
    """`off` alone turns a connector off."""
    return {"enabled": "false"} if isinstance(value, str) and value.lower() in ("off", "false", "no") else value


def _join(value: Any) -> dict[str, str]:
    """LUN's attribute: the connector's. A text means that both have the same name."""
    if isinstance(value, str):
        return {name.strip(): name.strip() for name in value.split(",") if name.strip()}
    if isinstance(value, dict) and value and all(isinstance(one, str) for one in value.values()):
        return dict(value)
    raise Predicate("needs a LUN attribute, like serial, or { LUN's attribute: the connector's }")


def _options(value: Any) -> Any:
    """Options of a type: numbers and flags as JSON has them, all else text."""
    if isinstance(value, dict):
        return {key: _options(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_options(one) for one in value]
    if isinstance(value, str) and re.fullmatch(r"true|false|-?(0|[1-9][0-9]*)(\.[0-9]+)?", value):
        return json.loads(value)
    return value


def _options_mapping(value: Any) -> Any:
    if not isinstance(value, dict):
        raise Predicate(f"is {kind_of(value)}; it needs a mapping, like {{ address: 10.0.0.9 }}")
    return _options(value)


_JOIN: Final = Reads(_join, {"anyOf": [TEXT_SCHEMA, {"type": "object", "additionalProperties": TEXT_SCHEMA}]})
_OPTIONS: Final = Reads(_options_mapping, {"type": "object"})


class ConnectorDoc(Section):
    """A [connector](connectors.md). The one named `host`, the test hosts themselves, is always there; `host: off`
    leaves it out."""

    program: Annotated[tuple[str, ...] | None, COMMAND] = about(
        "Command that starts it, instead of a `type`: a list of words, or one line."
    )
    type: Annotated[str | None, TEXT] = about("prometheus, command, snmp, ceph, or one of an installed package.")
    options: Annotated[Any, _OPTIONS] = about("Options of the type.", {})
    on: Annotated[HostDoc | None, BeforeValidator(short("name"), json_schema_input_type=str | HostDoc)] = about(
        "Where `program` is started, as in `hosts`; default: this machine."
    )
    attributes: Annotated[
        list[Annotated[str, TEXT]],
        BeforeValidator(one_or_many, json_schema_input_type=Annotated[str, TEXT] | list[Annotated[str, TEXT]]),
    ] = about("Its attributes of LUNs that the plan names.", [])
    join: Annotated[dict[str, str], _JOIN] = about(
        "Which LUN an element is: the LUN's attribute that has the same value, or `{ LUN's attribute: the "
        "connector's }`.",
        USUAL_JOIN,
    )
    gather: Annotated[GatherAt, choice_field(GatherAt)] = about(
        "just_in_time, so that it ends with the subinterval, or at its end.", GatherAt.JUST_IN_TIME
    )
    deadline: Annotated[float, fraction_field()] = about(
        f"How long after the end of a subinterval its values may come, as a share of its length; at most "
        f"{LATEST_DEADLINE:.0%}. Later ones are labelled, and not used.",
        USUAL_DEADLINE,
    )
    required: Annotated[bool, FLAG] = about("Whether the run is refused if it cannot be started.", True)
    enabled: Annotated[bool, FLAG] = about("false leaves it out.", True)


_Connector = Annotated[ConnectorDoc, BeforeValidator(_connector, json_schema_input_type=str | ConnectorDoc)]


class LunsDoc(Section):
    """The LUNs to drive. ivypy touches no LUN that is not named here."""

    select: Annotated[Any, SELECT] = about("Block devices, by attributes.")
    paths: _Paths = about(
        "Block devices, by any path, also in /dev/disk/by-id. Each must exist on every host; one with * or ? "
        "matches what exists. Where hosts differ, `select`: `[ { host: a, path: /dev/sdb }, { host: b, path: "
        "/dev/sdc } ]`.",
        [],
    )
    files: _Paths = about("Existing files, by absolute paths, with * and ?.", [])
    create: Annotated[
        list[CreateDoc], BeforeValidator(one_or_many, json_schema_input_type=CreateDoc | list[CreateDoc])
    ] = about("Files to create.", [])


class AttributesDoc(Section):
    """The plan's own attributes, for LUNs that match."""

    match: Annotated[Any, SELECT] = Field(description="Which LUNs get them.")
    set: Annotated[dict[str, Annotated[str, TEXT]], not_empty("names and values, like port: 1A")] = Field(
        description="Attribute names and values."
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
    select=(Annotated[Any, SELECT], about("Which of the plan's LUNs it drives; default: all.")),
    once=(
        Annotated[bool, FLAG],
        about("Short for `until: { bytes: 1x }` with `random_map: true`: each block of the range once.", False),
    ),
)
SetDoc: Final = _settings("SetDoc", "New settings.", CHANGES)


def _values(name: str) -> Any:
    """One value of a parameter, or a list of values; one range may be a list of its two ends, and hot zones are one."""

    def listed(value: Any) -> Any:
        ends = name == "range" and isinstance(value, list) and all(isinstance(v, str) and ".." not in v for v in value)
        zones = name == "hot_zones" and isinstance(value, list) and all(isinstance(v, dict) for v in value)
        return [value] if ends or zones else one_or_many(value)

    item = Annotated[Any, PARAMETER_FIELDS[name]]
    return Annotated[list[item], BeforeValidator(listed, json_schema_input_type=item | list[item])]


_LOOPED: Final[dict[str, Any]] = {key: (_values(key), about(row.doc, [])) for key, row in CHANGES.items()}
LoopDoc: Final = create_model(
    "LoopDoc",
    __base__=Section,
    __doc__="A step for every combination of the values; the first key changes slowest.",
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
    """A grouping of the results. A text is short for `by`."""

    by: Annotated[tuple[str, ...], ATTRIBUTE_NAMES] = Field(
        description="Attributes: `host`, `serial+port` or [serial, port]."
    )
    quantity: Annotated[int | None, count_field(1)] = about("How many instances must exist, else results are invalid.")
    max_droop: Annotated[float | None, fraction_field()] = about(
        "How far the slowest instance's IOPS may be below the fastest's, else results are invalid."
    )
    csv: Annotated[bool, FLAG] = about("Whether its instances get CSV files in every step's folder.", True)


class TimesDoc(Section):
    """Defaults of all steps."""

    subinterval: Annotated[float | None, duration_field(SHORTEST_SUBINTERVAL_S, LONGEST_SUBINTERVAL_S)] = about(
        "How often results are recorded, merged and decided on."
    )
    warmup: Annotated[float | None, duration_field()] = about("Time under load before the measurement.")
    measure: Annotated[
        MeasureDoc | None,
        BeforeValidator(short("time"), json_schema_input_type=Annotated[Any, duration_field()] | MeasureDoc),
    ] = about("Its time, or the accuracy of a metric.")
    steady: Annotated[SteadyDoc | None, not_empty("a criterion")] = about("Instead of measure: measure a steady state.")
    control: Annotated[ControlDoc | None, not_empty("pid")] = about("Feedback control of the load.")
    slo: Slo | None = about("Thresholds; a breach makes the step fail.")
    disturbed: Annotated[OnDisturbance | None, choice_field(OnDisturbance)] = about(
        "[Disturbed](control.md#disturbed-other-programs-had-the-cpu) subintervals: set_aside (the default: "
        "they do not count) or keep."
    )
    on_invalid: Annotated[OnInvalid | None, ON_INVALID] = about(
        "What follows an invalid step: continue (the default), stop (the run ends) or repeat 2: up to two more "
        "attempts, named `NAME+attempt=2`; the last counts."
    )
    cooldown: Annotated[float | None, duration_field()] = about("Time without I/O before the next step.")


PassDoc: Final = _settings("PassDoc", "Values of the loop.", CHANGES)


class RoundsDoc(Section):
    """The step's passes in rounds, until a metric is steady over five of them, as SNIA's PTS has it: the largest less
    the smallest is at most 20% of the mean, and their line rises by at most 10%."""

    metric: Annotated[str, METRIC] = about("A metric, named as in `measure`; of all=all.", USUAL_METRIC)
    watch: Annotated[PassDoc | None, not_empty("values of the loop, like fraction_read: 0%")] = about(  # type: ignore[valid-type]
        "The passes whose metric must be steady, by values of the loop; default: all."
    )
    most: Annotated[int, count_field(SNIA_ROUNDS, MOST_ROUNDS)] = about(
        "The most rounds; then the last one is invalid: `rounds_not_steady`.", USUAL_MOST
    )


class GoDoc(TimesDoc):
    """A step: warmup, measurement and cooldown. A text is short for its name."""

    name: Annotated[str, TEXT] = Field(description="Unique; `50% of step NAME` refers to it.")
    loop: Annotated[LoopDoc | None, not_empty("parameters and values, like blocksize: [4KiB, 8KiB]")] = about(  # type: ignore[valid-type]
        "A step for every combination of its values."
    )
    iops_curve: Annotated[tuple[float, ...] | None, FRACTIONS] = about(
        "Fractions, like [10%, 50%, 98%]: a step at max, then a step at each fraction of its IOPS."
    )
    until: Annotated[UntilDoc | None, not_empty("an amount, like written: 2x")] = about(
        "Instead of a time: the step ends when its workloads have done so much; `measure` is then the longest "
        "time. All is measured, but for the step's own `warmup`."
    )
    once: Annotated[bool, FLAG] = about("As of a workload.", False)
    staircase: Annotated[StaircaseDoc | None, not_empty("start and step")] = about("Several load levels in this step.")
    profile: Annotated[ProfileDoc | None, not_empty("ramp or points")] = about(
        "Rates that change over the measurement."
    )
    find: Annotated[FindDoc | None, not_empty("metric and target")] = about("Instead of measure: search for a load.")
    rounds: RoundsDoc | None = about("All passes of the loop, again and again, until they are steady.")


class LiveDoc(Section):
    """Limits for edits of a running step, beyond what the plan's steps use."""

    maxtags: Annotated[int | None, PARAMETER_FIELDS["maxtags"]] = about(
        "Largest maxtags (default: the largest in any step); I/O buffers are allocated for it."
    )
    blocksize: Annotated[int | None, LARGEST_SIZE] = about("Largest blocksize, likewise; default: the step's first.")
    range: Annotated[Any, PARAMETER_FIELDS["range"]] = about(
        "Where edits may let workloads write. Default: where the steps do."
    )


class EngineDoc(Section):
    """How every host does the I/O, for the whole run."""

    backend: Annotated[str, choice_field(BACKENDS)] = about(
        "I/O backend: libaio; io_uring; auto (libaio, unless a step needs more and a trial shows that io_uring is "
        "clearly faster); nvme (NVMe commands, [untested on hardware](hosts.md#nvme-commands)); null to measure ivypy "
        "itself.",
        "auto",
    )
    threads: Annotated[int, count_field(0, 256)] = about(
        "Workload threads per host; 0: one per core. With libaio, LUNs whose submit calls may block have their own.",
        0,
    )
    cpus: Annotated[tuple[int, ...], CORES] = about(
        "Cores for workload threads, like `0-3,8` (in { } it needs quotes). Default: all but core 0 and its "
        "sibling (all, of fewer than four).",
        (),
    )
    spin: Annotated[Spin, SPIN] = about(
        "Whether workload threads busy-wait instead of sleeping, so that I/Os leave on time. auto: for a "
        "sixteenth of the time, up to half where nothing else wants the core. on: always, a core per thread. "
        "off: never.",
        Spin.AUTO,
    )
    cpu_dma_latency: Annotated[int | None, count_field(0, 1_000_000)] = about(
        "Cores enter no idle state that takes longer to leave, in microseconds; 0: none. Needs root. Default: "
        "the host's setting.",
        None,
    )
    polled: Annotated[bool, FLAG] = about(
        "With io_uring: workload threads poll the devices' own queues, without interrupts. Every LUN must have "
        "such (`queue/io_poll` is 1; NVMe: nvme.poll_queues=N).",
        False,
    )
    reserved_huge_pages: Annotated[bool, FLAG] = about(
        "Whether large I/O buffers may take reserved huge pages (vm.nr_hugepages), perhaps meant for a database "
        "or virtual machines.",
        False,
    )


class EditDoc(Section):
    """New settings for the steps that follow."""

    rollup: Annotated[str, TEXT] = Field(
        description="Which instances: `all=all`, `host=h1`, `host={h1,h2}`, `host` (all hosts)."
    )
    set: Annotated[SetDoc, not_empty("settings, like iops: 1000")] = Field(description="The new settings.")  # type: ignore[valid-type]


class PreconditionDoc(Section):
    """Two steps before a test of an SSD: its capacity is written in sequence, then the workload runs at max until
    steady (`snia`). A text is the recipe."""

    recipe: Annotated[Literal["snia"], choice_field(("snia",))] = about("SNIA's PTS.", "snia")
    name: Annotated[str, TEXT] = about("The first step's; the second is NAME-steady.", "precondition")
    written: Annotated[Any, volume_field(VolumeKind.WRITTEN)] = about(
        "How much is written of each LUN.", Volume(VolumeKind.WRITTEN, times=2.0)
    )
    window: Annotated[float, duration_field()] = about("Of the steady state: five rounds of a fifth.", 300.0)
    timeout: Annotated[float, duration_field()] = about("Of each of the two steps.", 24 * 3600.0)


class StepDoc(Section):
    """An entry has exactly one of these keys."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    go: Annotated[GoDoc | None, BeforeValidator(short("name"), json_schema_input_type=str | GoDoc)] = about("A step.")
    edit: EditDoc | None = about("New settings for the steps that follow.")
    precondition: Annotated[
        PreconditionDoc | None, BeforeValidator(short("recipe"), json_schema_input_type=str | PreconditionDoc)
    ] = about("A recipe, `snia`: the capacity written, then steady.")


def _host_list(value: Any) -> Any:
    """`lab[01,03], local` is a list of two."""
    if isinstance(value, str) and not isinstance(value, Unreadable):
        return [name.strip() for name in re.split(r",(?![^\[]*\])", value)]
    if value == []:
        raise Predicate("is empty; it needs a host, or leave it out for this machine")
    return one_or_many(value)


class SlurmDoc(Section):
    """All nodes of the Slurm allocation that ivypy runs in."""

    slurm: Literal[True]


def _host(value: Any) -> Any:
    """Text alone is a name; `{ slurm: true }` is the host range `slurm`."""
    if isinstance(value, dict) and str(value.get("slurm")) == "true" and "name" not in value:
        return {key: one for key, one in value.items() if key != "slurm"} | {"name": "slurm"}
    return short("name")(value)


_Host = Annotated[HostDoc, BeforeValidator(_host, json_schema_input_type=str | SlurmDoc | HostDoc)]
_Rollup = Annotated[RollupDoc, BeforeValidator(short("by"), json_schema_input_type=str | RollupDoc)]


class PlanDoc(Section):
    """A test plan."""

    model_config = ConfigDict(title="ivypy test plan")

    name: Annotated[str | None, TEXT] = about("Its run folders' names begin with it. Default: the file's name.")
    description: Annotated[str | None, scalar(str, "text", TEXT_SCHEMA)] = about("Free text.")
    parameters: dict[str, Any] = about("Names and defaults for `${name}`; `-D name=value` sets one.", {})
    hosts: Annotated[list[_Host], BeforeValidator(_host_list, json_schema_input_type=str | list[_Host])] = about(
        "The test hosts, as a list or a text with commas; default: this machine.", []
    )
    ssh: Access = about("Defaults of all hosts.", Access())
    may_miss: Annotated[int, count_field(0, 100_000)] = about(
        "How many hosts may be unreachable, or lost before the first step. The run goes on without them; rows "
        "are partial.",
        0,
    )
    luns: Annotated[LunsDoc | None, not_empty("select, paths, files or create")] = about("The LUNs to drive.")
    attributes: list[AttributesDoc] = about("The plan's own attributes.", [])
    connectors: dict[str, _Connector] = about(
        "Programs that report what arrays and switches say, by name.",
        {},
    )
    destroy: Annotated[bool, FLAG] = about(
        "Allow ivypy to overwrite block devices and existing files, given the token for exactly these: "
        "[consent](#consent).",
        False,
    )
    workloads: dict[str, WorkloadDoc] = about("I/O streams, by name.", {})  # type: ignore[valid-type]
    rollups: list[_Rollup] = about("How results are grouped; `all` always exists.", [])
    defaults: TimesDoc = about("Defaults of all steps.", TimesDoc())
    steps: list[StepDoc] = about("The steps, in order.", [])
    live: Annotated[LiveDoc | None, not_empty("maxtags, blocksize or range")] = about(
        "Limits for `ivypy edit` on a running step."
    )
    engine: Annotated[EngineDoc, not_empty("an option, like spin: on")] = about("Options of the engine.", EngineDoc())
    by_address: Annotated[int, count_field(0, MOST_SECTIONS)] = about(
        "In so many sections of each LUN count the I/Os and their service times: by_address.csv, and a map on the page "
        "(100: hundredths). 0: none.",
        0,
    )
    report: Annotated[bool, FLAG] = about(
        "Whether the run writes `report.html` at its end (`--no-report`: not).",
        True,
    )
    prepare_timeout: Annotated[float, duration_field(1.0, 24 * 3600.0)] = about(
        "How long a host may take without progress for each command that prepares it, or be silent between steps.",
        USUAL_PREPARE_S,
    )
    start_timeout: Annotated[float, duration_field(0.1, 3600.0)] = about(
        "How long a host may take to be ready for a step; if not all are, it is started anew, once.",
        USUAL_START_S,
    )
    lease: Annotated[float, duration_field(SHORTEST_LEASE_NS / 1e9, 3600.0)] = about(
        "A host that receives nothing for this long stops all I/O; one that does not answer for half of it (at "
        "least 3 s) is lost. A longer one survives longer network outages.",
        USUAL_LEASE_NS / 1e9,
    )
    achieved_iops_tolerance: Annotated[float, fraction_field()] = about(
        "Share of the I/Os due by which outstanding I/O, of a workload instance or of all in a rollup instance, "
        "may grow before a load counts as not sustained.",
        0.0025,
    )
    on_io_error: Annotated[OnIoError, choice_field(OnIoError)] = about(
        "What to do when an I/O ends with an error: count it, or stop the run.", OnIoError.COUNT
    )
    on_loss: Annotated[OnLoss, choice_field(OnLoss)] = about(
        "The IOPS of a lost host: missing (keep), or driven by its workloads' other hosts.",
        OnLoss.KEEP,
    )
