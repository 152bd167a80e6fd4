"""A simulated array, as a connector: plain JSON lines, the standard library, and nothing of ivypy.

Rule: its figures follow from the I/O that hosts really drive. A logical device (ldev) is a block device of this
machine, whose counters the kernel keeps in /sys/block/NAME/stat; parity groups, ports and processors (mp) add up those
of their ldevs. What no I/O reaches has counters that stay. An ldev with a `rate` in place of a device counts by the
clock, for runs without devices.

    python3 simulated_array.py '{"00:01": {"path": "/dev/loop3", "parity_group": "1-1", ...}}' --fault slow --after 3

`--fault`: what it does wrong, from its gather number `--after` on, counted from 0; FAULTS names all of them.
"""

import argparse
import json
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

COST_US = 100  # of an mp, for each I/O
CACHE_MIB = 256  # what fills it, if nothing is written back
SECTOR = 512  # bytes, in /sys/block/NAME/stat
GROUPS = ("parity_group", "port", "mp")  # attributes of an ldev, and element types
FAULTS = {
    "slow": "each gather takes --takes seconds",
    "silent": "it answers no gather any more",
    "dies": "it exits with status 3",
    "garbage": "it sends what is no JSON",
    "wrong_message": "it answers with what is no message of a connector",
    "flood": "it sends readings that nobody asked for, without end",
    "declines": "it declines every gather",
    "duplicate": "a reading is there twice, with two values",
    "undeclared": "readings of an attribute that it has not declared",
    "text": "text in the place of a number",
    "falls": "a counter that falls, and says nothing of wraps",
    "absent": "no stamps",
    "backwards": "stamps that run backwards",
    "fast": "stamps of a clock that is twice as fast",
    "jump": "a clock that is stepped by an hour at every gather",
    "ahead": "an element type counted after the gather's end",
    "too_long": "a gather that is longer, by its stamps, than the time between request and answer",
    # These hold from the beginning on.
    "bad_unit": "a unit that there is not",
    "bad_name": "an attribute whose name cannot be one",
    "wrong_suffix": "an attribute whose name has another unit than it declares",
    "twice_declared": "a metric that is declared twice",
    "no_hello": "it waits for a command before its first word",
    "late_hello": "it takes --takes seconds for its first word",
    "exits": "it exits with status 3 at once",
    "unflushed": "its lines stay in a buffer until it exits",
    "stays": "it does not exit at the end of its input, nor by SIGTERM",
}


class Ldev:
    """A logical device: where it is, and how much was done there."""

    def __init__(self, instance: str, given: Mapping[str, Any]) -> None:
        self.instance = instance
        self.attributes = {name: str(value) for name, value in given.items() if name != "rate"}
        self.rate = float(given.get("rate", 0.0))
        name = os.path.basename(os.path.realpath(str(given.get("path", ""))))
        self._stat = Path(f"/sys/block/{name}/stat")

    def counted(self, seconds: float) -> tuple[int, int, int]:
        """(I/Os, bytes, microseconds that they took) so far; after so many seconds, where it has a rate."""
        if self.rate:
            ios = int(self.rate * seconds)
            return ios, ios * 4096, ios * 250
        try:
            words = [int(word) for word in self._stat.read_text().split()]
        except OSError:
            return 0, 0, 0
        return words[0] + words[4], (words[2] + words[6]) * SECTOR, (words[3] + words[7]) * 1000


