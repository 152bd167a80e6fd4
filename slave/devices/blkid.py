"""Asks blkid, where it is installed, for formats on a device beside our own table of signatures.

Rule: only ever a reason more not to write. blkid accepts two bytes of magic for some formats, or three: ivypy's own
random data would be taken for one of them once in 20,000 LUNs. Our table has all of these formats and compares at least
four bytes; for these, its answer is the one that counts.
"""

import os
import shutil
import subprocess
from typing import Final

from ..bounded_calls import ANSWER_S

ADMIN_PATH: Final = "/usr/sbin:/sbin:/usr/bin:/bin"  # not in the PATH of every login
COMPARED_MORE: Final = frozenset(
    {"ext2", "ext3", "ext4", "ext4dev", "jbd", "minix", "hfs", "hfsplus", "jmicron_raid_member"}
    | {"PMBR"}  # an MBR, for our table
)
SEVERAL: Final = 8  # exit status: "ambivalent"


def find_blkid() -> str:
    """The path of the program; "" where it is not installed."""
    return shutil.which("blkid", path=ADMIN_PATH) or ""


def found_by_blkid(program: str, path: str, held: int = -1) -> tuple[str, ...]:
    """The names of what a device or file holds; none where blkid finds nothing, or does not work.

    `held`: a descriptor that `path` leads through. May block as long as the device does.
    """
    try:
        done = subprocess.run(
            [program, "-p", "-o", "export", path],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ANSWER_S,
            pass_fds=(held,) if held >= 0 else (),
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    if done.returncode == SEVERAL:
        return ("more than one format (blkid -p shows no more)",)
    return names_in(done.stdout.decode("utf-8", "replace")) if done.returncode == 0 else ()


def names_in(text: str) -> tuple[str, ...]:
    """The formats that the output of `blkid -p -o export` names."""
    facts = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    kind, table = facts.get("TYPE", ""), facts.get("PTTYPE", "")
    named = ((kind, kind), (table, f"a {table} partition table"))
    return tuple(name for what, name in named if what and what not in COMPARED_MORE)
