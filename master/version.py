"""The version of what is installed."""

from importlib.metadata import version
from typing import Final

from ..protocol.distribution import DISTRIBUTION

VERSION: Final = version(DISTRIBUTION)
