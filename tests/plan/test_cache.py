"""The page cache, flushes and durable writes in a plan: how they are written, and where they have no effect."""

import pytest

from ivypy.master.plan.load import read
from ivypy.master.plan.model import Plan
from ivypy.master.plan.read.field_types import read_flush, written
from ivypy.master.plan.read.yaml_positions import PlanFaults
from ivypy.master.text.plan_parameters import NO_END, PlanParameters, Volume
from ivypy.protocol.geometry import unit_of
from ivypy.protocol.parameters import NO_FLUSH, Flush, FlushKind, Parameters, VolumeKind
from tests.support.plan import completed

TIME = "until: { time: 5s }"


def plan(fragment: str) -> Plan:
    return read(completed(fragment), "p.yaml")


@pytest.mark.parametrize(
    ("value", "flush", "text"),
    [
        ({"every": "32"}, Flush(32), "{ every: 32 }"),
        ({"every": "32", "with": "fsync"}, Flush(32), "{ every: 32 }"),
        ({"every": "1", "with": "fdatasync"}, Flush(1, FlushKind.FDATASYNC), "{ every: 1, with: fdatasync }"),
        ("never", NO_FLUSH, "never"),
    ],
)
def test_a_flush_is_read_and_written(value: object, flush: Flush, text: str) -> None:
    assert read_flush(value) == flush and written("flush", flush) == text


@pytest.mark.parametrize(
    ("direct", "kind", "block", "unit"),
    [
        (True, "file", 4096, 4096), (True, "block", 512, 512),
        (False, "file", 4096, 1), (False, "block", 512, 4096), (False, "block", 8192, 8192),
    ],
)  # fmt: skip
def test_sizes_are_multiples_of_what_the_lun_takes(direct: bool, kind: str, block: int, unit: int) -> None:
    assert unit_of(Parameters(direct=direct), kind, block) == unit


def test_an_end_with_a_flush_is_of_steps_that_end() -> None:
    parameters = PlanParameters(fraction_read=0.0, end_fsync=True)
    assert not parameters.absolute(1 << 20, "file", "max").end_fsync
    assert parameters.edited({"until": Volume(VolumeKind.TIME, 5)}).absolute(1 << 20, "file", "max").end_fsync
    assert parameters.until == NO_END


@pytest.mark.parametrize(
    ("fragment", "fault"),
    [
        ("engine: { backend: libaio }\nworkloads: { a: { direct: false } }", "p.yaml:2:27: direct: false needs"),
        ("engine: { backend: nvme }\nworkloads: { a: { direct: false } }", "but the backend is nvme"),
        (
            "engine: { backend: io_uring, polled: true }\nworkloads: { a: { direct: false } }",
            "nothing in the page cache can be polled",
        ),
        (
            "engine: { backend: libaio }\n"
            "steps: [ { edit: { rollup: all, set: { direct: false } } }, { go: { name: s } } ]",
            "direct: false needs io_uring",
        ),
        (
            "engine: { backend: libaio }\nsteps: [ { go: { name: s, loop: { direct: [ true, false ] } } } ]",
            "direct: false needs io_uring",
        ),
        ("workloads: { a: { drop_cache: false } }", "direct I/O goes past the page cache"),
        ("workloads: { a: { flush: { every: 3 } } }", "flush: workload 'a' writes nothing"),
        ("workloads: { a: { sync: dsync } }", "sync: workload 'a' writes nothing"),
        (f"workloads: {{ a: {{ end_fsync: true, {TIME} }} }}", "end_fsync: workload 'a' writes nothing"),
        ("workloads: { a: { fraction_read: 0%, end_fsync: true } }", "no step ends by `until`"),
        ("workloads: { a: { fraction_read: 0%, flush: 32 } }", "it needs after how many writes, like { every: 32 }"),
        ("workloads: { a: { fraction_read: 0%, flush: { evry: 32 } } }", "did you mean 'every'"),
        ("workloads: { a: { fraction_read: 0%, flush: { every: 0 } } }", "the least is 1"),
        ("workloads: { a: { fraction_read: 0%, flush: { every: 3, with: sync } } }", "fsync"),
        ("workloads: { a: { fraction_read: 0%, sync: true } }", "there are 'dsync', 'none' and 'sync'"),
        ("workloads: { a: { until: { time: 3x } } }", "time"),
        ("workloads: { a: { blocksize: 1000 } }", "no multiple of 512 bytes; write 512 or 1024, or direct: false"),
        (
            "steps: [ { edit: { rollup: all, set: { blocksize: 1000 } } }, { go: { name: s } } ]",
            "1000 is no multiple of 512",
        ),
        (
            "workloads: { a: { direct: false, blocksize: 8000 } }\n"
            "steps: [ { edit: { rollup: workload=a, set: { direct: true } } }, { go: { name: s } } ]",
            "workload 'a' has I/Os of 8000 bytes, which direct I/O cannot have",
        ),
        ("steps: [ { go: { name: s, loop: { blocksize: [ 1KiB, 1000 ] } } } ]", "1000 is no multiple of 512"),
        (
            "steps: [ { go: { name: s, slo: { metric: flush_service_us_mean, at_most: 5ms } } } ]",
            "no workload flushes; give one for example flush: { every: 32 }",
        ),
    ],
)  # fmt: skip
def test_what_has_no_effect_or_cannot_be_is_refused(fragment: str, fault: str) -> None:
    with pytest.raises(PlanFaults, match=fault):
        plan(fragment)


@pytest.mark.parametrize(
    "fragment",
    [
        "engine: { backend: io_uring }\nworkloads: { a: { direct: false, drop_cache: false, blocksize: 1000 } }",
        "workloads: { a: { drop_cache: false } }\n"
        "steps: [ { edit: { rollup: all, set: { direct: false } } }, { go: { name: s } } ]",
        "workloads: { a: { flush: { every: 3 }, sync: sync, fraction_read: 99% } }",
        "workloads: { a: { direct: false, blocksize: 8000 } }\n"
        "steps: [ { edit: { rollup: all, set: { direct: true, blocksize: 8192 } } }, { go: { name: s } } ]",
        "workloads: { a: { flush: { every: 3 } } }\n"
        "steps: [ { edit: { rollup: all, set: { fraction_read: 0% } } }, { go: { name: s } } ]",
        f"workloads: {{ a: {{ end_fsync: true, fraction_read: 0%, {TIME} }} }}",
        "workloads: { a: { end_fsync: true, fraction_read: 0% } }\nsteps: [ { go: { name: s, once: true } } ]",
        "workloads: { a: { flush: { every: 3 }, fraction_read: 0% } }\n"
        "steps: [ { go: { name: s, slo: { metric: flush_service_us_mean, at_most: 5ms } } } ]",
    ],
)
def test_what_has_an_effect_is_taken(fragment: str) -> None:
    assert plan(fragment).steps
