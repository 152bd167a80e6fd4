"""Several sizes and operations: how a plan says them, what they come to on a LUN, and what cannot be."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.plan.load import read
from ivypy.master.plan.model import Plan
from ivypy.master.plan.read.field_types import PARAMETER_FIELDS
from ivypy.master.plan.read.yaml_positions import PlanFaults
from ivypy.master.text.mixes import Operations, Sizes, Weighted, reading, resized
from ivypy.master.text.units import format_operations, format_sizes
from ivypy.protocol.geometry import geometry_faults, whole_blocks
from ivypy.protocol.parameters import MAX, Mix, Operation, Parameters, faults
from tests.support.plan import completed

KIB, MIB = 1 << 10, 1 << 20
READ, WRITE, TRIM, ZEROES = Operation.READ, Operation.WRITE, Operation.TRIM, Operation.WRITE_ZEROES


def plan(settings: str, more: str = "") -> Plan:
    return read(completed(f"workloads: {{ w: {{ {settings} }} }}\n{more}"), "p.yaml")


def of_plan(settings: str) -> Parameters:
    return plan(settings).workloads[0].parameters.absolute(64 * MIB, "file", MAX)


def parts(mix: Mix) -> set[tuple[str, int, float]]:
    return {(str(part.operation), part.bytes, round(part.share, 9)) for part in mix}


@pytest.mark.parametrize(
    ("settings", "size", "reads", "mix"),
    [
        ("blocksize: 8KiB", 8192, 1.0, set()),
        ("blocksize: { 4KiB: 60%, 64KiB: 40% }", 65536, 1.0, {("read", 4096, 0.6), ("read", 65536, 0.4)}),
        (
            "blocksize: { 4KiB: 0.5, 8KiB: 0.5 }, fraction_read: 70%", 8192, 0.7,
            {("read", 4096, 0.35), ("read", 8192, 0.35), ("write", 4096, 0.15), ("write", 8192, 0.15)},
        ),
        (
            "blocksize: { read: 4KiB, write: { 8KiB: 50%, 16KiB: 50% } }, fraction_read: 50%", 16384, 0.5,
            {("read", 4096, 0.5), ("write", 8192, 0.25), ("write", 16384, 0.25)},
        ),
        ("blocksize: { read: 4KiB, write: 64KiB }", 4096, 1.0, set()),  # nothing writes
        ("blocksize: { 4KiB: 100%, 64KiB: 0% }", 4096, 1.0, set()),
        ("operations: { read: 30%, write: 70% }", 4096, 0.3, set()),
        (
            "operations: { read: 60%, write: 30%, trim: 10% }", 4096, 0.6,
            {("read", 4096, 0.6), ("write", 4096, 0.3), ("trim", 4096, 0.1)},
        ),
        ("operations: { write_zeroes: 100% }, blocksize: 1MiB", MIB, 0.0, {("write_zeroes", MIB, 1.0)}),
        (
            "operations: { read: 50%, trim: 50% }, blocksize: { read: 4KiB, trim: 1MiB }", MIB, 0.5,
            {("read", 4096, 0.5), ("trim", MIB, 0.5)},
        ),
    ],
)  # fmt: skip
def test_sizes_and_operations_make_parts(settings: str, size: int, reads: float, mix: set[object]) -> None:
    """Where one size and a share of reads say it all, there are none: the engine then has a plain workload."""
    found = of_plan(settings)
    assert (found.blocksize, round(found.fraction_read, 9), parts(found.operations)) == (size, reads, mix)
    assert faults(found) == []


SHARES = st.lists(st.integers(1, 100), min_size=1, max_size=4).map(lambda some: [one / sum(some) for one in some])


@st.composite
def weighted(draw: st.DrawFn) -> Weighted:
    shares = draw(SHARES)
    sizes = draw(st.lists(st.integers(1, 1 << 20), min_size=len(shares), max_size=len(shares), unique=True))
    return tuple(zip(sizes, shares, strict=True))


@st.composite
def operations(draw: st.DrawFn) -> Operations:
    shares = draw(SHARES)
    return tuple(zip(draw(st.permutations([*Operation])), shares, strict=False))


@st.composite
def sizes(draw: st.DrawFn) -> Sizes:
    if draw(st.booleans()):
        return Sizes(draw(weighted().filter(lambda some: len(some) > 1)))
    return Sizes((), tuple((one, draw(weighted())) for one in draw(st.sets(st.sampled_from(Operation), min_size=1))))


def document(text: str) -> object:
    """What YAML has of a text: mappings of texts."""
    if not text.startswith("{"):
        return text
    inner = re.sub(r"\{[^{}]*\}", lambda found: found[0].replace(",", ";"), text[1:-1])
    pairs = (pair.split(":", 1) for pair in inner.split(","))
    return {key.strip(): document(value.strip().replace(";", ",")) for key, value in pairs}


@given(sizes(), operations())
def test_what_is_written_is_read_again(of: Sizes, some: Operations) -> None:
    assert PARAMETER_FIELDS["blocksize"].read(document(format_sizes(of))) == of
    assert PARAMETER_FIELDS["operations"].read(document(format_operations(some))) == some


@given(sizes(), operations(), st.floats(0, 1), st.integers(1, 1 << 20))
def test_an_edit_of_a_mix_changes_what_it_says_and_keeps_proportions(
    of: Sizes, some: Operations, reads: float, size: int
) -> None:
    start = plan("").workloads[0].parameters.edited({"blocksize": of, "operations": some}).absolute(MIB, "file", MAX)
    one_size = resized(start, size)
    assert faults(one_size) == [] and one_size.blocksize == size
    assert {part.bytes for part in one_size.operations} <= {size}
    try:
        found = reading(start, reads)
    except ValueError:
        assert reads in (0.0, 1.0) and 0 < start.fraction_read < 1
        return
    assert faults(found) == [] and found.fraction_read == reads
    if not start.operations or start.fraction_read in (0.0, 1.0):
        return
    for before, after in zip(_of(start, READ), _of(found, READ), strict=False):
        assert after == pytest.approx(reads * before / start.fraction_read, abs=1e-3 * reads + 1e-12)


def _of(parameters: Parameters, operation: Operation) -> list[float]:
    return [part.share for part in parameters.operations if part.operation is operation]


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ("blocksize: { 4KiB: 60%, 64KiB: 30% }", "has shares that add up to 90%; those of all sizes are 100%"),
        ("operations: { read: 60%, write: 50% }", "shares that add up to 110%; those of all operations"),
        ("operations: { read: 60%, wirte: 40% }", "operations: 'wirte' is not known here; did you mean 'write'?"),
        ("operations: { read: 97%, flush: 3% }", "'flush' is no share of I/Os here; write flush: {"),
        ("operations: 60%", "operations is '60%'; it needs shares of operations, like { read: 60%, write: 40% }"),
        ("operations: { read: 100% }, fraction_read: 50%", "operations and fraction_read set the same thing"),
        ("blocksize: { 4KiB: 50%, 4096: 50% }", "blocksize: a size is given twice; add up their shares"),
        ("blocksize: { 4KX: 100% }", "'4KX' is not a size"),
        ("blocksize: [ 4KiB ]", "blocksize is a list; it needs a size like 8KiB, or sizes like { 4KiB: 60%"),
        ("blocksize: { read: 4KiB, 8KiB: 50% }", "blocksize: '8KiB' is no operation, as read is"),
        ("blocksize: { 1000: 50%, 4KiB: 50% }", "1000 is no multiple of 512 bytes; write 512 or 1024"),
        ("blocksize: 2GiB", "blocksize: '2GiB' is too much; the most is 1GiB"),
        ("align: 100", "align: 100 is no multiple of 512 bytes; write 512, or direct: false for a file"),
        ("blocksize: { read: 4KiB }, fraction_read: 50%", "of operation write, and no size for them; add it"),
        ("streams: 4", "streams: those of a sequential workload"),
        ("iosequencer: sequential, sequential: 20%", "sequential: a share of the I/Os of a random workload"),
        ("random_map: true, blocksize: { 4KiB: 50%, 8KiB: 50% }", "random_map: needs I/Os of one size"),
        ("until: { written: 1x }, operations: { read: 50%, trim: 50% }", "'w' writes nothing, so it would never end"),
        ("until: { bytes: 1x }, operations: { trim: 100% }", "'w' reads or writes nothing, so it would"),
        ("iosequencer: sequential, streams: 256, blocksize: 1MiB", "one of 256 parts of its range"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_found_offline(settings: str, fault: str) -> None:
    with pytest.raises(PlanFaults) as caught:
        plan(settings, "luns: { create: { path: /var/tmp/x, size: 64MiB } }")
    assert fault in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "edit", "fault"),
    [
        ("blocksize: { read: 4KiB }", "fraction_read: 50%", "of operation write, and no size for them"),
        ("blocksize: { read: 4KiB }", "operations: { trim: 100% }", "of operation trim, and no size for them"),
        ("fraction_read: 50%", "blocksize: { read: 4KiB }", "of operation write, and no size for them"),
        ("random_map: true", "blocksize: { 4KiB: 50%, 8KiB: 50% }", "random_map: needs I/Os of one size"),
    ],
)
def test_what_an_edit_leaves_without_a_size_is_found_offline(settings: str, edit: str, fault: str) -> None:
    with pytest.raises(PlanFaults) as caught:
        plan(settings, f"steps: [ {{ go: a }}, {{ edit: {{ rollup: all, set: {{ {edit} }} }} }}, {{ go: b }} ]")
    assert fault in str(caught.value) and "in step 'b'" in str(caught.value)


def test_an_edit_of_fraction_read_keeps_the_other_operations_in_proportion_and_comes_back() -> None:
    settings = plan("operations: { read: 60%, write: 30%, trim: 10% }").workloads[0].parameters
    for reads, others in ((0.2, [0.6, 0.2]), (1.0, []), (0.6, [0.3, 0.1])):
        settings = settings.edited({"fraction_read": reads})
        found = settings.absolute(MIB, "file", MAX)
        rest = [part.share for part in found.operations if part.operation is not READ]
        assert found.fraction_read == reads
        assert rest == pytest.approx(others)


@pytest.mark.parametrize(("mix", "reads"), [("{ read: 60%, trim: 40% }", 1.0), ("{ read: 60%, trim: 40% }", 0.0)])
def test_a_live_edit_that_would_lose_an_operation_is_refused(mix: str, reads: float) -> None:
    with pytest.raises(ValueError, match="would be left to come back to"):
        reading(of_plan(f"operations: {mix}"), reads)


@pytest.mark.parametrize(
    ("engine", "fault"),
    [
        ("backend: libaio", "operations: trim needs io_uring, but the backend is libaio: `backend"),
        ("backend: io_uring, polled: true", "operations: trim cannot be polled; leave `engine: polled` out"),
        ("backend: io_uring", ""),
        ("backend: auto", ""),
    ],
)  # fmt: skip
def test_a_trim_needs_a_backend_that_has_it(engine: str, fault: str) -> None:
    changes = (
        ("operations: { read: 50%, trim: 50% }", ""),
        ("", "steps: [ { edit: { rollup: all, set: { operations: { trim: 100% } } } }, { go: x } ]"),
        ("", "steps: [ { go: { name: x, loop: { operations: [ { trim: 100% } ] } } } ]"),
    )
    for settings, more in changes:
        text = f"engine: {{ {engine} }}\n{more}"
        if not fault:
            plan(settings, text)
            continue
        with pytest.raises(PlanFaults) as caught:
            plan(settings, text)
        assert fault in str(caught.value)


def test_what_trims_or_writes_zeroes_to_devices_needs_destroy() -> None:
    for operation in ("trim", "write_zeroes"):
        with pytest.raises(PlanFaults, match="destroy: true") as caught:
            plan(f"operations: {{ read: 90%, {operation}: 10% }}", "luns: { select: { kind: block } }")
        assert f"writes (operations {{ read: 90%, {operation}: 10% }})" in str(caught.value)


def test_a_range_without_a_place_says_what_it_was_looked_for_at() -> None:
    (misfit,) = geometry_faults(Parameters(align=MIB, range=(159744, 524288)), "/f", "file", 2 * MIB, 512)
    assert "holds no whole block of 4 KiB at a multiple of 1 MiB" in misfit.text


@pytest.mark.parametrize(
    ("parameters", "blocks"),
    [
        (Parameters(blocksize=4096), 16),
        (Parameters(blocksize=4096, align=512), 16),
        (Parameters(blocksize=4096, range=(512, 9216), align=512), 2),
        (Parameters(blocksize=4096, range=(512, 9216)), 1),
    ],
)
def test_a_range_holds_whole_blocks_from_its_first_aligned_offset(parameters: Parameters, blocks: int) -> None:
    assert geometry_faults(parameters, "/f", "file", 65536, 512) == []
    assert whole_blocks(parameters, "file", 65536) == blocks
