"""The name by which installers, and `importlib.metadata`, know ivypy."""

from typing import Final

DISTRIBUTION: Final = "ivypy-load"  # on PyPI, `ivypy` is another project
