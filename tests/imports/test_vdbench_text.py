"""A parameter file of vdbench, as text: which parameters its lines have, and what may be abbreviated."""

from collections.abc import Mapping

import pytest

from ivypy.master.imports.description import Dropped, ImportContext
from ivypy.master.imports.vdbench_text import number, parameters
from ivypy.master.imports.vdbench_words import TABLES, keyword_of


def read(
    text: str, environment: Mapping[str, str] | None = None, files: Mapping[str, str] | None = None
) -> tuple[list[tuple[str, tuple[str, ...]]], list[str], list[Dropped]]:
    """Keywords and values, faults, and what is dropped."""

    def included(name: str) -> str:
        if name not in (files or {}):
            raise FileNotFoundError(2, "No such file or directory")
        return (files or {})[name]

    faults: list[str] = []
    dropped: list[Dropped] = []
    around = ImportContext("/data", environment or {}, included, lambda path: False)
    found = parameters(text, "x.parm", around, faults, dropped)
    return [(one.keyword, one.values) for one in found], faults, dropped


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("sd=sd1,lun=/dev/sdb", [("sd", ("sd1",)), ("lun", ("/dev/sdb",))]),
        ("  SD=sd1,Lun=/Dev/x\r", [("sd", ("sd1",)), ("lun", ("/Dev/x",))]),
        ("wd=wd1,sd=(sd1,sd2)", [("wd", ("wd1",)), ("sd", ("sd1", "sd2"))]),
        ("sd=(sd1-sd4)", [("sd", ("sd1", "sd2", "sd3", "sd4"))]),
        ("sd=(a1,sd8-sd10,b)", [("sd", ("a1", "sd8", "sd9", "sd10", "b"))]),
        ('sd=("a-b",c)', [("sd", ("a-b", "c"))]),
        ("host=(lab-1,lab-2)", [("host", ("lab-1", "lab-2"))]),
        ("lun=/dev/disk/by-id/wwn-0x5", [("lun", ("/dev/disk/by-id/wwn-0x5",))]),
        ('lun="/a b,c=d",size=1g', [("lun", ("/a b,c=d",)), ("size", ("1g",))]),
        ("forthreads=(1-64,d)", [("forthreads", ("1", "2", "4", "8", "16", "32", "64"))]),
        ("forthreads=(8-1,d)", [("forthreads", ("8", "4", "2", "1"))]),
        ("curve=(10-100,30)", [("curve", ("10", "40", "70", "100"))]),
        ("curve=(5,10-30,10,99)", [("curve", ("5", "10", "20", "30", "99"))]),
        ("forxfersize=(512-4k,d)", [("forxfersize", ("512", "1024", "2048", "4096"))]),
        ("xfersize=(4k,30,8k,70)", [("xfersize", ("4k", "30", "8k", "70"))]),
        ("dedup=(ratio=2,sets=(1,2))", [("dedup", ("ratio=2", "sets=", "1", "2"))]),
        ("sd=a\neof\nsd=b", [("sd", ("a",))]),
        ("* c\n# c\n/ c\n/* c */\n\nsd=a  comment", [("sd", ("a",))]),
        ("sd=a,\n* between\nlun=/dev/b,\n", [("sd", ("a",)), ("lun", ("/dev/b",))]),
        ("wd=(a,\nb)", [("wd", ("a", "b"))]),
        ("lun=/dev/$disk,size=!size", [("lun", ("/dev/sdq",)), ("size", ("3g",))]),
        ("include=luns.parm\nwd=w", [("sd", ("in",)), ("wd", ("w",))]),
        ("sd=s$host,lun=/dev/x#host", [("sd", ("s$host",)), ("lun", ("/dev/x#host",))]),
    ],
)
def test_a_line_becomes_parameters(line: str, found: list[tuple[str, tuple[str, ...]]]) -> None:
    assert read(line, {"disk": "sdq", "size": "3g", "host": "never"}, {"luns.parm": "sd=in\n"}) == (found, [], [])


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("sd=(a,b", "x.parm:1: sd=(a,b: a parenthesis without its counterpart"),
        ("sd=a),b=c", "a parenthesis without"),
        ("sd", "x.parm:1: sd: not keyword=value"),
        ("x=1", "x.parm:1: x=1: not keyword=value; a keyword has two letters"),
        ("lun=", "lun=: not keyword=value"),
        ("wd=()", "x.parm:1: wd=(): an empty list"),
        ("curve=(10-100)", "a range of numbers needs an increment: (10-100,10), or (1-64,d)"),
        ("curve=(10-100,x)", "'x' is not a number"),
        ("curve=(0-100,d)", "the range never ends"),
        ("curve=(10-100,0)", "the range never ends"),
        ("curve=(-)", "a range needs two ends"),
        ("iorate=(1-20000,1)", "20,000 values are more than 10,000"),
        ("sd=(a-b)", "a-b is no range of names, like sd1-sd4; in double quotes a dash is part of a name"),
        ("sd=(sd4-sd1)", "sd4-sd1 does not ascend"),
        ("lun=/dev/$nothing", "x.parm:1: lun=/dev/$nothing: the environment has no nothing; run nothing=VALUE ivypy"),
        ("include=gone", "x.parm:1: include=gone: No such file"),
        ("include=self", "self:1: include=self: vdbench includes no files in included ones"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(line: str, fault: str) -> None:
    _, faults, _ = read(line, files={"self": "include=self"})
    assert any(fault in one for one in faults), faults


def test_a_parameter_after_a_blank_is_a_comment_and_named() -> None:
    found, faults, dropped = read("wd=wd1, xfersize=4k\n,rdpct=0 and so on")
    assert (found, faults) == ([("wd", ("wd1",)), ("rdpct", ("0",))], [])
    assert [(one.where, one.what, one.matters) for one in dropped] == [("x.parm:1", "xfersize=4k", False)]


@pytest.mark.parametrize(
    ("text", "keyword", "value"),
    [
        ("4k", "", 4096), ("4KB", "", 4096), ("1.5g", "", 1.5 * 2**30), ("1t", "", 2**40), ("12", "", 12),
        ("5m", "", 5 * 2**20),
        ("5m", "elapsed", 300), ("2h", "el", 7200), ("5m", "interval", 300), ("1m", "pause", 60), ("1m", "warmup", 60),
    ],
)  # fmt: skip
def test_numbers_are_read_as_vdbench_reads_them(text: str, keyword: str, value: float) -> None:
    assert number(text, keyword) == value


@pytest.mark.parametrize(
    ("kind", "typed", "keyword"),
    [
        ("wd", "xf", "xfersize"), ("wd", "se", "seekpct"), ("wd", "st", "stride"), ("wd", "str", "stride"),
        ("wd", "stre", "streams"), ("wd", "ho", "hotband"), ("wd", "host", "host"), ("wd", "re", "readpct"),
        ("wd", "rd", "rdpct"), ("wd", "sk", "skew"), ("wd", "io", "iorate"), ("wd", "x", None),
        ("sd", "th", "threads"), ("sd", "si", "size"), ("sd", "op", "openflags"), ("sd", "ho", "host"),
        ("rd", "el", "elapsed"), ("rd", "int", "interval"), ("rd", "in", "interval"), ("rd", "th", "threads"),
        ("rd", "forth", "threads"), ("rd", "forx", "xfersize"), ("rd", "forrd", "rdpct"), ("rd", "st", "stopcurve"),
        ("rd", "wa", "warmup"), ("rd", "di", "distribution"), ("rd", "elasped", None),
        ("hd", "sys", "system"), ("hd", "cl", "clients"), ("general", "val", "validate"), ("general", "rep", "report"),
    ],
)  # fmt: skip
def test_an_abbreviation_means_the_first_keyword_that_begins_with_it(
    kind: str, typed: str, keyword: str | None
) -> None:
    assert keyword_of(typed, kind) == keyword


def test_every_keyword_is_itself() -> None:
    for kind, table in TABLES.items():
        for name in table:
            assert keyword_of(name, kind) in (name, name.removeprefix("for"))


def test_a_very_long_name_is_read_in_time_that_follows_from_its_length() -> None:
    name = "sd" + "1" * 200_000 + "x"
    _, faults, _ = read(f"wd=wd1,sd=({name}-{name})")
    assert len(faults) == 1 and "is no range of names" in faults[0]
