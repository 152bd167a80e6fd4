"""The command: scripts/mutants MODULE."""

import argparse
import random
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.support.mutants.c_changes import CFile, Span
from tests.support.mutants.c_tree import copied
from tests.support.mutants.forked import Fate, Limit, fate, imported, in_processes, swap_in_a_session
from tests.support.mutants.held_by import HELD_BY
from tests.support.mutants.mutant import Mutant
from tests.support.mutants.python_changes import Place, PythonModule

ROOT: Final = Path(__file__).parents[3]
EQUIVALENT: Final = Path(__file__).with_name("equivalent.txt")  # module, id, reason
MARKERS: Final = "not long and not realtime"
IMPORT_S: Final = 15.0  # CPU seconds to import the module and all that imports it, at most


def main() -> int:
    words = _arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started is ended, too
    path = words.module
    text = (ROOT / path).read_text()
    module = CFile(text) if path.endswith(".c") else PythonModule(text, "ivypy." + path[:-3].replace("/", "."))
    files = [file for file in words.tests or HELD_BY[path] if (ROOT / file.split("::")[0]).exists()]
    set_aside = equivalents(path)
    for unknown in set_aside.keys() - {one.id for one in module.mutants}:
        print(f"{EQUIVALENT.name}: {path} has no mutant {unknown} any more")
    chosen: list[Mutant[Any]] = [one for one in module.mutants if not words.only or one.id in words.only]
    if words.max and len(chosen) > words.max:
        picked = set(random.Random(words.seed).sample([one.id for one in chosen], words.max))
        chosen = [one for one in chosen if one.id in picked]
    tried = [one for one in chosen if one.id not in set_aside]
    if words.list:
        print(*tried, sep="\n")
        return 0
    if isinstance(module, CFile):
        fates = run_in_a_copy(module, tried, path, files, MARKERS)
        told = f"{len(tried) - len(fates)} that no compiler takes"
    else:
        fates, in_place = run(module, tried, files, MARKERS, words.jobs)
        told = f"{in_place} tried without an import"
    kinds = [list(fates.values()).count(kind) for kind in Fate]
    print(
        f"{path}: {len(module.mutants)} mutants, {len(fates)} tried:"
        f" {kinds[0]} killed, {kinds[1]} by timeout, {kinds[2]} survived;"
        f" {len(chosen) - len(tried)} equivalents set aside; {told}"
    )
    return 0


def run(
    module: PythonModule, mutants: Sequence[Mutant[Place]], files: Sequence[str], markers: str, jobs: int
) -> tuple[dict[str, Fate], int]:
    """What became of each mutant, by its id, and how many needed no import.

    This process imports nothing of ivypy: what it forks does.
    """
    swapped = swap_in_a_session(module, mutants, files, markers, jobs)
    fates = dict(swapped.fates)
    tasks = ((one, imported(module, one, files, markers)) for one in mutants if one.id not in fates)
    for mutant, code in in_processes(tasks, jobs, Limit(swapped.limit.cpu_s + IMPORT_S)):
        fates[mutant.id] = fate(code)
        if fates[mutant.id] is Fate.SURVIVED:
            print(mutant, flush=True)
    return fates, len(swapped.fates)


def run_in_a_copy(
    module: CFile, mutants: Sequence[Mutant[Span]], path: str, files: Sequence[str], markers: str
) -> dict[str, Fate]:
    """What became of each mutant that is C, by its id: a copy of the checkout is built and tested with it.

    Raises RuntimeError where the tests fail without a mutant.
    """
    fates = {}
    with copied(ROOT) as tree:
        if tree.fate(path, module.whole, files, markers) is not Fate.SURVIVED:
            raise RuntimeError("the tests fail without a change")
        for one in mutants:
            found = tree.fate(path, module.text(one), files, markers)
            if found is not None:
                fates[one.id] = found
            if found is Fate.SURVIVED:
                print(one, flush=True)
    return fates


def equivalents(path: str) -> dict[str, str]:
    """The mutants of a module that no input can tell from it, and why."""
    rows = [line.split(maxsplit=2) for line in EQUIVALENT.read_text().splitlines() if line and line[0] != "#"]
    return {name: reason for module, name, reason in rows if module == path}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/mutants",
        description="Change a module, one small change at a time, and list what no test notices.",
    )
    parser.add_argument("module", choices=sorted(HELD_BY), metavar="MODULE", help=", ".join(HELD_BY))
    parser.add_argument("--max", type=int, default=0, metavar="N", help="try N of them, drawn at random")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of that draw")
    parser.add_argument("--only", nargs="*", default=(), metavar="ID", help="try only these")
    parser.add_argument("--tests", nargs="*", default=(), metavar="FILE", help="instead of those that hold the module")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="processes at once; beside others, a test may fail of itself"
    )
    parser.add_argument("--list", action="store_true", help="list the mutants, and try none")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
