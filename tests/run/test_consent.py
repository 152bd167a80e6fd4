"""Nothing is overwritten that the user did not agree to, list by list."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ivypy.master.errors import HostsError, PlanError, RefusedError
from ivypy.master.hosts.host_spec import HostSpec
from ivypy.master.live.reports import Nobody
from ivypy.master.plan.load import read
from ivypy.master.run.session.run import Options, Run
from ivypy.master.run.session.signals import Interrupts
from ivypy.master.run.setup.consent import Target, check, overwritten, token
from ivypy.protocol.messages import CreateFiles, CreateWorkloads, InspectLuns, ListLuns, wire_name
from ivypy.protocol.payload import Identity, Lun, Notice, NoticeKind
from ivypy.slave.luns.no_answer import no_answer_text
from tests.support.simulated.loop import simulate
from tests.support.simulated.slave import MemoryPipe, SimulatedSlave, known, lun_of, steady

SILENT = no_answer_text(10, "/dev/sda", ())


def target(
    path: str,
    host: str = "h1",
    *,
    created: bool = False,
    size: int = 1 << 30,
    serial: str = "",
    machine: str = "m1",
    refusals: tuple[str, ...] = (),
) -> Target:
    identity = Identity(machine, size, (("serial", serial),) if serial else ())
    return Target(host, Lun(path, "block", size, 512, {}, refusals, (), identity=identity), created)


A, B, OURS = target("/dev/sda"), target("/dev/sdb"), target("/tmp/file", created=True)


def test_a_file_of_the_plan_needs_no_consent() -> None:
    check([OURS], destroy=False, given=None, plan="p.yaml")
    assert token([OURS]) == "" and overwritten([OURS, A]) == [A]


def test_the_plan_and_the_token_must_both_agree() -> None:
    good = token([A, B])
    check([A, B], True, good, "p.yaml")
    check([B, OURS, A], True, good, "p.yaml")
    for destroy, given, says in [
        (False, None, "has no `destroy: true`"),
        (False, good, "has no `destroy: true`"),
        (True, None, "no token was given"),
        (True, "0123456789ab", "is not the token"),
        (True, "", "is not the token"),
    ]:
        with pytest.raises(RefusedError, match=says):
            check([A, B], destroy, given, "p.yaml")


@pytest.mark.parametrize(
    "other",
    [
        [A],
        [A, B, target("/dev/sdc")],
        [A, target("/dev/sdb", "h2")],
        [A, target("/dev/sdb", size=2 << 30)],
        [A, target("/dev/sdb", serial="X1")],
        [A, target("/dev/sdb", machine="m2")],
    ],
)
def test_a_token_is_of_exactly_one_list(other: list[Target]) -> None:
    assert token(other) != token([A, B])
    with pytest.raises(RefusedError, match="is not the token"):
        check(other, True, token([A, B]), "p.yaml")


def test_the_token_does_not_depend_on_the_order() -> None:
    three = [A, B, target("/dev/sdc", "h2")]
    assert len({token(order) for order in itertools.permutations(three)}) == 1


def test_a_lun_in_use_is_refused_whatever_was_agreed() -> None:
    mounted = target("/dev/sdb", refusals=("it is mounted at /srv; unmount it",))
    signed = target("/dev/sdc", refusals=("it carries an ext4 signature; `wipefs -a` removes it",))
    with pytest.raises(RefusedError) as error:
        check([signed, mounted, A], True, token([signed, mounted, A]), "p.yaml")
    assert str(error.value).splitlines() == [
        "h1: /dev/sdb is not written: it is mounted at /srv; unmount it",
        "h1: /dev/sdc is not written: it carries an ext4 signature; `wipefs -a` removes it",
    ]


def test_a_token_for_a_plan_that_overwrites_nothing_is_a_mistake() -> None:
    with pytest.raises(PlanError, match="overwrites nothing"):
        check([OURS], True, "0123456789ab", "p.yaml")


# Whole runs on simulated hosts, in which more comes to be than was agreed to.

PLAN = """\
name: agreed
hosts: [a]
destroy: true
engine: {{ backend: "null" }}
luns: {{ select: {{ kind: block }}, files: /t/*.dat{more} }}
workloads: {{ w: {{ iops: 100, maxtags: 4, fraction_read: 50% }} }}
defaults: {{ subinterval: 1s, warmup: 1s, measure: 2s }}
steps: [ go: one ]
"""
CREATE = ", create: { path: '/t/{}.dat', size: 1GiB, count: 2 }"
AGREED = (lun_of("/dev/sda", kind="block", serial="A1"), lun_of("/t/one.dat"))
LATER = (lun_of("/dev/sdb", kind="block", serial="B2"), lun_of("/t/precious.dat"))


class Growing(SimulatedSlave):
    """A host that has more LUNs than were asked for, or others, in every answer from `when` on."""

    def __init__(self, when: str, more: Sequence[Lun]) -> None:
        super().__init__("a", luns=AGREED, plant=steady())
        self._when, self._more = when, more

    def _obey(self, command: Any) -> None:
        if wire_name(type(command)) == self._when:
            self.luns += tuple(self._more)
        super()._obey(command)

    def _say_luns(self, re: int, luns: Sequence[Lun]) -> None:
        more = [known(lun) for lun in self.luns if lun not in AGREED]
        super()._say_luns(re, [*luns, *more])


def writes(slave: SimulatedSlave) -> dict[str, Identity]:
    """What it was told to write."""
    created = [one for heard in slave.received if isinstance(heard, CreateWorkloads) for one in heard.workloads]
    return {one.lun: one.consent.identity for one in created if one.consent is not None}


def run_on(slave: SimulatedSlave, folder: Path, more: str = "", agreed: Sequence[Lun] = AGREED) -> None:
    async def opened(spec: HostSpec, log: Callable[[str], None]) -> MemoryPipe:
        serving.append(asyncio.get_running_loop().create_task(slave.serve()))
        return slave.pipe

    async def main() -> None:
        options = Options(folder, given, ("ivypy",))
        await Run(read(PLAN.format(more=more), "p.yaml", {}), options, Nobody(), Interrupts(), opened).run()

    serving: list[asyncio.Task[None]] = []
    given = token([Target("a", known(lun), False) for lun in agreed])
    simulate(main())


@pytest.mark.parametrize("more", ["", CREATE])
@pytest.mark.parametrize("when", ["inspect_luns", "create_files", "create_workloads"])
def test_what_appears_after_it_was_listed_is_not_written(when: str, more: str, tmp_path: Path) -> None:
    slave = Growing(when, LATER)
    run_on(slave, tmp_path, more)
    created = {f"/t/{i}.dat" for i in range(2)} if more else set()
    assert writes(slave).keys() == {lun.path for lun in AGREED} | created
    assert all(writes(slave)[lun.path] == known(lun).identity for lun in AGREED)
    asked = [type(heard) for heard in slave.received if isinstance(heard, ListLuns | InspectLuns | CreateFiles)]
    assert asked == [ListLuns, InspectLuns, *([CreateFiles] if more else [])], "nothing is discovered twice"


def test_a_run_that_is_refused_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="not the token"):
        run_on(Growing("never", []), tmp_path, agreed=AGREED[:1])
    assert not list(tmp_path.iterdir())


class Keeping(SimulatedSlave):
    """A host where the plan's files are there already; of the last one ivypy does not know who wrote it."""

    def _obey(self, command: Any) -> None:
        super()._obey(command)
        if isinstance(command, CreateFiles):
            self.used = command.used

    def _say_luns(self, re: int, luns: Sequence[Lun]) -> None:
        if isinstance(self.received[-1], InspectLuns):
            luns = [*luns, replace(known(KEPT[0]), ours=True), known(KEPT[1])]
        super()._say_luns(re, luns)


KEPT = (lun_of("/t/0.dat"), lun_of("/t/1.dat"))


def test_of_files_that_are_there_only_those_agreed_to_are_used_once_they_were_changed(tmp_path: Path) -> None:
    """One that was ivypy's alone when it was looked at may have been written by the time that it is used."""
    slave = Keeping("a", luns=AGREED, plant=steady())
    run_on(slave, tmp_path, CREATE, AGREED + KEPT[1:])
    assert slave.used == (("/t/1.dat", known(KEPT[1]).identity),)


def test_a_changed_identity_in_a_later_answer_does_not_change_the_consent(tmp_path: Path) -> None:
    """It is not written then, since the host compares."""
    slave = Growing("create_files", [lun_of("/dev/sda", kind="block", serial="OTHER")])
    run_on(slave, tmp_path, CREATE)
    assert writes(slave)["/dev/sda"] == known(AGREED[0]).identity


def test_a_file_that_exists_when_it_is_listed_needs_the_token(tmp_path: Path) -> None:
    slave = Growing("list_luns", LATER)
    with pytest.raises(RefusedError, match="is not the token of the LUNs that would be overwritten now"):
        run_on(slave, tmp_path, CREATE)
    assert writes(slave) == {} and not any(isinstance(heard, CreateFiles) for heard in slave.received)


def test_a_lun_that_does_not_answer_is_named_before_workloads_are_created(tmp_path: Path) -> None:
    slave = SimulatedSlave("a", luns=AGREED)
    silent = Lun("/dev/sda", "", 0, 1, {}, (SILENT,), (Notice(NoticeKind.NO_ANSWER, SILENT),), silent=True)
    slave._say_luns = lambda re, luns: SimulatedSlave._say_luns(  # type: ignore[method-assign]
        slave, re, [silent if one.path == "/dev/sda" and one.identity else one for one in luns]
    )
    with pytest.raises(HostsError, match=f"a: /dev/sda: {SILENT}"):
        run_on(slave, tmp_path)
    assert not any(isinstance(heard, CreateWorkloads) for heard in slave.received)


def test_what_would_be_lost_is_in_the_list() -> None:
    place = Target("h1", replace(A.lun, holds=("a tar archive", "owner anna")), created=False)
    with pytest.raises(RefusedError, match=r"h1: /dev/sda \(1.00 GiB, a tar archive, owner anna\)"):
        check([place], True, None, "p.yaml")
