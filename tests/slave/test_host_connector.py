"""The host connector: which elements LUNs are on, and the kernel's counters, from real devices and made-up trees."""

import mmap
import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
import pytest

from ivypy.protocol.connector import ElementMetric, ReadingKind
from ivypy.protocol.lines import decode_line, encode_line
from ivypy.protocol.messages import ElementsFound
from ivypy.protocol.payload import Attribute, Fact
from ivypy.slave.host_connector.boundary_reader import BoundaryReader
from ivypy.slave.host_connector.connector import METRICS, HostConnector, metric_table
from ivypy.slave.host_connector.elements import device_numbers, find_elements
from ivypy.slave.host_connector.host_stats import interfaces, interrupt_counts
from tests.support.loop_devices import loop_device, mounted, need, needs_loops, partitioned
from tests.support.sysfs_tree import SysfsTree
from tests.support.waits import wait_until

BLOCK = 4096
STAT = "222 3 6966 16 1376 3157 1255912 3190 2 924 3207 21 0 75497496 0 56 1"

Values = dict[tuple[str, str], dict[str, Attribute]]


def by_element(facts: Sequence[Fact]) -> Values:
    found: Values = {}
    for element, instance, attribute, value in facts:
        found.setdefault((element, instance), {})[attribute] = value
    return found


def gathered(connector: HostConnector) -> Values:
    return by_element(connector.gather().facts)


def number(values: Values, element: str, instance: str, attribute: str) -> float:
    return float(values[element, instance][attribute])


def declared(element: str, attribute: str) -> ElementMetric:
    (metric,) = (one for one in METRICS if (one.element, one.attribute) == (element, attribute))
    return metric


def rate(metric: ElementMetric, before: int, after: int, seconds: float) -> float:
    """As the protocol defines the metric of a counter."""
    increase = (after - before) % (1 << metric.bits) if metric.bits else after - before
    return metric.scale * increase / seconds


class Tree(SysfsTree):
    """With device numbers and counters; LUNs are at paths that only this tree knows."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        (root / "sys/dev/block").mkdir(parents=True)
        self.numbers: dict[str, tuple[int, ...]] = {}

    def block(self, device: str, name: str, slaves: Sequence[Path] = (), lun: str = "", **files: str) -> Path:
        """A disk that is the LUN at path `lun`, composed of others."""
        minor = len(list((self.root / "sys/dev/block").iterdir()))
        folder = self.disk(device, name, f"8:{minor}", **{"stat": STAT, **files})
        self._number(folder, minor, lun)
        (folder / "slaves").mkdir()
        for slave in slaves:
            (folder / "slaves" / slave.name).symlink_to(slave)
        return folder

    def partition(self, disk: Path, name: str, lun: str = "") -> Path:
        minor = len(list((self.root / "sys/dev/block").iterdir()))
        self.write(disk / name, partition="1", stat=STAT)
        self._number(disk / name, minor, lun)
        return disk / name

    def _number(self, folder: Path, minor: int, lun: str) -> None:
        (self.root / f"sys/dev/block/8:{minor}").symlink_to(folder)
        if lun:
            self.numbers[lun] = (os.makedev(8, minor),)

    def connector(self, cores: Sequence[int] = (0, 1)) -> HostConnector:
        return HostConnector(cores, self.root, find_numbers=lambda luns: {lun: self.numbers[lun] for lun in luns})

    def joins(self) -> dict[str, dict[str, list[Attribute]]]:
        """The facts of `config`: by `element instance`, the values of each attribute."""
        _, facts = self.connector().config(list(self.numbers))
        found: dict[str, dict[str, list[Attribute]]] = {}
        for element, instance, attribute, value in facts:
            found.setdefault(f"{element} {instance}", {}).setdefault(attribute, []).append(value)
        return found


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


# Which elements there are.


def test_a_disk_with_two_luns_is_one_element(tree: Tree) -> None:
    disk = tree.block("pci0/ata1", "sda", lun="/dev/sda")
    tree.partition(disk, "sda1", lun="/dev/sda1")
    tree.numbers["/mnt/file"] = tree.numbers["/dev/sda1"]
    assert tree.joins() == {
        "disk sda": {"path": ["/dev/sda", "/dev/sda1", "/mnt/file"]},
        "partition sda1": {"path": ["/dev/sda1", "/mnt/file"]},
    }


def test_components_are_what_is_at_the_bottom_each_once(tree: Tree) -> None:
    """A volume on a multipath device and on a mirror of partitions; the mirror's other disk has a LUN of its own."""
    sda, sdb = (tree.block(f"pci0/host{n}", name) for n, name in enumerate(("sda", "sdb")))
    sdc, sdd = (tree.block(f"pci0/ata{n}", name) for n, name in enumerate(("sdc", "sdd")))
    halves = [tree.partition(sdc, "sdc2"), tree.partition(sdd, "sdd2")]
    mpath = tree.block("virtual", "dm-0", [sda, sdb], lun="/dev/mapper/mpatha")
    mirror = tree.block("virtual", "md127", halves)
    tree.block("virtual", "dm-1", [mpath, mirror], lun="/dev/mapper/volume")
    tree.numbers["/dev/sdd"] = (os.makedev(*map(int, (sdd / "dev").read_text().split(":"))),)
    assert tree.joins() == {
        "disk dm-0": {"path": ["/dev/mapper/mpatha"], "component": ["sda", "sdb"]},
        "disk dm-1": {"path": ["/dev/mapper/volume"], "component": ["sda", "sdb", "sdc", "sdd"]},
        "disk sdd": {"path": ["/dev/sdd"]},
    }
    connector = tree.connector()
    connector.config(list(tree.numbers))
    found = {key for key in gathered(connector) if key[0] in ("disk", "component", "partition")}
    assert found == {
        *(("disk", name) for name in ("dm-0", "dm-1", "sdd")),
        *(("component", name) for name in ("sda", "sdb", "sdc", "sdd")),
    }


