"""The version of what is installed."""

from importlib.metadata import version
from typing import Final

VERSION: Final = version("ivypy")
