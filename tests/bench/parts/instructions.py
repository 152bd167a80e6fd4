"""Instructions per I/O of the loop, counted by callgrind: a figure that no other load of the machine moves.

Three cases, see rate.c: of `null`, no I/O waits to be found; of `late`, each does, as those of a fast device; `mix` is
as `null`, of three sizes.

Rule: compiled as the extension is; counted in the workload thread alone, and as the difference of two runs of different
length, so that what a step does once cancels. The figures kept here are of the compiler named beside them; with another
one they are shown, not compared.
"""

import re
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.support.engine import CORE, ENGINE

KEPT: Final = {
    ("null", 1): 723,
    ("null", 32): 312,
    ("late", 64): 441,
    ("mix", 32): 385,
}  # case and depth: instructions per I/O
COMPILER: Final = "12.2.0"  # gcc
WITHIN: Final = 0.02
LENGTHS: Final = (2, 8)  # of 100 ms

ROOT = Path(__file__).parents[3]


def compiler() -> str:
    done = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def build(folder: Path) -> Path:
    driver = ROOT / "tests" / "engine" / "rate.c"
    program = folder / "rate"
    setup = runpy.run_path(str(ROOT / "setup.py"))
    words = ["gcc", *setup["C_FLAGS"], *setup["ENGINE_FLAGS"], f"-I{ENGINE}", "-o", program, driver, *CORE, "-lm"]
    subprocess.run([*map(str, words)], check=True)
    return program


def counted(program: Path, image: str, case: str, depth: int, lengths: int) -> tuple[int, int]:
    """(instructions, I/Os) of a run."""
    words = [
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        "--toggle-collect=thread_main*",
        program,
        case,
        image,
        depth,
        lengths,
    ]
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found, done.stderr
    return int(found[1]), int(done.stdout)


def per_io(program: Path, image: str, case: str, depth: int) -> float:
    (less, few), (more, many) = (counted(program, image, case, depth, lengths) for lengths in LENGTHS)
    return (more - less) / (many - few)


def rows(folder: Path, image: str) -> list[str]:
    if shutil.which("valgrind") is None:
        return ["instructions per I/O: this machine lacks valgrind"]
    program = build(folder)
    return [row(case, depth, per_io(program, image, case, depth)) for case, depth in KEPT]


def row(case: str, depth: int, found: float) -> str:
    kept = KEPT[case, depth]
    text = f"instructions per I/O, {case}, depth {depth}: {found:.0f}; kept: {kept} with gcc {COMPILER}"
    if (here := compiler()) != COMPILER:
        return f"{text}, this is {here}: not compared"
    more = found / kept - 1
    if more < -WITHIN:
        return f"{text}  fewer, by {-more:.1%}: if all of it is still done, keep this figure"
    return f"{text}  " + ("as kept" if more <= WITHIN else f"MORE, by {more:.1%}")