def test_devices_that_are_composed_of_each_other_end(tree: Tree) -> None:
    one = tree.block("virtual", "dm-0", lun="/dev/dm-0")
    two = tree.block("virtual", "dm-1", [one])
    (one / "slaves/dm-1").symlink_to(two)
    assert tree.joins() == {"disk dm-0": {"path": ["/dev/dm-0"]}}


def test_nvme_controllers_of_one_path_and_of_several(tree: Tree) -> None:
    tree.block("pci0/nvme/nvme2", "nvme2n1", lun="/dev/nvme2n1")
    head = tree.block("virtual/nvme-subsystem/nvme-subsys0", "nvme0n1", lun="/dev/nvme0n1")
    for n in (0, 1):
        path = tree.block(f"pci{n}/nvme/nvme{n}", f"nvme0c{n}n1", hidden="1")
        (head / "device" / f"nvme{n}").symlink_to(path.parents[1])
    assert tree.joins() == {
        "disk nvme2n1": {"path": ["/dev/nvme2n1"], "nvme": ["nvme2"]},
        "disk nvme0n1": {
            "path": ["/dev/nvme0n1"],
            "component": ["nvme0c0n1", "nvme0c1n1"],
            "nvme": ["nvme0", "nvme1"],
        },
    }


@pytest.mark.parametrize("path", ["/dev/mapper/a b", "/dev/mapper/ü\u2028x", "/mnt/\udcff\n"])
def test_whatever_a_path_holds_the_answer_can_be_read(tree: Tree, path: str) -> None:
    tree.block("virtual", "dm-0", lun=path)
    found = BoundaryReader(tree.connector(), time.monotonic_ns).find(1, [path])
    message = decode_line(encode_line(found))
    assert isinstance(message, ElementsFound)
    assert [fact[:3] for fact in message.facts] == [("disk", "dm-0", "path")]