class SimulatedArray:
    """Holds the ldevs, and which gather this is."""

    def __init__(self, ldevs: Mapping[str, dict[str, Any]], faults: frozenset[str], after: int, takes: float) -> None:
        self.ldevs = [Ldev(instance, given) for instance, given in ldevs.items()]
        self._faults = faults
        self._after = after
        self._takes = takes
        self._gathers = 0
        self._began = time.monotonic()
        self.held: list[str] = []  # lines that are not flushed

    def has(self, fault: str) -> bool:
        """Whether it does that at the present gather."""
        return fault in self._faults and self._gathers > self._after

    def hello(self) -> None:
        if "exits" in self._faults:
            print("no licence", file=sys.stderr)
            sys.exit(3)
        if "late_hello" in self._faults:
            time.sleep(self._takes)
        self.send(type="connector_hello", protocol=1, name="simulated array", version="1")

    def answer(self, command: Mapping[str, Any]) -> None:
        if command["type"] == "read_config":
            self.send(type="connector_config", re=command["id"], metrics=self._metrics(), facts=list(self._config()))
            return
        self._gathers += 1
        start_ns = self._clock()
        if self.has("slow"):
            time.sleep(self._takes)
        if self.has("dies"):
            print("the array is on fire", file=sys.stderr)
            sys.exit(3)
        if self.has("silent"):
            return
        if self.has("garbage"):
            self._write("\x7fELF not a line of JSON" * 20)
            return
        if self.has("wrong_message"):
            self.send(type="readings", re=command["id"], values={})
            return
        if self.has("declines"):
            self.send(type="declined", re=command["id"], reason="the array is being serviced")
            return
        facts = list(self._readings())
        end_ns, stamps = self._clock(), {}
        if self.has("too_long"):
            start_ns = end_ns - 3600 * 10**9
        if self.has("ahead"):
            stamps["port"] = end_ns + 10**9
        if self.has("absent"):
            start_ns = end_ns = 0
        while True:
            self.send(type="readings", re=command["id"], start_ns=start_ns, end_ns=end_ns, stamps=stamps, facts=facts)
            if not self.has("flood"):
                return

    def send(self, **message: Any) -> None:
        self._write(json.dumps(message))

    def _write(self, line: str) -> None:
        if "unflushed" in self._faults:
            self.held.append(line)
        else:
            print(line, flush=True)

    def _clock(self) -> int:
        now_ns = time.monotonic_ns()
        if self.has("backwards"):
            return 10**15 - now_ns
        if self.has("fast"):
            return 2 * now_ns
        if self.has("jump"):
            return now_ns + self._gathers * 3600 * 10**9
        return now_ns

    def _metrics(self) -> list[dict[str, Any]]:
        ios = {"unit": "1/s", "kind": "counter", "combine": "sum", "meaning": "I/Os"}
        mib = {"unit": "MiB/s", "kind": "counter", "combine": "sum", "scale": 1 / (1 << 20), "meaning": "bytes"}
        service = {"unit": "us", "kind": "counter", "per": "ios_per_s", "meaning": "mean service time"}
        found: list[dict[str, Any]] = [
            {"element": element, "attribute": attribute, **metric}
            for element in ("parity_group", "port", "ldev")
            for attribute, metric in (("ios_per_s", ios), ("mib_per_s", mib), ("service_us", service))
        ]
        busy = {"unit": "%", "kind": "counter", "scale": 1e-4, "meaning": "microseconds per second"}
        found.append({"element": "mp", "attribute": "busy_percent", **busy})
        found.append({"element": "cache", "attribute": "write_pending_percent", "unit": "%"})
        more = {
            "bad_unit": {"element": "mp", "attribute": "load", "unit": "furlongs"},
            "bad_name": {"element": "mp", "attribute": "Busy Time", "unit": "%"},
            "wrong_suffix": {"element": "mp", "attribute": "wait_percent", "unit": "us"},
            "twice_declared": {"element": "mp", "attribute": "busy_percent", "unit": "%"},
        }
        return found + [metric for fault, metric in more.items() if fault in self._faults]

    def _config(self) -> Iterator[list[Any]]:
        for ldev in self.ldevs:
            for name, value in ldev.attributes.items():
                yield ["ldev", ldev.instance, name, value]

    def _readings(self) -> Iterator[list[Any]]:
        seconds = time.monotonic() - self._began
        sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
        written = 0
        for ldev in self.ldevs:
            counted = ldev.counted(seconds)
            written += counted[1]
            for key in (("ldev", ldev.instance), *((kind, ldev.attributes[kind]) for kind in GROUPS)):
                sums[key] = [before + more for before, more in zip(sums[key], counted, strict=True)]
        for (element, instance), (ios, size, took_us) in sums.items():
            if element == "mp":
                yield [element, instance, "busy_percent", ios * COST_US]
                continue
            fallen = self.has("falls") and element == "port"
            yield [element, instance, "ios_per_s", 10**12 - ios - self._gathers if fallen else ios]
            yield [element, instance, "mib_per_s", size]
            yield [element, instance, "service_us", took_us]
        yield ["cache", "0", "write_pending_percent", min(100.0, written / (CACHE_MIB << 20) * 100)]
        if self.has("duplicate"):
            yield ["cache", "0", "write_pending_percent", 12.5]
        if self.has("undeclared"):
            yield ["mp", "0", "temperature_c", 40]
        if self.has("text"):
            yield ["cache", "1", "write_pending_percent", "many"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("ldevs", type=json.loads)
    parser.add_argument("--fault", choices=FAULTS, action="append", default=[])
    parser.add_argument("--after", type=int, default=0)
    parser.add_argument("--takes", type=float, default=3600.0)
    given = parser.parse_args()
    array = SimulatedArray(given.ldevs, frozenset(given.fault), given.after, given.takes)
    if "stays" in given.fault:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    lines = iter(sys.stdin)
    if "no_hello" not in given.fault:
        array.hello()
    for line in lines:
        array.answer(json.loads(line))
    for line in array.held:
        print(line)
    while "stays" in given.fault:
        time.sleep(3600)


if __name__ == "__main__":
    main()
