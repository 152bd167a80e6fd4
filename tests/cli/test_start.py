"""What the commands load before they do anything, and that alone they load all that they need."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ivypy.master.exit_codes import ExitCode
from tests.support.compared_runs import Made
from tests.support.logs import NULL4, case_logs
from tests.support.real_runs import answered, by_a_user, ivypy

pytestmark = pytest.mark.slow

LOADED = (
    "import sys; from ivypy.master.cli.{0} import {0}; {0}(sys.argv[1:], standalone_mode=False); print(*sys.modules)"
)


def modules(command: str, *words: object) -> set[str]:
    """The modules that a command has loaded when it ends."""
    code = [sys.executable, "-c", LOADED.format(command), *map(str, words)]
    return set(subprocess.run(code, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split())


UNNEEDED = (
    "rollup.metrics", "control.observation", "plan.model", "logs.result.accuracy_check", "logs.compat.pctiles",
)  # fmt: skip


def test_percentiles_of_logs_load_no_other_room(tmp_path: Path) -> None:
    loaded = modules("percentiles", "-o", tmp_path / "out.csv", *case_logs(NULL4, "*_clat_hist.1.log.gz"))
    assert "ivypy.master.logs.execute" in loaded
    assert [one for one in UNNEEDED if f"ivypy.master.{one}" in loaded] == []


def test_no_command_loads_the_comparison_before_it_compares() -> None:
    code = "import sys, ivypy.master.cli.commands; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "ivypy.master.cli.compare" in loaded
    assert [one for one in loaded if one == "numpy" or one.startswith("ivypy.master.compare")] == []


@pytest.mark.parametrize(
    "words",
    [
        "show A", "list .", "compare A --vs B", "report A -o new/report.html", "export A --parquet new/tables",
        "query A SHOW\tTABLES", "steady A", "percentiles A", "import job.fio", "devices nothing.yaml",
    ],
)  # fmt: skip
def test_a_command_alone_answers_as_here_where_all_is_loaded(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    folders = {"A": Made().write(tmp_path), "B": Made(seed=2, began_s=60).write(tmp_path)}
    Path("job.fio").write_text("[a]\nrw=randread\nsize=1m\nfilename=data\n")
    Path("nothing.yaml").write_text(
        "luns: { select: { path: /dev/nothing* } }\nworkloads: { w: { } }\nsteps: [ go: a ]\n"
    )
    given = [str(folders.get(word, word)) for word in words.split(" ")]
    Path("new").mkdir()
    here = answered(*given)
    assert here.returncode != ExitCode.PLAN, here.stderr
    Path("new").rename("here")
    Path("new").mkdir()
    alone = ivypy(*given, started=by_a_user)
    said = [
        re.sub("there is .*; correct", "", one.stderr) for one in (alone, here)
    ]  # this machine's devices, which change
    assert (alone.returncode, said[0]) == (here.returncode, said[1])
    # But for the sizes of files: DuckDB's threads write the same rows in sizes of their own.
    assert re.sub(r"[\d.]+ [kKM]iB|\s", "", alone.stdout) == re.sub(r"[\d.]+ [kKM]iB|\s", "", here.stdout)
