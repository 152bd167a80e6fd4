"""ivypy: distributed storage load generation.

The root of the repository is this package: `ivypy.master` is the controller, `ivypy.slave` the
test host, `ivypy.protocol` what they say to each other.
"""

from importlib.metadata import version

__version__ = version("ivypy")
