"""A run of PLAN in FOLDER whose hosts two driver processes share, however few: a program of the fork server."""

import sys
from pathlib import Path

from ivypy.master.live.choose_view import Ui, View, watcher
from ivypy.master.plan.load import load
from ivypy.master.run.session.run import Options, run_plan
from ivypy.master.run.session.signals import run_until_pressed


def main() -> None:
    plan, options = load(Path(sys.argv[1]), {}), Options(Path(sys.argv[2]), None, (), processes=2)
    sys.exit(
        run_until_pressed(lambda presses: run_plan(plan, options, watcher(View(Ui.LINES, in_detail=True)), presses))
    )