def test_a_device_whose_counters_are_off_has_no_readings_but_joins(tree: Tree) -> None:
    tree.block("pci0/ata1", "sda", lun="/dev/sda", mq__0__nr_tags="64", queue__iostats="0")
    tree.block("pci0/ata2", "sdb", lun="/dev/sdb", mq__0__nr_tags="64", queue__iostats="1")
    tree.block("virtual", "dm-0", lun="/dev/dm-0", queue__iostats="0")  # as before Linux 6.11, and it counts
    tree.block("virtual", "nvme0n1", lun="/dev/nvme0n1", queue__iostats="0")  # of several paths, before 6.5
    connector = tree.connector()
    _, facts = connector.config(list(tree.numbers))
    assert [fact.instance for fact in facts] == ["sda", "sdb", "dm-0", "nvme0n1"]
    assert [key[1] for key in gathered(connector) if key[0] == "disk"] == ["sdb", "dm-0"]


def test_a_file_on_no_block_device_has_no_element(tree: Tree) -> None:
    tree.numbers["/mnt/nfs/file"] = ()
    assert tree.joins() == {}


def test_paths_that_lead_nowhere_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert device_numbers([f"{tmp_path}/file", f"{tmp_path}/none"]).keys() == {f"{tmp_path}/file"}


# What is read of them.


@pytest.mark.parametrize(
    ("columns", "missing"),
    [
        (17, set[str]()),
        (15, {"flushes_per_s"}),  # before Linux 5.5
        (11, {"flushes_per_s", "discards_per_s", "discard_mib_per_s"}),  # before 4.18
        (0, None),  # gone
    ],
)
def test_each_column_is_its_metric(tree: Tree, columns: int, missing: "set[str] | None") -> None:
    tree.block("pci0/ata1", "sda", lun="/dev/sda", stat=" ".join(STAT.split()[:columns]))
    connector = tree.connector()
    connector.config(["/dev/sda"])
    expected = {
        "reads_per_s": 222, "writes_per_s": 1376, "read_mib_per_s": 6966, "write_mib_per_s": 1255912, "read_ms": 16,
        "write_ms": 3190, "busy_percent": 924, "queue_depth": 3207, "in_flight": 2, "discards_per_s": 21,
        "discard_mib_per_s": 75497496, "flushes_per_s": 56,
    }  # fmt: skip
    found = gathered(connector).get(("disk", "sda"))
    assert found == (None if missing is None else {k: v for k, v in expected.items() if k not in missing})


@pytest.mark.parametrize(
    ("attribute", "before", "after", "expected"),
    [
        ("reads_per_s", 1 << 32, (1 << 32) + 500, 250.0),
        ("read_mib_per_s", 0, 2 * 2048 * 7, 7.0),
        ("busy_percent", 1000, 2500, 75.0),
        ("busy_percent", (1 << 32) - 1000, 500, 75.0),
        ("queue_depth", (1 << 32) - 1000, 63_000, 32.0),
        ("interrupts_per_s", (1 << 32) - 1, 1999, 1000.0),
    ],
)
def test_what_two_seconds_are(attribute: str, before: int, after: int, expected: float) -> None:
    for element in ("disk", "component"):
        assert rate(declared(element, attribute), before, after, 2.0) == pytest.approx(expected)


def test_a_device_that_vanishes_has_no_readings_and_harms_none(tree: Tree) -> None:
    gone = tree.block("pci0/ata1", "sda", lun="/dev/sda")
    tree.block("pci0/ata2", "sdb", lun="/dev/sdb")
    connector = tree.connector()
    connector.config(["/dev/sda", "/dev/sdb"])
    assert {("disk", "sda"), ("disk", "sdb")} <= gathered(connector).keys()
    shutil.rmtree(gone)
    found = gathered(connector)
    assert ("disk", "sda") not in found and ("disk", "sdb") in found


