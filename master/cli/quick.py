"""`ivypy quick`: a first number without a plan file, by the options that fio's users know.

Rule: it only makes a plan (quick_plan.py) and runs it as `ivypy run` does.
"""

import glob
import os
import re
import shlex
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ...protocol.counters import MOST_SECTIONS
from ..control.choices import LATENCIES
from ..errors import PlanError
from ..exit_codes import ExitCode
from ..live.terminal_width import columns_of, fitted
from ..text.suggestions import did_you_mean
from .quick_fio import nearest_to, without_fio_flags
from .run_outputs import output_options, outputs_of, run_and_show
from .view_options import view_of, view_options

if TYPE_CHECKING:
    from ..live.reports import RunEnds
    from ..plan.model import Plan
    from .quick_plan import QuickTarget

_PLANS: Final = (".yaml", ".yml")
_JOBS: Final = (".fio", ".job", ".parm")
_BEGINNING: Final = 16 << 10  # bytes of a file that show what it is
_BACKENDS: Final = {"libaio": "libaio", "io_uring": "io_uring", "io_uring_cmd": "nvme", "auto": "auto", "null": "null"}


def _same_name(option: str) -> str:
    """fio has `--ramp_time`, others `--ramp-time`."""
    return option.replace("_", "-")


class FioCommand(click.Command):
    """Takes fio's flags that ask for what ivypy always does, and names what comes nearest to the others."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = {name for option in self.params for name in option.opts}
        for word in args:
            if word[:1] == "-" != word[1:2] and f"-{_same_name(word).partition('=')[0]}" in options:
                raise PlanError(f"{word}: write two dashes, -{word}")
        try:
            return super().parse_args(ctx, without_fio_flags(args))
        except click.NoSuchOption as error:
            if instead := nearest_to(error.option_name):
                raise PlanError(f"{error.option_name} of fio: {instead}") from None
            raise


class PlanCommand(click.Command):
    """Takes a plan; options of fio lead to `ivypy quick`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        typed = shlex.join(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = _same_name(error.option_name)
            known = any(name in option.opts for option in quick.params) or nearest_to(name)
            if not known and without_fio_flags([error.option_name]):
                raise
            raise PlanError(
                f"{error.option_name}: `ivypy {ctx.info_name}` takes a plan; options as fio has them are for\n"
                f"  ivypy quick {typed}"
            ) from None


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of the load, in the order in which --help shows them."""
    options: list[Callable[[Any], Any]] = [
        click.option("--rw", "--readwrite", default="randread", show_default=True, metavar="KIND",
                     help="read, write, randread, randwrite, rw, randrw, trim or randtrim."),
        click.option("--bs", "--blocksize", "blocksize", default="4k", show_default=True, metavar="SIZE",
                     help="Size of each I/O, 4k, or of reads and writes, 4k,64k; k is 1024."),
        click.option("--bssplit", metavar="SIZES", help="Sizes with their percentages: 4k/60:64k/40."),
        click.option("--blockalign", "--ba", "blockalign", metavar="SIZE", hidden=True),
        click.option("--percentage-random", type=click.IntRange(0, 100), metavar="PERCENT",
                     help="Of the I/Os; the others begin where the last one ended."),
        click.option("--random-distribution", metavar="LAW",
                     help="Of random addresses: zipf:1.2, pareto:0.2, or zoned:90/10:10/90, shares of I/Os and range."),
        click.option("--by-address", type=click.IntRange(1, MOST_SECTIONS), metavar="N",
                     help="Count I/Os and their times in so many sections of each target, for a map."),
        click.option("--iodepth", "--maxtags", "--qd", type=int, default=32, show_default=True, metavar="N",
                     help="I/Os in flight on each target."),
        click.option("--numjobs", type=int, default=1, metavar="N",
                     help="Multiplies --iodepth: there is a thread per core, whatever the load."),
        click.option("--rwmixread", metavar="PERCENT", help="Reads of rw and randrw.  [default: 50]"),
        click.option("--time", "--runtime", "time", metavar="TIME",
                     help="Length of the measurement; a plain number is seconds.  [default: 30s]"),
        click.option("--io-size", metavar="SIZE",
                     help="Measure until so much is read and written on each target: 10G, or 2x of it."),
        click.option("--number-ios", metavar="N", help="Likewise, until so many I/Os, like 1M."),
        click.option("--once", is_flag=True, help="Likewise, until each block was driven once."),
        click.option("--ramp", "--ramp-time", "ramp", metavar="TIME",
                     help="Time under load before it.  [default: 2s, or 1s for less than 10s]"),
        click.option("--size", "--filesize", "size", metavar="SIZE",
                     help="Create a new file of this size; of an existing file or device, use only the first SIZE."),
        click.option("--buffered", is_flag=True, help="Go through the page cache, which is dropped before."),
        click.option("--keep-cache", is_flag=True, help="Do not drop it."),
        click.option("--fsync", type=click.IntRange(0), metavar="N", help="Flush after so many writes."),
        click.option("--fdatasync", type=click.IntRange(0), metavar="N", hidden=True),
        click.option("--end-fsync", is_flag=True, help="Flush at the end; its time counts."),
        click.option("--sync", metavar="KIND", hidden=True),
        click.option("--rate", "--rate-iops", "rate", metavar="RATE",
                     help="20000 or 20k I/Os per second in all, 200MiB/s, 80% of the maximum, measured first, or 1k-5k,"
                          " a ramp."),
    ]  # fmt: skip
    for name in LATENCIES:
        others = [f"--{name.replace('_', '')}"] if "_" in name else []
        options.append(
            click.option(
                f"--{name.replace('_', '.')}", *others, f"objective_{name}", metavar="LATENCY", hidden=name != "p99",
                help="Find the highest rate that meets it, like 5ms; also --mean, --p50 ... --p99.99.",
            )
        )  # fmt: skip
    options += [
        click.option("--within", metavar="TIME",
                     help="Longest time of that search; more narrows its interval.  [default: 3m]"),
        click.option("--slo", multiple=True, metavar="METRIC<=VALUE,...",
                     help="Thresholds, like 'p99<=5ms' (with --rate: response time) or 'iops>=20k';"
                          " exit 5 if one is missed."),
        click.option("--select", multiple=True, metavar="ATTR=VALUE,...",
                     help="Block devices by attribute, as in plans: vendor=HITACHI, 'size>=1T'."),
        click.option("--filename", multiple=True, hidden=True),
        click.option("--hosts", metavar="NAMES", help="Test hosts, by ssh: lab[01-16],db1.  [default: this machine]"),
        click.option("--user", metavar="NAME", help="The user to log in as."),
        click.option("--backend", "--ioengine", "backend", metavar="NAME", help="libaio or io_uring.  [default: auto]"),
        click.option("--name", default="quick", show_default=True, metavar="NAME",
                     help="Begins the run folder's name."),
        click.option("--save", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
                     help="Save the plan in a new file."),
        click.option("--dry-run", is_flag=True, help="Print the plan; run nothing."),
        click.option("--destroy", metavar="TOKEN",
                     help="Overwrite them. TOKEN is in the refusal of the same command without it."),
        click.option("-o", "--output", "root", type=click.Path(path_type=Path, file_okay=False), default=Path("runs"),
                     show_default=True, metavar="ROOT", help="Folder in which to create the run folder."),
        output_options,
        view_options,
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


@click.command(cls=FioCommand, context_settings={"token_normalize_func": _same_name})
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@_options
def quick(
    paths: tuple[str, ...], root: Path, destroy: str | None, ui: str, every: str, verbose: bool, **words: Any
) -> ExitCode:
    """Measure devices or files, without a plan file.

    \b
    ivypy quick /dev/nvme1n1 --rw randread --bs 4k --iodepth 32 --time 30s
    ivypy quick /data/new.bin --size 10G --rw randrw --rwmixread 70 --rate 80%
    ivypy quick '/dev/sd[b-e]' --rw randread --p99 5ms --within 3m
    ivypy quick --hosts lab[01-16] --select vendor=HITACHI --rw read --bs 1M

    With --size, a file that does not exist is created, and removed at the end. Writing to anything else needs a
    token, which the refusal shows. Without PATH: lists what could be measured. Options have fio's names, with = or a
    space.
    """
    from .quick_plan import QuickOptions, quick_plan

    view = view_of(ui, every, verbose)
    save, dry_run, outputs = words.pop("save"), words.pop("dry_run"), outputs_of(words)
    named = [*paths, *(part for text in words.pop("filename") for part in text.split(":") if part)]
    objectives = {key: words.pop(key) for key in list(words) if key.startswith("objective_")}
    if not named and not words["select"]:
        context = click.get_current_context()
        if set(_typed(context)) - {"hosts", "user"}:
            raise PlanError(
                "name what to measure: a device, a file, or --select ATTRIBUTE=VALUE;"
                " `ivypy quick` alone lists what there is"
            )
        return _inventory(words["hosts"], words["user"])
    if dry_run:
        outputs.refuse_in_dry_run()
    from ..plan.build_plan import check_name_option

    check_name_option(words["name"])
    command = repeatable(sys.argv[1:])
    with nullcontext() if dry_run else outputs.begun(words["name"]):
        options = QuickOptions(
            targets=tuple(targets(named, words["hosts"] is None, words["size"] is not None)),
            objectives=tuple(
                (key.removeprefix("objective_").replace("_", "."), text) for key, text in objectives.items() if text
            ),
            backend=_backend(words.pop("backend")),
            **words,
        )
        made = quick_plan(options, command)
        plan = _checked(made.text)
        if save is not None:
            _save(save, made.text)
    if dry_run:
        click.echo(made.text, nl=False)
        return ExitCode.OK
    from ..run.session.run import Options

    for note in made.notes:
        click.echo(note, err=True)
    wanted = Options(root, destroy, tuple(sys.argv), command)
    return run_and_show(plan, wanted, view, outputs, lambda ends: _result(made.heading, ends))


def _typed(context: click.Context) -> list[str]:
    """The options that are on the command line."""
    return [
        name for name in context.params if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    ]


def _inventory(hosts: str | None, user: str | None) -> ExitCode:
    from ..run.session.signals import run_until_pressed
    from .inventory import example_lines, inventory

    def show(text: str) -> None:
        click.echo(fitted(text, sys.stdout))

    code, device = run_until_pressed(lambda presses: inventory(hosts, user, show))
    show("\n".join(example_lines(device)))
    return code


def targets(paths: Sequence[str], on_this_machine: bool, sized: bool) -> "list[QuickTarget]":
    """The target at each path, patterns expanded. Not `on_this_machine`, the path alone decides. `sized`: a file that
    is not there is to be created.

    Raises PlanError.
    """
    each = [_local(path, sized) if on_this_machine else [_remote(path, sized)] for path in paths]
    found = {target.path: target for some in each for target in some}
    return list(found.values())


def _local(path: str, sized: bool) -> "list[QuickTarget]":
    full = os.path.abspath(os.path.expanduser(path))
    if os.path.lexists(full) or not glob.has_magic(full):
        return [_found(path, full, sized)]
    matching = sorted(glob.glob(full))
    if not matching:
        raise PlanError(f"{path}: nothing matches; `ivypy quick` alone lists the devices")
    return [_found(one, one, sized) for one in matching]


def _found(typed: str, full: str, sized: bool) -> "QuickTarget":
    from .quick_plan import QuickTarget, TargetKind

    _check_text(typed)
    try:
        status = os.stat(full)
    except FileNotFoundError:
        return _new(typed, full, sized)
    except OSError as error:
        raise PlanError(f"{typed}: {error.strerror}") from None
    _check_no_test(typed)
    if stat.S_ISBLK(status.st_mode):
        return QuickTarget(full, TargetKind.DEVICE)
    if stat.S_ISREG(status.st_mode):
        return QuickTarget(full, TargetKind.FILE, size=status.st_size)
    if stat.S_ISDIR(status.st_mode):
        new = os.path.join(typed, "ivypy-quick.data")
        raise PlanError(f"{typed}: a folder; name a new file in it: {new}{_size_of_new(sized)}")
    raise PlanError(f"{typed}: neither a block device nor a file")


def _new(typed: str, full: str, sized: bool) -> "QuickTarget":
    """A file to create, where it is likely that one is meant."""
    from .quick_plan import QuickTarget, Rw, TargetKind

    _check_no_test(typed)
    folder = os.path.dirname(full)
    if typed.lower() in [*Rw, "trim", "randtrim"]:
        raise PlanError(f"{typed}: not a path; write --rw {typed.lower()}")
    if folder == "/dev" or not {"/", "."} & {*typed}:  # a name alone is a device's, if it is not of a file like new.bin
        devices = os.listdir("/sys/block") if os.path.isdir("/sys/block") else []
        near = did_you_mean(os.path.basename(full), devices)
        create = "" if folder == "/dev" else f"\nto create a file here, write ./{typed}{_size_of_new(sized)}"
        raise PlanError(f"{typed}: there is no such device{near}; `ivypy quick` alone lists them{create}")
    if not os.path.isdir(folder):
        raise PlanError(f"{typed}: there is no folder {folder}; create it, or name another file")
    if not sized:
        near = did_you_mean(os.path.basename(full), os.listdir(folder))
        raise PlanError(f"{typed}: there is no such file; to create it for this test, write its size: --size 1G{near}")
    return QuickTarget(full, TargetKind.NEW)


def _size_of_new(sized: bool) -> str:
    """The option that a new file needs yet."""
    return "" if sized else " --size 1G"


def _remote(path: str, sized: bool) -> "QuickTarget":
    from .quick_plan import QuickTarget, TargetKind

    _check_text(path)
    _check_no_test(path)
    if not path.startswith("/"):
        raise PlanError(f"{path}: on other hosts, write the whole path, like /dev/sdb")
    if path.startswith("/dev/") and not path.startswith("/dev/shm/"):
        if "[" in path:
            raise PlanError(f"{path}: on other hosts, write one path after the other, or * and ?")
        return QuickTarget(path, TargetKind.DEVICE)
    return QuickTarget(path, TargetKind.NEW if sized else TargetKind.FILE)


def _check_text(path: str) -> None:
    if not path.isprintable():
        raise PlanError(f"{path!r}: its name is not printable UTF-8 text; rename it")


def _check_no_test(path: str) -> None:
    suffix = os.path.splitext(path)[1].lower()
    if suffix in _PLANS:
        raise PlanError(f"{path}: a plan, by its name; run it with `ivypy run {shlex.quote(path)}`")
    if suffix in _JOBS:
        raise PlanError(f"{path}: a job file, by its name; `ivypy import {shlex.quote(path)}` makes a plan of it")


def not_a_plan(path: Path) -> str:
    """Return the remedy for a path that was given as a plan, by what is there and its name; "" where it may be a
    plan.
    """
    if path.is_block_device():
        return f"{path}: a block device, not a plan; to measure it: ivypy quick {shlex.quote(str(path))}"
    if path.parent == Path("/dev") and not path.exists():
        return f"{path}: there is no such device; `ivypy quick` alone lists them"
    if path.suffix.lower() in _JOBS or _begins_as_job(path):
        make = f"ivypy import {shlex.quote(str(path))}"
        return (
            f"{path}: a job file of another tool, not a plan; `{make}` makes a plan of it,"
            " and `ivypy quick` takes its settings as options"
        )
    return ""


def _begins_as_job(path: Path) -> bool:
    """Whether the first line that is no comment is fio's, `[global]`, or vdbench's, `sd=sd1`."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            lines = file.read(_BEGINNING).splitlines()
    except OSError:
        return False  # the loader says why
    first = next((line.strip() for line in lines if line.strip() and line.lstrip()[:1] not in (b"#", b";", b"*")), b"")
    return re.fullmatch(rb"\[[^\[\]{},:]+\]|(hd|sd|wd|rd)=\S+", first) is not None


def _backend(name: str | None) -> str | None:
    if name is None:
        return None
    if name in ("sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "posixaio"):
        raise PlanError(
            f"--ioengine {name}: not an asynchronous engine; write --ioengine libaio --iodepth 1 for one I/O in flight"
        )
    if name not in _BACKENDS:
        raise PlanError(f"--ioengine {name}: not there{did_you_mean(name, _BACKENDS)}; use libaio or io_uring")
    return _BACKENDS[name]


def _checked(text: str) -> "Plan":
    """The plan, by the ordinary loader. Raises PlanFaults."""
    from ..plan.load import read

    return read(text, "plan of --dry-run")


def _save(path: Path, text: str) -> None:
    """Raises PlanError, OutputError; never overwrites."""
    from ..output.named_files import write_new

    write_new(path, text)
    click.echo(f"plan saved: ivypy run {shlex.quote(str(path))}", err=True)


def repeatable(words: Sequence[str]) -> str:
    """The command line for a shell, without the token and --save."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
            continue
        if word in ("--destroy", "--save"):
            skip = True
        elif not word.startswith(("--destroy=", "--save=")):
            kept.append(word)
    return shlex.join(["ivypy", *kept])


def _result(heading: str, ends: "RunEnds") -> list[str]:
    import csv

    from ..output.csv_text import whole_lines
    from ..summary.headline import NARROW
    from .quick_result import result_lines

    tables, folder = [], Path(ends.folder)
    for path in (folder / "summary.all.csv", folder / "luns.csv", *sorted(folder.glob("step*/find.csv"))[-1:]):
        with path.open(newline="", encoding="utf-8") as file:
            tables.append(list(csv.DictReader(whole_lines(file))))
    return result_lines(heading, ends, *tables, width=min(columns_of(sys.stdout) or NARROW, NARROW))
