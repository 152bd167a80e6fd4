"""`bssplit` is read as fio reads it: the sizes of reads and of writes, and how often each is drawn."""

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from ivypy.master.imports.fio_text import WeightedSizes, of_each, size_of, split_of_sizes

K = 1024
BS = (2 * K, 100)  # of fio's jobs below
ALIKE: dict[str, WeightedSizes] = {
    "4k": ((4 * K, 100),),
    "4k/50": ((4 * K, 100),),
    "4k/50:64k/50": ((4 * K, 50), (64 * K, 50)),
    "4k/50:64k/": ((4 * K, 50), (64 * K, 50)),
    "4k/50:64k": ((4 * K, 50), (64 * K, 50)),
    "4k/0:8k": ((4 * K, 50), (8 * K, 50)),  # 0 is no share
    "4k/33.9:8k/66%": ((4 * K, 33), (8 * K, 67)),
    "4k /50:8k / 50": ((4 * K, 50), (8 * K, 50)),
    "4k:8k:16k": ((4 * K, 33), (8 * K, 33), (16 * K, 34)),
    "4k/33:8k:16k:32k": ((8 * K, 22), (16 * K, 22), (32 * K, 22), (4 * K, 34)),
    "4k/99:8k:16k:32k": ((4 * K, 100),),
    "4k/60:8k/10": ((8 * K, 10), (4 * K, 90)),  # the largest share has the rest
    "4k/30:8k/30": ((4 * K, 30), (8 * K, 70)),
    "4k/60:8k/60": ((4 * K, 60), (8 * K, 40)),  # and none is above 100 %
    "4k/20:8k/30:16k/70": ((4 * K, 20), (8 * K, 30), (16 * K, 50)),
    "4k/60:8k/40:16k": ((8 * K, 40), (4 * K, 60)),
    "4k/10:4k/20:8k/70": ((4 * K, 10), (4 * K, 20), (8 * K, 70)),
    "4k/50::8k/50": ((4 * K, 100),),  # an empty part is the end
    ":8k/50": (),
    "4k/400": ((4 * K, 100),),
}
APART: dict[str, tuple[WeightedSizes, WeightedSizes, WeightedSizes]] = {
    ",16k/100": ((), ((16 * K, 100),), ((16 * K, 100),)),
    "4k/50:64k/50,16k/100": (((4 * K, 50), (64 * K, 50)), ((16 * K, 100),), ((16 * K, 100),)),
    "4k/100,": (((4 * K, 100),), (), ()),
    ",": ((), (), ()),
    "4k/100,,16k/100": (((4 * K, 100),), (), ((16 * K, 100),)),
    "4k,8k,16k": (((4 * K, 100),), ((8 * K, 100),), ((16 * K, 100),)),
}
FORMS = {**{text: (sizes, sizes, sizes) for text, sizes in ALIKE.items()}, **APART}


@pytest.mark.parametrize("text", FORMS)
def test_sizes_have_the_shares_of_fio(text: str) -> None:
    assert tuple(split_of_sizes(part, size_of) for part in of_each(text)) == FORMS[text]


@pytest.mark.parametrize("text", ["4k/60:8k/41:16k:32k", "4k/60:8k/60:16k", "x", "4k/-5:8k", "4k-8k/50", "0/50:4k"])
def test_what_fio_refuses_or_misreads_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"adds up to|is not a size"):
        split_of_sizes(text, size_of)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fio") is None, reason="this machine lacks fio")
def test_fio_draws_the_sizes_so(tmp_path: Path) -> None:
    """Of 2,000 I/Os in each direction, five standard deviations of a share are 5.6 %."""
    common = "[global]\nioengine=null\nfilename=none\nsize=1g\nrw=randrw\nbs=2k\nnumber_ios=4000\nnorandommap\n"
    jobs = "".join(f"[j{n}]\nbssplit={text}\nwrite_lat_log=j{n}\n" for n, text in enumerate(FORMS))
    (tmp_path / "jobs.fio").write_text(f"{common}per_job_logs=0\n{jobs}")
    subprocess.run(["fio", "--output=out", "jobs.fio"], cwd=tmp_path, check=True, timeout=120)
    for n, (text, of_directions) in enumerate(FORMS.items()):
        lines = [line.split(", ") for line in (tmp_path / f"j{n}_lat.log").read_text().splitlines()]
        for direction, sizes in zip("01", of_directions[:2], strict=True):
            drawn = Counter(int(line[3]) for line in lines if line[2] == direction)
            wanted: Counter[int] = Counter()
            for size, share in sizes or [BS]:
                wanted[size] += share
            assert drawn.keys() <= wanted.keys(), text
            for size, share in wanted.items():
                assert 100 * drawn[size] / drawn.total() == pytest.approx(share, abs=6), f"{text}: {size}"