def test_interrupts_are_those_of_a_disk_that_has_its_adapter_alone(tree: Tree) -> None:
    alone = tree.block("pci0/virtio1", "vda", lun="/dev/vda")
    tree.block("pci1/host0/target0", "sda", lun="/dev/sda")
    tree.block("pci1/host0/target1", "sdb")
    for adapter, numbers in ((alone.parents[2], (4, 6)), (tree.root / "sys/devices/pci1", (5,))):
        tree.write(adapter / "msi_irqs", **dict.fromkeys(map(str, numbers), "msi"))
    tree.write(tree.root / "proc", stat="cpu0 1 0 0 9\nintr 4294967399 0 0 0 0 4294967290 77 22 0")
    connector = tree.connector(cores=[0])
    connector.config(["/dev/vda", "/dev/sda"])
    found = gathered(connector)
    assert found["disk", "vda"]["interrupts_per_s"] == (4294967290 + 22) % (1 << 32)
    assert "interrupts_per_s" not in found["disk", "sda"]


def test_interrupts_beyond_what_is_shown_are_unknown() -> None:
    assert list(interrupt_counts("intr 6 1 2 3", {"sda": (2,), "sdb": (3,), "sdc": ()})) == [("sda", 3)]
    assert list(interrupt_counts("", {"sda": (2,)})) == []


def test_a_controller_that_hangs_delays_no_gather(tree: Tree) -> None:
    tree.block("pci0/nvme/nvme0", "nvme0n1", lun="/dev/nvme0n1")
    os.mkfifo(tree.root / "dev/nvme0")  # whoever opens it waits for a writer
    connector = tree.connector()
    connector.config(["/dev/nvme0n1"])
    for _ in range(3):
        found = gathered(connector)
        assert ("disk", "nvme0n1") in found and ("nvme", "nvme0") not in found
    (tree.root / "dev/nvme0").write_bytes(b"")  # a pipe takes no NVMe command


def test_the_kernels_temperature_of_a_controller_is_reported(tree: Tree) -> None:
    disk = tree.block("pci0/nvme/nvme0", "nvme0n1", lun="/dev/nvme0n1")
    tree.write(disk.parents[1], hwmon2__temp1_input="38850")
    connector = tree.connector()
    connector.config(["/dev/nvme0n1"])
    wait_until(lambda: ("nvme", "nvme0") in gathered(connector), "the controller was read")
    assert gathered(connector)["nvme", "nvme0"] == {"temperature_c": 39}


# The host.


def host_files(tree: Tree, **files: str) -> None:
    tree.write(tree.root / "proc", **files)


def host_values(tree: Tree, element: str) -> Mapping[str, Attribute]:
    connector = tree.connector()
    connector.config([])
    return gathered(connector).get((element, "host"), {})


def test_cores_are_those_that_the_slave_may_use(tree: Tree) -> None:
    hundred = "{} 100 20 30 1000 50 5 5 40 0 0"  # user nice system idle iowait irq softirq steal: 200 busy
    stat = "\n".join([hundred.format("cpu0"), "cpu1 0 0 0 1250 0 0 0 0 0 0", hundred.format("cpu2")])
    host_files(tree, stat=stat)
    connector = tree.connector(cores=[0, 2])
    assert gathered(connector)["cpu", "host"] == {"busy_percent": 200 / os.sysconf("SC_CLK_TCK")}
    assert host_values(tree, "cpu") == {"busy_percent": 100 / os.sysconf("SC_CLK_TCK")}
    assert rate(declared("cpu", "busy_percent"), 0, 1, 2.0) == 50.0


def test_with_a_core_offline_there_is_no_figure(tree: Tree) -> None:
    host_files(tree, stat="cpu0 1 0 0 9")
    assert host_values(tree, "cpu") == {}


