"""What a run drove, in words, from the cells of its files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.summary.driven import load_parts, luns_in_words, shared_parts

CELLS = {
    "iosequencer": "random_steady", "blocksize": "4096", "fraction_read": "1", "maxtags": "8", "range": "all",
    "think_time": "0", "drop_after": "never", "iops_setting": "max", "random_map": "false", "until": "never",
}  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({}, "4KiB random reads, depth 8, at max"),
        ({"fraction_read": "0", "iosequencer": "sequential"}, "4KiB sequential writes, depth 8, at max"),
        ({"fraction_read": "0.7", "blocksize": "12800"}, "12800 random, 70% reads, depth 8, at max"),
        ({"iosequencer": "random_independent", "iops_setting": "2100"}, "4KiB random reads, depth 8, at 2.10 k IOPS"),
        (
            {"iops_setting": "2100", "iops": "profile"},
            "4KiB random reads, depth 8, at a rate that changes, 2.10 k IOPS in the mean",
        ),
        ({"iosequencer": "random_steady(1/2) random_independent(1/2)"}, "4KiB random reads, depth 8, at max"),
        ({"iosequencer": "random_steady(1/2) sequential(1/2)"}, "4KiB random and sequential, reads, depth 8, at max"),
        ({"blocksize": "4096(2/3) 8192(1/3)"}, "4KiB and 8KiB random reads, depth 8, at max"),
        ({"fraction_read": "1(2/3) 0(1/3)"}, "4KiB random, reads and writes, depth 8, at max"),
        ({"fraction_read": "1(2/3) 0.5(1/3)"}, "4KiB random, several mixes of reads and writes, depth 8, at max"),
        ({"maxtags": "1(1/9) 2(1/9) 3(1/9) 4(1/9) and 5 other values"}, "4KiB random reads, depth 1 and 2 and 3 and 4, "
         "at max"),
        ({"range": "all"}, "4KiB random reads, depth 8, at max"),
        ({"range": "0-4096"}, "4KiB random reads, depth 8, on 0 to 4.00 KiB, at max"),
        ({"range": "all(1/2) 134217728-268435456(1/2)"},
         "4KiB random reads, depth 8, on the whole LUN and 128 MiB to 256 MiB, at max"),
        ({"think_time": "0.001"}, "4KiB random reads, depth 8, think time 1ms, at max"),
        ({"think_time": "0(1/2) 0.001(1/2)"}, "4KiB random reads, depth 8, think time 0 and 1ms, at max"),
        ({"until": "written=137438953472", "fraction_read": "0"},
         "4KiB random writes, depth 8, until 128 GiB written on each LUN, at max"),
        ({"until": "bytes=4096"}, "4KiB random reads, depth 8, until 4.00 KiB on each LUN, at max"),
        ({"until": "ios=1000000", "random_map": "true"},
         "4KiB random reads, depth 8, each block once a pass, until 1.00 M I/Os, at max"),
        ({"until": "never(1/2) read=8192(1/2)"},
         "4KiB random reads, depth 8, until never and 8.00 KiB read on each LUN, at max"),
        ({"direct": "false", "drop_cache": "false", "flush": "fdatasync=1", "sync": "dsync", "end_fsync": "true"},
         "4KiB random reads, depth 8, through the page cache, which is kept, each write durable (dsync), "
         "fdatasync after each write, fsync at the end, at max"),
        ({"direct": "false(1/2) true(1/2)", "flush": "never(2/3) fsync=32(1/3)"},
         "4KiB random reads, depth 8, some through the page cache, some fsync after 32 writes, at max"),
        ({"until": "time=65000000000"}, "4KiB random reads, depth 8, until 1m5s have passed, at max"),
        ({"zipf": "1.1", "scattered": "true"}, "4KiB random reads, depth 8, zipf 1.1, at max"),
        ({"pareto": "0.2", "working_set": "1048576", "scattered": "false"},
         "4KiB random reads, depth 8, pareto 20%, working set 1.00 MiB, not scattered, at max"),
        ({"zipf": "0", "scattered": "false", "skew": "3(1/2) 1(1/2)"},
         "4KiB random reads, depth 8, skew 3 and 1, at max"),
        ({"normal": "0.1", "start": "0"}, "4KiB random reads, depth 8, normal 10%, at max"),
        ({"hot_zones": "0-4096=0.9;4096-8192=0.1/0.05"},
         "4KiB random reads, depth 8, 90% of I/Os on 0 to 4.00 KiB, 10% and 5% on 4.00 KiB to 8.00 KiB, at max"),
        ({"drop_after": "2"}, "4KiB random reads, depth 8, dropped after 2s, at max"),
        ({"iops_setting": ""}, "4KiB random reads, depth 8"),
        (dict.fromkeys(CELLS, ""), ""),
    ],
)  # fmt: skip
def test_a_load_is_said_as_people_say_it(cells: dict[str, str], words: str) -> None:
    assert ", ".join(load_parts({**CELLS, **cells}).values()) == words


PARTS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("xy"))


@given(st.lists(PARTS, max_size=4))
def test_what_is_alike_is_in_every_load_and_what_is_in_every_load_is_alike(loads: list[dict[str, str]]) -> None:
    assert shared_parts(loads).items() == (set.intersection(*({*one.items()} for one in loads)) if loads else set())


def lun(host: str, path: str, size: int, **more: str) -> dict[str, str]:
    return {"host": host, "path": path, "kind": "block", "size": str(size), **more}


GIB = 2**30


@pytest.mark.parametrize(
    ("luns", "words"),
    [
        ([lun("a", "/dev/x", GIB)], "/dev/x (1.00 GiB) on a"),
        ([lun("a", "/dev/x", GIB, vendor="V", model="M 1")], "/dev/x (V M 1, 1.00 GiB) on a"),
        ([lun("a", "/dev/x", GIB), lun("b", "/dev/x", GIB)], "2 block devices of 1.00 GiB on a, b"),
        ([lun("a", "/x", GIB, kind="file"), lun("a", "/y", 2 * GIB)], "2 LUNs of 1.00 GiB to 2.00 GiB on a"),
        ([lun("a", "/x", GIB, model="M"), lun("a", "/y", GIB, model="N")], "2 block devices of 1.00 GiB on a"),
        ([lun("a", "/x", GIB, model="M"), lun("a", "/y", GIB, model="M")], "2 block devices of 1.00 GiB (M) on a"),
        ([lun(name, "/x", GIB) for name in "abcd"], "4 block devices of 1.00 GiB on 4 hosts"),
        ([{**lun("a", "/x", 0), "size": ""}], "/x on a"),
        ([], ""),
    ],
)  # fmt: skip
def test_luns_are_those_that_have_workload_instances(luns: list[dict[str, str]], words: str) -> None:
    instances = [{"host": one["host"], "lun": one["path"]} for one in luns]
    assert luns_in_words([*luns, lun("z", "/idle", 5)], instances) == words
