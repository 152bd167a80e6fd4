"""What a launcher is told about a host. Defined with the plan, the floor below, which builds it."""

from ..plan.hostspec import HostSpec, Launcher

__all__ = ["HostSpec", "Launcher"]