@pytest.mark.parametrize(
    ("files", "mhz"),
    [
        ({"sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "3000000"}, 3000.0),
        (
            {
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "3000000",
                "sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq": "2000000",
                "sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq": "800000",
            },
            2500.0,
        ),
        ({"proc/cpuinfo": "processor\t: 1\ncpu MHz\t\t: 2596.120\n\nprocessor\t: 2\ncpu MHz\t\t: 800.0"}, 2596.12),
    ],
)
def test_frequency_is_the_mean_of_those_cores(tree: Tree, files: dict[str, str], mhz: float) -> None:
    for place, text in files.items():
        (tree.root / place).parent.mkdir(parents=True, exist_ok=True)
        (tree.root / place).write_text(text)
    connector = tree.connector()
    wait_until(lambda: ("cpu", "host") in gathered(connector), "the frequency was read")
    assert gathered(connector)["cpu", "host"] == {"mhz": pytest.approx(mhz)}


def test_memory_is_in_mib(tree: Tree) -> None:
    host_files(tree, meminfo="MemTotal: 9 kB\nMemAvailable:   23318784 kB\nDirty:  512 kB\nWritebackTmp: 7 kB")
    assert host_values(tree, "memory") == {"available_mib": 22772.25, "dirty_mib": 0.5}


def test_pressure_is_a_share_of_time(tree: Tree) -> None:
    tree.write(
        tree.root / "proc/pressure",
        io="some avg10=0.81 avg60=1.11 avg300=0.83 total=9572826\nfull avg10=0.12 avg60=0.41 avg300=0.20 total=32845",
        cpu="some avg10=12.41 avg60=15.91 avg300=38.97 total=375818244",  # before Linux 5.13
        memory="",
    )
    expected = {"io_some_percent": 9572826, "io_full_percent": 32845, "cpu_some_percent": 375818244}
    assert host_values(tree, "pressure") == expected
    assert rate(declared("pressure", "io_some_percent"), 0, 500_000, 2.0) == pytest.approx(25.0)


DEV = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier
    lo: 333949248   26066    0    0    0     0    0         0 333949248   26066    0    0    0     0       0    0
  eth0:2149392832   49413    1    2    0     0    0         0  2483721   26117    4    8    0     0       0    0
 bond0:         5       6    7    8    9    10   11        12       13      14   15   16   17    18      19   20
"""


def interface(tree: Tree, name: str, flags: str = "0x1003", operstate: str = "up", device: bool = True) -> Path:
    folder = tree.root / "sys/class/net" / name
    tree.write(folder, flags=flags, operstate=operstate)
    if device:
        (folder / "device").mkdir()
    return folder


def test_packets_are_counted_once_at_the_hardware(tree: Tree) -> None:
    interface(tree, "eth0")
    interface(tree, "eth1", operstate="down")
    interface(tree, "eth2", flags="0x1002")
    interface(tree, "bond0", device=False)
    host_files(tree, **{"net__dev": DEV.rstrip("\n")})
    connector = tree.connector()
    connector.config([])
    found = {key: values for key, values in gathered(connector).items() if key[0] == "nic"}
    assert found == {
        ("nic", "eth0"): {"rx_mib_per_s": 2149392832, "tx_mib_per_s": 2483721, "errors_per_s": 5, "drops_per_s": 10}
    }
    assert rate(declared("nic", "rx_mib_per_s"), 0, 3 << 21, 2.0) == pytest.approx(3.0)


def test_in_a_container_it_is_whatever_is_not_built_upon_others(tree: Tree) -> None:
    interface(tree, "veth\u2028", operstate="unknown", device=False)
    interface(tree, "lo", operstate="unknown", device=False)
    (interface(tree, "vlan5", device=False) / "lower_veth").mkdir()
    assert interfaces(tree.root) == {"veth\u2028"}
    host_files(tree, **{"net__dev": DEV.replace("eth0", "veth\u2028").rstrip("\n")})
    connector = tree.connector()
    connector.config([])
    assert number(gathered(connector), "nic", "veth\u2028", "drops_per_s") == 10


def test_a_host_that_shows_nothing_reports_nothing(tree: Tree) -> None:
    connector = tree.connector()
    assert connector.config([]) == (METRICS, ())
    assert connector.gather().facts == ()


# Real ones.


def test_every_fact_is_of_a_declared_metric_and_every_stamp_within_the_gather() -> None:
    connector = HostConnector()
    metrics, _ = connector.config(["/"])
    readings = connector.gather()
    names = {(metric.element, metric.attribute) for metric in metrics}
    assert len(names) == len(metrics) == len(METRICS)
    assert {(fact.element, fact.attribute) for fact in readings.facts} <= names
    assert {element for element, _ in names} == readings.stamps.keys()
    stamps = list(readings.stamps.values())
    assert [readings.start_ns, *stamps, readings.end_ns] == sorted([readings.start_ns, *stamps, readings.end_ns])


def drive(device: str, writes: int, reads: int = 0, flushes: int = 0) -> None:
    """I/Os of one block each, past the page cache."""
    fd = os.open(device, os.O_RDWR | os.O_DIRECT)
    with mmap.mmap(-1, BLOCK) as page:
        for place in range(writes):
            os.pwrite(fd, page, place * BLOCK)
        for place in range(reads):
            os.preadv(fd, [page], place * BLOCK)
        for _ in range(flushes):
            os.fsync(fd)
    os.close(fd)


@needs_loops
def test_the_counters_of_a_disk_are_what_was_done_on_it(shm: Path) -> None:
    with loop_device(shm) as device:
        connector = HostConnector()
        connector.config([device])
        key = "disk", Path(device).name
        before = connector.gather()
        drive(device, writes=300, reads=500)
        after = connector.gather()
        seconds = (after.end_ns - before.start_ns) / 1e9
        values = [by_element(readings.facts)[key] for readings in (before, after)]
        increase = {name: int(values[1][name]) - int(values[0][name]) for name in values[0]}
        assert increase["writes_per_s"] == 300
        assert increase["write_mib_per_s"] * declared("disk", "write_mib_per_s").scale == 300 * BLOCK / (1 << 20)
        assert increase["reads_per_s"] >= 500  # udev may read it, too
        assert increase["read_mib_per_s"] * declared("disk", "read_mib_per_s").scale >= 500 * BLOCK / (1 << 20)
        # One I/O at a time: busy no longer than it took, on a clock of whole ticks, and in no I/O longer than that.
        ticks_s = 2 / os.sysconf("SC_CLK_TCK")
        assert increase["busy_percent"] * declared("disk", "busy_percent").scale <= 100 * (seconds + ticks_s)
        assert increase["queue_depth"] * declared("disk", "queue_depth").scale <= 2 * (seconds + ticks_s)
        assert increase["read_ms"] + increase["write_ms"] <= 2000 * (seconds + ticks_s)
        drive(device, writes=0, flushes=7)
        flushed = gathered(connector)[key]
        assert int(flushed["flushes_per_s"]) - int(values[1]["flushes_per_s"]) >= 7
        assert int(flushed["writes_per_s"]) - int(values[1]["writes_per_s"]) >= 7, (
            "the kernel counts them as writes, too"
        )


@needs_loops
def test_a_partition_and_a_file_are_on_their_disk(shm: Path) -> None:
    need("sfdisk", "partx", "mkfs.ext4")
    with loop_device(shm, 64 << 20) as device, partitioned(device, "32MiB") as (part,):
        subprocess.run(["mkfs.ext4", "-q", part], check=True)
        with mounted(part, shm / "m") as point:
            (point / "file").write_bytes(b"x")
            disk, name = Path(device).name, Path(part).name
            found = find_elements(device_numbers([part, str(point / "file")]))
            assert [tuple(fact) for fact in found.facts] == [
                (element, instance, "path", path)
                for path in (part, str(point / "file"))
                for element, instance in (("disk", disk), ("partition", name))
            ]
            connector = HostConnector()
            connector.config([part])
            assert {("disk", disk), ("partition", name)} <= gathered(connector).keys()
        subprocess.run(["partx", "-d", device], check=True)
        found_now = gathered(connector)
        assert ("disk", disk) in found_now and ("partition", name) not in found_now
        subprocess.run(["partx", "-a", device], check=False, capture_output=True)


@needs_loops
def test_a_file_on_a_btrfs_is_on_all_its_devices(shm: Path) -> None:
    need("mkfs.btrfs")
    with loop_device(shm, 128 << 20) as one, loop_device(shm, 128 << 20) as two, loop_device(shm) as _:
        subprocess.run(["mkfs.btrfs", "-q", "-f", "-m", "raid1", one, two], check=True)
        with mounted(one, shm / "m", "-t", "btrfs", "-o", f"device={two}") as point:
            (point / "file").write_bytes(b"x")
            path = str(point / "file")
            found = find_elements(device_numbers([path]))
            assert {tuple(fact) for fact in found.facts} == {
                ("disk", Path(device).name, "path", path) for device in (one, two)
            }


@needs_loops
def test_the_members_of_a_real_volume_are_its_components(shm: Path) -> None:
    need("dmsetup", "blockdev")
    with loop_device(shm) as one, loop_device(shm) as two:
        sectors = (16 << 20) // 512
        table = f"0 {sectors} linear {one} 0\n{sectors} {sectors} linear {two} 0\n"
        name = f"ivypy-far-{os.getpid()}"
        made = subprocess.run(["dmsetup", "create", name], input=table, text=True, capture_output=True, check=False)
        if made.returncode:
            pytest.skip(f"no device-mapper here: {made.stderr.splitlines()[0]}")
        try:
            connector = HostConnector()
            _, facts = connector.config([f"/dev/mapper/{name}"])
            before = gathered(connector)
            drive(f"/dev/mapper/{name}", writes=100)
            after = gathered(connector)
        finally:
            subprocess.run(["dmsetup", "remove", name], check=True)
        components = [Path(one).name, Path(two).name]
        assert [fact.value for fact in facts if fact.attribute == "component"] == sorted(components)
        (disk,) = {fact.instance for fact in facts}

        def written(element: str, instance: str) -> float:
            values = (number(found, element, instance, "writes_per_s") for found in (before, after))
            return -next(values) + next(values)

        assert written("disk", disk) == 100
        assert [written("component", one) for one in components] == [100, 0]


def test_interrupts_are_those_of_proc_interrupts() -> None:
    disks = {path.name: path for path in Path("/sys/block").iterdir()}
    numbers = {name: os.makedev(*map(int, (path / "dev").read_text().split(":"))) for name, path in disks.items()}
    own = find_elements({f"/dev/{name}": (number,) for name, number in numbers.items()}).interrupts
    if not own:
        pytest.skip("no disk of this machine has an adapter with interrupts alone")
    before = by_line(own)
    counts = dict(interrupt_counts(Path("/proc/stat").read_text(), own))
    after = by_line(own)
    assert all(before[name] <= counts[name] <= after[name] for name in own)


def by_line(own: Mapping[str, Sequence[int]]) -> dict[str, int]:
    rows = (line.split() for line in Path("/proc/interrupts").read_text().splitlines()[1:])
    cores = os.cpu_count() or 1
    sums = {row[0].rstrip(":"): sum(map(int, row[1 : cores + 1])) for row in rows if row[0].rstrip(":").isdigit()}
    return {name: sum(sums[str(number)] for number in numbers) for name, numbers in own.items()}


def test_network_counters_lie_between_two_readings_of_another_program() -> None:
    connector = HostConnector()
    connector.config([])
    before = psutil.net_io_counters(pernic=True, nowrap=False)
    found = {key[1]: values for key, values in gathered(connector).items() if key[0] == "nic"}
    after = psutil.net_io_counters(pernic=True, nowrap=False)
    assert "lo" not in found
    for name, values in found.items():
        assert before[name].bytes_recv <= int(values["rx_mib_per_s"]) <= after[name].bytes_recv
        assert before[name].bytes_sent <= int(values["tx_mib_per_s"]) <= after[name].bytes_sent


def test_the_docs_table_has_every_metric() -> None:
    found: set[tuple[str, str]] = set()
    elements: list[str] = []
    for line in metric_table().splitlines():
        names = line.split("`")[1::2]
        if line.startswith("- "):
            found |= {(element, names[0]) for element in elements}
        else:
            elements = names or elements
    assert found == {(m.element, m.attribute) for m in METRICS}


def test_metrics_are_complete() -> None:
    for one in METRICS:
        assert one.meaning and one.unit is not None
        assert not (one.per or one.bits) or one.kind is ReadingKind.COUNTER
