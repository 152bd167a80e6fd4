#!/usr/bin/env python3
"""A connector for ivypy without ivypy: lines of JSON at standard input and output. It reports this machine's disks.

Replace METRICS, attributes() and readings() by what your array, switch or appliance says. docs/connectors.md explains
each line; `ivypy connector check -- python3 connector.py` tests it.
"""

import json
import sys
import time
from pathlib import Path

COUNTER = {"element": "disk", "kind": "counter"}
METRICS = [
    {"element": "disk", "attribute": "in_flight", "unit": "I/Os"},
    {**COUNTER, "attribute": "reads_per_s", "unit": "1/s", "combine": "sum"},
    {**COUNTER, "attribute": "read_mib_per_s", "unit": "MiB/s", "combine": "sum", "scale": 512 / 2**20},
    {**COUNTER, "attribute": "read_ms", "unit": "ms", "per": "reads_per_s"},
    {**COUNTER, "attribute": "busy_percent", "unit": "%", "scale": 100 / 1000, "combine": "max"},
]
# Columns of /sys/block/DISK/stat.
COLUMNS = {"reads_per_s": 0, "read_mib_per_s": 2, "read_ms": 3, "in_flight": 8, "busy_percent": 9}


def attributes():
    """What holds for the whole run: [element type, instance, attribute, value] of each."""
    for disk in sorted(Path("/sys/block").iterdir()):
        wwn = disk / "wwid"
        if wwn.exists() and (found := wwn.read_text().strip()):
            yield ["lun", disk.name, "wwn", found]  # which LUN it is
            yield ["lun", disk.name, "disk", disk.name]  # and the element that serves it


def readings():
    """The present values."""
    for disk in sorted(Path("/sys/block").iterdir()):
        numbers = (disk / "stat").read_text().split()
        for attribute, column in COLUMNS.items():
            yield ["disk", disk.name, attribute, int(numbers[column])]


def send(message):
    print(json.dumps(message), flush=True)


def answer(command):
    if command["type"] == "read_config":
        return {"type": "connector_config", "metrics": METRICS, "facts": list(attributes())}
    start_ns = time.monotonic_ns()
    facts = list(readings())
    return {"type": "readings", "facts": facts, "start_ns": start_ns, "end_ns": time.monotonic_ns()}


send({"type": "connector_hello", "protocol": 1, "name": "example"})
for line in sys.stdin:
    command = json.loads(line)
    try:
        send({**answer(command), "re": command["id"]})
    except OSError as error:
        send({"type": "declined", "re": command["id"], "reason": str(error)})
