"""Measure the most that a file's device does, then walk up to it until the response time is too long.

    python knee.py /path/on/the/device [root of the results]

Each step is decided upon from the results of those before it.
"""

import asyncio
import sys

import ivypy

PLAN = """\
name: knee
parameters:
  path:
  seconds: 20
luns: { create: { path: "${path}", size: 64MiB } }
workloads: { oltp: { blocksize: 8KiB, fraction_read: 70%, maxtags: 16 } }
defaults: { subinterval: 1s, warmup: 2s, measure: "${seconds}s" }
"""
LONGEST_US = 5_000.0  # the response time, 99th percentile, that is still good enough


async def main(path: str, root: str, seconds: str) -> str | None:
    """What kept it from an answer, if anything did."""
    best = None
    async with ivypy.Session(PLAN, root=root, defines={"path": path, "seconds": seconds}) as session:
        most = await session.go("max", warmup="1s")
        if most.verdict == "invalid":  # then no step may refer to it
            return f"there is no maximum to go by, see {session.folder}: {'; '.join(most.reasons)}"
        print(f"at most {most['all=all']['overall_iops']:,.0f} IOPS")
        for percent in (25, 50, 75, 90, 95):
            await session.edit("all=all", total_iops=f"{percent}% of step max")
            step = await session.go(f"at_{percent}")
            p99 = step["all=all"]["overall_response_us_p99"]
            print(f"{percent} %: {step.verdict} {'; '.join(step.reasons)}, p99 {p99 or float('nan'):,.0f} us")
            if p99 is None or p99 > LONGEST_US:  # None: too few samples, or the load was not reached
                break
            best = percent
    print(f"good up to {best} % of max" if best else "not even the lowest load is good")
    print(f"results are in {session.folder}")
    return None


if __name__ == "__main__":
    words = [*sys.argv[1:], "runs", "20"]
    sys.exit(asyncio.run(main(*words[:3])))
