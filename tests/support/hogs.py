"""Others that want a core all the time."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

HOG = "import os; os.sched_setaffinity(0, {{{}}}); print(flush=True)\nwhile True: pass"


@contextmanager
def wanted_core(core: int, hogs: int = 3) -> Iterator[None]:
    """So many want that core while the block runs."""
    with ExitStack() as stack:
        for _ in range(hogs):
            words = [sys.executable, "-c", HOG.format(core)]
            hog = stack.enter_context(subprocess.Popen(words, stdout=subprocess.PIPE))
            stack.callback(hog.kill)
            assert hog.stdout is not None
            hog.stdout.readline()
        yield
