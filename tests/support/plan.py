"""Plans for tests, from fragments."""

import re

# What a plan needs besides the fragment that is tried.
REST = {
    "luns": "luns: { create: { path: /data/f, size: 1MiB } }",
    "workloads": "workloads: { oltp: {} }",
    "steps": "steps: [ go: one ]",
}


def completed(fragment: str) -> str:
    """A whole plan that begins with `fragment`."""
    given = re.findall(r"(?m)^([a-z_]+):", fragment)
    return "\n".join([fragment, *(text for key, text in REST.items() if key not in given), ""])
