"""The ssh launcher against real sshds: every fault before and after the login.

Slow: not each by itself, but a session costs a login shell and a Python, and there are many.
"""

import asyncio
import contextlib
import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from ivypy.master.hosts import ssh_login, ssh_pipe
from ivypy.master.hosts.errors import HostUnusable
from ivypy.master.hosts.host_spec import HostSpec, Launcher
from ivypy.master.hosts.launch import open_pipe
from ivypy.master.hosts.login_throttle import LoginThrottle
from ivypy.master.hosts.pipe import Pipe, PipeLost
from tests.support.lab import Lab, LabHost, Sshd, run
from tests.support.stand_in_slave import ask, fault, line, opened, script, stand_in
from tests.support.waits import PATIENCE_S, wait_until_ended

pytestmark = pytest.mark.slow

USER = getpass.getuser()


@pytest.fixture
def host(lab: Lab) -> LabHost:
    return lab.hosts[0]


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A key that opens nothing."""
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "id"))
    return tmp_path / "id"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory on the controller, and no agent."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    (tmp_path / ".ssh").mkdir(mode=0o700)
    return tmp_path


def by_hand(sshd: Sshd) -> str:
    spec = sshd.spec()
    port = "" if sshd.port == 22 else f"-p {sshd.port} "
    return f"ssh {port}-i {spec.identity} -o UserKnownHostsFile={spec.known_hosts} {USER}@{spec.address}"


def fingerprint(key: Path) -> str:
    """As ssh-keygen has it, after the key's kind."""
    return f"{key.with_suffix('.pub').read_text().split()[0]} {run('ssh-keygen', '-l', '-f', str(key)).split()[1]}"


# What works.


async def test_three_hosts_at_once_each_their_own(lab: Lab) -> None:
    async with contextlib.AsyncExitStack() as stack:
        pipes = await asyncio.gather(*(stack.enter_async_context(opened(host.spec())) for host in lab.hosts))
        names = [(await ask(pipe, "facts")).split()[3] for pipe in pipes]
    if lab.namespaces:
        assert names == [host.name for host in lab.hosts]


async def test_the_bundle_is_sent_once_and_stays(lab: Lab) -> None:
    log: list[str] = []
    bundle = stand_in(**{"once.py": b""})
    for _ in range(2):
        async with opened(lab.hosts[1].spec(), bundle, log.append):
            pass
    assert sum("<- ivypy-boot send" in text for text in log) == 1
    assert (lab.hosts[1].folder / "cache" / bundle.hash / "once.py").exists()


@pytest.mark.parametrize("at_a_time", [2, 8])
async def test_logins_that_sshd_has_no_room_for_are_tried_again(host: LabHost, at_a_time: int) -> None:
    """An sshd that resets whoever is the fifth that has not proved itself: as much room beside us as in real life."""
    log: list[str] = []
    with host.sshd("MaxStartups 4:100:4") as sshd:
        throttle, spec = LoginThrottle(at_a_time), sshd.spec()
        opening = (open_pipe(spec, [stand_in()], throttle, log.append) for _ in range(8))
        results = await asyncio.gather(*opening, return_exceptions=True)
        refused = [str(result) for result in results if isinstance(result, HostUnusable)]
        await asyncio.gather(*(result.close() for result in results if not isinstance(result, BaseException)))
    assert refused == []
    assert any("reset during the login" in text for text in log) == (at_a_time == 8)


@pytest.fixture
def behind(lab: Lab, home: Path) -> Iterator[tuple[Sshd, HostSpec]]:
    """A jump host whose sshd takes as many logins at a time as sshd does by default, and a host behind it."""
    with lab.hosts[0].sshd("MaxStartups 10:30:100") as jump:
        target = lab.hosts[1].sshds[0]
        (home / ".ssh" / "config").write_text(
            f"Host bastion\n HostName {jump.host.address}\n Port {jump.port}\n"
            f"Host behind\n HostName {target.host.address}\n Port {target.port}\n ProxyJump {USER}@bastion\n"
            f"Host deep\n HostName {target.host.address}\n Port {target.port}\n ProxyJump bastion,middle\n"
            f"Host middle\n HostName {lab.hosts[2].address}\n Port {lab.hosts[2].sshds[0].port}\n"
            f"Host lost\n HostName {target.host.address}\n Port 9\n ProxyJump bastion\n"
            f"Host astray\n HostName {target.host.address}\n ProxyJump nowhere\n"
            f"Host nowhere\n HostName {target.host.address}\n Port 9\n"
            f"Host *\n User {USER}\n IdentityFile {lab.identity}\n UserKnownHostsFile {home}/keys\n"
        )
        known = (jump, target, lab.hosts[2].sshds[0])
        (home / "keys").write_text("".join(sshd.known_hosts_line for sshd in known))
        yield (
            jump,
            target.spec(address="behind", port=None, user=None, identity=None, known_hosts=None, ssh_config=True),
        )


def logins(sshd: Sshd) -> int:
    return sshd.log().count("Accepted publickey")


async def opened_at_once(specs: list[HostSpec], throttle: LoginThrottle) -> list[Pipe]:
    return await asyncio.gather(*(open_pipe(spec, [stand_in()], throttle, lambda text: None) for spec in specs))


@pytest.mark.parametrize("count", [5, pytest.param(40, marks=pytest.mark.long)])
async def test_all_hosts_behind_a_jump_host_share_one_login_to_it(behind: tuple[Sshd, HostSpec], count: int) -> None:
    jump, spec = behind
    pipes = await opened_at_once([spec] * count, LoginThrottle())
    assert logins(jump) == 1
    for pipe in pipes:
        assert (await line(pipe)).startswith("hello ")
    await asyncio.gather(*(pipe.close() for pipe in pipes))
    wait_until_ended(*jump.sessions())  # the last pipe through it closed it


async def test_a_jump_host_is_logged_in_to_again_once_it_was_lost(behind: tuple[Sshd, HostSpec]) -> None:
    jump, spec = behind
    throttle = LoginThrottle()
    (first,) = await opened_at_once([spec], throttle)
    assert (await line(first)).startswith("hello ")
    jump.kill_sessions()
    with pytest.raises(PipeLost):
        await first.read(1)
    await first.close()
    (second,) = await opened_at_once([spec], throttle)
    assert (await line(second)).startswith("hello ")
    await second.close()
    assert logins(jump) == 2


async def test_jump_hosts_behind_jump_hosts(behind: tuple[Sshd, HostSpec]) -> None:
    _, spec = behind
    async with opened(replace(spec, address="deep")) as pipe:
        assert await ask(pipe, "say yes") == "yes"


async def test_faults_of_a_jump_host_name_the_jump_host(behind: tuple[Sshd, HostSpec], lab: Lab, home: Path) -> None:
    _, spec = behind
    assert str(await fault(replace(spec, address="astray"))).startswith(
        f"lab02: jump host nowhere: {lab.hosts[1].address} port 9 refuses the connection; "
    )
    found = await fault(replace(spec, address="lost"))
    assert found.what.startswith(f"{lab.hosts[1].address} port 9 cannot be reached from its jump host (")
    (home / "keys").write_text(lab.hosts[1].sshds[0].known_hosts_line)
    found = await fault(spec)
    assert found.what.startswith(f"jump host {USER}@bastion: its host key is not known; it offers ")
    with (home / ".ssh" / "config").open("a") as config:
        config.write(" StrictHostKeyChecking no\n")
    assert (await fault(spec)).what.startswith(f"jump host {USER}@bastion: its host key is not known")


async def test_megabytes_go_both_ways_at_once(host: LabHost) -> None:
    size = 8 << 20
    async with opened(host.spec()) as pipe:
        await pipe.write(b"give %d\ntake %d\n" % (size, size))

        async def receive() -> int:
            got = 0
            while got < size:
                got += len(await pipe.read(min(1 << 16, size - got)))
            return got

        async with asyncio.TaskGroup() as group:
            received = group.create_task(receive())
            group.create_task(pipe.write(bytes(size)))
        assert received.result() == size
        assert await line(pipe) == "taken"


async def test_every_byte_value_goes_through_unchanged(host: LabHost) -> None:
    every = bytes(byte for byte in range(256) if byte != ord("\n"))
    async with opened(host.spec()) as pipe:
        await pipe.write(b"say <" + every + b">\n")
        got = b""
        while not got.endswith(b">\n"):
            got += await pipe.read(1000)
        assert got == b"<" + every + b">\n"


async def test_the_command_launcher_reaches_the_same_host(namespaces: Lab) -> None:
    host = namespaces.hosts[2]
    async with opened(host.command_spec()) as pipe:
        _, session, _, _, isolated = (await ask(pipe, "facts")).split()
        assert session != str(os.getsid(0))
        assert isolated == "1"


async def test_the_command_launcher_goes_through_ssh_itself(host: LabHost) -> None:
    """Whose own settings and sockets then count: ControlPath, GSSAPI, a second factor."""
    spec = host.spec()
    ssh = ("ssh", "-F", "none", "-p", str(spec.port), "-i", str(spec.identity))
    known = ("-o", f"UserKnownHostsFile={spec.known_hosts}", "-o", "BatchMode=yes")
    words = (*ssh, *known, f"{USER}@{spec.address}")
    if shutil.which("ssh") is None:
        pytest.skip("this machine lacks ssh (package openssh-client)")
    async with opened(spec_of_command(spec, words)) as pipe:
        assert await ask(pipe, "say yes") == "yes"


def spec_of_command(spec: HostSpec, words: tuple[str, ...]) -> HostSpec:
    return replace(spec, launcher=Launcher.COMMAND, command=words)


async def test_a_login_scripts_noise_is_skipped(host: LabHost, tmp_path: Path) -> None:
    noisy = script(
        tmp_path / "noisy",
        "echo 'Last login: yesterday'; printf 'You have mail.'; exec sh -c \"$SSH_ORIGINAL_COMMAND\"",
    )
    log: list[str] = []
    with host.sshd(f"ForceCommand {noisy}") as sshd:
        async with opened(sshd.spec(), log=log.append) as pipe:
            assert await ask(pipe, "say yes") == "yes"
    assert "<- (skipped) Last login: yesterday" in log
    assert "<- (skipped) You have mail." in log


async def test_a_banner_is_logged(host: LabHost, tmp_path: Path) -> None:
    (tmp_path / "banner").write_text("Authorized use only.\n")
    log: list[str] = []
    with host.sshd(f"Banner {tmp_path}/banner") as sshd:
        async with opened(sshd.spec(), log=log.append):
            pass
    assert "<- (banner) Authorized use only." in log


@pytest.fixture
def agent(host: LabHost, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An agent that has the lab's key."""
    socket_path = home / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket_path)], stdout=subprocess.PIPE)
    assert process.stdout and b"SSH_AUTH_SOCK" in process.stdout.readline()
    monkeypatch.setenv("SSH_AUTH_SOCK", str(socket_path))
    run("ssh-add", "-q", str(host.lab.identity))
    yield
    process.terminate()
    process.communicate()


@pytest.mark.usefixtures("agent")
async def test_an_agent_holds_the_key(host: LabHost) -> None:
    async with opened(host.spec(identity=None)) as pipe:
        assert await ask(pipe, "say yes") == "yes"


async def test_the_users_ssh_configuration_is_honoured(host: LabHost, home: Path) -> None:
    sshd = host.sshds[0]
    (home / ".ssh" / "config").write_text(
        f"Host oltp7\n HostName {host.address}\n Port {sshd.port}\n User {USER}\n"
        f" IdentityFile {host.lab.identity}\n UserKnownHostsFile {home}/missing {home}/keys\n"
    )
    (home / "keys").write_text(sshd.known_hosts_line)
    spec = sshd.spec(address="oltp7", port=None, user=None, identity=None, known_hosts=None, ssh_config=True)
    async with opened(spec) as pipe:
        assert await ask(pipe, "say yes") == "yes"


@pytest.mark.parametrize("hashed", [False, True])
async def test_the_users_own_known_hosts_serve_where_none_are_named(host: LabHost, home: Path, hashed: bool) -> None:
    known_hosts = home / ".ssh" / "known_hosts"
    known_hosts.write_text(host.sshds[0].known_hosts_line)
    if hashed:  # as Debian's ssh writes them
        run("ssh-keygen", "-q", "-H", "-f", str(known_hosts))
    async with opened(host.spec(known_hosts=None)):
        pass


# What does not: before the login.


async def test_connection_refused_is_named(host: LabHost) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]  # bound, not listening
        assert str(await fault(host.spec(address="127.0.0.1", port=port))) == (
            f"lab01: 127.0.0.1 port {port} refuses the connection; start sshd there, or name its port with port:"
        )


async def test_a_name_that_no_host_can_have(host: LabHost) -> None:
    found = await fault(host.spec(address="no..such"))
    assert str(found) == 'lab01: the name "no..such" is not a valid host name; correct it, or use an address'


async def test_unknown_host_name_is_named(host: LabHost) -> None:
    found = await fault(host.spec(address="no-such-host.invalid"))
    assert found.what.startswith('the name "no-such-host.invalid" is not known (')
    assert found.remedy == "correct it, or use an address"


async def test_a_network_that_is_not_reached(host: LabHost) -> None:
    """A broadcast address is refused by the kernel itself: no packet leaves."""
    found = await fault(host.spec(address="255.255.255.255", port=22))
    assert found.what in (
        "255.255.255.255 port 22 cannot be reached (Network is unreachable)",
        "255.255.255.255 port 22 cannot be reached (Permission denied)",
    )
    assert found.remedy == "check that it is up and that a route leads to it"


async def test_a_host_that_is_down(namespaces: Lab) -> None:
    host = namespaces.hosts[2]
    with host.unplugged():
        assert str(await fault(host.spec(connect_timeout_s=0.5))) == (
            f"lab03: {host.address} port 22 does not answer within 0.5 s; "
            "check that it is up and that no firewall drops the packets, or raise connect_timeout:"
        )


@contextlib.asynccontextmanager
async def listening(said: bytes | None) -> AsyncIterator[int]:
    """A port of 127.0.0.1 that says something else than sshd would, and hangs up; None: says nothing and stays."""

    serving: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        if said is None:
            await reader.read()
        else:
            writer.write(said)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
        await asyncio.gather(*(task for task in serving if task is not None))


async def test_port_that_sends_no_banner_is_named(host: LabHost) -> None:
    async with listening(None) as port:
        found = await fault(host.spec(address="127.0.0.1", port=port, connect_timeout_s=0.3))
    assert found.what == f"127.0.0.1 port {port} does not answer within 0.3 s"


async def test_a_port_that_hangs_up(host: LabHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_login, "PAUSE_S", 1000.0)  # beyond connect_timeout: it is not tried again
    async with listening(b"") as port:
        found = await fault(host.spec(address="127.0.0.1", port=port))
    assert str(found) == (
        f"lab01: 127.0.0.1 port {port} closed the connection during the login; "
        "see the host's sshd log (MaxStartups, AllowUsers, a full disk)"
    )


async def test_port_of_another_service_is_named(host: LabHost) -> None:
    async with listening(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 2000) as port:
        found = await fault(host.spec(address="127.0.0.1", port=port))
    assert found.what.startswith(f"127.0.0.1 port {port} ended the login (")


async def test_a_key_that_opens_nothing(host: LabHost, key: Path) -> None:
    sshd = host.sshds[0]
    hand = by_hand(sshd).replace(str(host.lab.identity), str(key))
    assert str(await fault(host.spec(identity=str(key)))) == (
        f'lab01: {host.address} port {sshd.port} rejects user "{USER}" with the key {key}; '
        f'make "{hand} true" work first: user:, identity:, ssh-add, authorized_keys there'
    )


async def test_refused_user_is_named(host: LabHost) -> None:
    found = await fault(host.spec(user="nobody"))
    assert found.what == (
        f'{host.address} port {host.sshds[0].port} rejects user "nobody" with the key {host.lab.identity}'
    )


async def test_missing_keys_are_named(host: LabHost, home: Path) -> None:
    found = await fault(host.spec(identity=None))
    assert found.what.endswith(f'rejects user "{USER}" with any available key')


async def test_a_key_that_is_not_there(host: LabHost) -> None:
    assert str(await fault(host.spec(identity="/no/such/id"))) == (
        "lab01: /no/such/id cannot be used (No such file or directory); correct identity:, or ~/.ssh/config"
    )


async def test_a_key_of_the_configuration_that_is_not_there(host: LabHost, home: Path) -> None:
    (home / ".ssh" / "config").write_text("IdentityFile ~/no-such-id\n")
    found = await fault(host.spec(identity=None, ssh_config=True))
    assert found.what == f"{home}/no-such-id cannot be used (No such file or directory)"


async def test_a_key_that_is_no_key(host: LabHost, tmp_path: Path) -> None:
    (tmp_path / "id").write_text("not a key\n")
    found = await fault(host.spec(identity=str(tmp_path / "id")))
    assert found.what.startswith(f"the key {tmp_path}/id cannot be used (")


async def test_a_key_with_a_passphrase(host: LabHost, key: Path) -> None:
    run("ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", str(key))
    assert str(await fault(host.spec(identity=str(key)))) == (
        f"lab01: the key {key} has a passphrase; load it into an agent with ssh-add and leave identity: out"
    )


# Host keys.


async def test_an_unknown_host_key(host: LabHost, tmp_path: Path) -> None:
    sshd = host.sshds[0]
    (tmp_path / "known_hosts").touch()
    spec = host.spec(known_hosts=str(tmp_path / "known_hosts"))
    hand = by_hand(sshd).replace(f"{sshd.folder}/known_hosts", f"{tmp_path}/known_hosts")
    assert str(await fault(spec)) == (
        f"lab01: its host key is not known; it offers {fingerprint(sshd.host_key)}; "
        f'run "{hand}" once and compare the fingerprint, or name a file that has the key with known_hosts:'
    )


async def test_a_changed_host_key(host: LabHost, key: Path, tmp_path: Path) -> None:
    sshd = host.sshds[0]
    known = tmp_path / "known_hosts"
    known.write_text(sshd.known_as(key))
    hand = by_hand(sshd).replace(f"{sshd.folder}/known_hosts", str(known))
    assert str(await fault(host.spec(known_hosts=str(known)))) == (
        f"lab01: its host key has changed: it offers {fingerprint(sshd.host_key)}, known is {fingerprint(key)}; "
        f"find out why: this may be an attack. "
        f'If the host was reinstalled: "ssh-keygen -f {known} -R \'{sshd.entry}\'", then "{hand}" '
        "and compare the fingerprint"
    )


async def test_a_host_key_of_another_kind_than_the_known_one(host: LabHost, tmp_path: Path) -> None:
    ecdsa, known, sshd = tmp_path / "ecdsa", tmp_path / "known_hosts", host.sshds[0]
    run("ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(ecdsa))
    known.write_text(sshd.known_as(ecdsa))
    assert (await fault(host.spec(known_hosts=str(known)))).what == (
        f"its host key has changed: it offers {fingerprint(sshd.host_key)}, known is {fingerprint(ecdsa)}"
    )


async def test_the_kind_of_key_that_is_known_is_asked_for_first(host: LabHost, tmp_path: Path) -> None:
    run("ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", str(tmp_path / "rsa"))
    with host.sshd(f"HostKey {tmp_path}/rsa") as sshd:
        known = tmp_path / "known_hosts"
        known.write_text(sshd.known_as(tmp_path / "rsa"))
        async with opened(sshd.spec(known_hosts=str(known))) as pipe:
            assert await ask(pipe, "say yes") == "yes"


async def test_a_revoked_host_key(host: LabHost, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text(f"@revoked {host.sshds[0].known_hosts_line}")
    found = await fault(host.spec(known_hosts=str(known)))
    assert found.what.startswith("its host key is not accepted (Host key is revoked")


async def test_a_known_hosts_file_that_is_not_there(host: LabHost) -> None:
    assert str(await fault(host.spec(known_hosts="/no/such/file"))) == (
        "lab01: the known_hosts file /no/such/file cannot be used (No such file or directory); "
        "correct it, or name another with known_hosts:"
    )


async def test_a_known_hosts_file_that_is_damaged(host: LabHost, tmp_path: Path) -> None:
    (tmp_path / "known_hosts").write_text("one-word\n")
    found = await fault(host.spec(known_hosts=str(tmp_path / "known_hosts")))
    assert (
        found.what
        == f"the known_hosts file {tmp_path}/known_hosts cannot be used (Invalid known hosts entry: one-word)"
    )


@pytest.mark.parametrize(
    "setting", ["UserKnownHostsFile none", "UserKnownHostsFile /dev/null", "StrictHostKeyChecking no"]
)
async def test_verification_is_not_switched_off_by_a_configuration(host: LabHost, home: Path, setting: str) -> None:
    (home / ".ssh" / "config").write_text(f"Host *\n {setting}\n")
    found = await fault(host.spec(known_hosts=None, ssh_config=True))
    assert found.what == f"its host key is not known; it offers {fingerprint(host.sshds[0].host_key)}"


async def test_a_configuration_that_cannot_be_read(host: LabHost, home: Path) -> None:
    (home / ".ssh" / "config").write_text("Port many\n")
    found = await fault(host.spec(port=None, ssh_config=True))
    assert found.what.startswith("ssh's configuration cannot be used (")
    assert found.remedy == "correct ~/.ssh/config, or the plan's ssh:"


# After the login.


async def test_a_python_that_the_login_shell_does_not_find(host: LabHost) -> None:
    found = await fault(host.spec(python=("python9",)))
    assert found.what.startswith('there is no "python9" there (')
    assert found.remedy == "install Python 3.9 or newer there, or name it with python:"


async def test_words_with_spaces_and_quotes_reach_the_host_as_they_are(host: LabHost, tmp_path: Path) -> None:
    cache = tmp_path / 'it\'s a "cache" $HOME'
    async with opened(host.spec(cache_dir=str(cache))):
        pass
    assert cache.is_dir()


async def test_refused_session_is_named(host: LabHost) -> None:
    with host.sshd("MaxSessions 0") as sshd:
        found = await fault(sshd.spec())
    assert found.what.startswith("the login works, but it starts no process (")
    assert found.remedy == "see its sshd log (MaxSessions, the user's shell)"


async def test_a_connection_that_breaks_during_the_first_contact(host: LabHost, tmp_path: Path) -> None:
    killer = script(tmp_path / "python3", "kill -9 $(ps -o ppid= $PPID) $PPID")  # the shell, the session or the sshd
    with host.sshd() as sshd:
        found = await fault(sshd.spec(python=(killer,)))
    assert found.what.startswith("the bootstrap failed: the ssh connection was lost")


# While it runs.


async def test_an_unexpected_end_reports_how_and_why(host: LabHost) -> None:
    for command, reason in (("exit 3", "it exited with status 3 (why)"), ("kill 9", "it was killed by SIGKILL, as")):
        async with opened(host.spec()) as pipe:
            await ask(pipe, "cry why")
            await pipe.write(command.encode() + b"\n")
            with pytest.raises(PipeLost) as lost:
                await pipe.read(1)
            assert str(lost.value).startswith(reason)


async def test_exit_code_0_is_the_end_of_the_stream(host: LabHost) -> None:
    async with opened(host.spec()) as pipe:
        await pipe.write(b"exit 0\n")
        assert await pipe.read(1) == b""
        with pytest.raises(PipeLost):
            for _ in range(3):
                await pipe.write(b"say hello\n")


async def test_killed_sshd_is_a_lost_pipe(host: LabHost) -> None:
    with host.sshd() as sshd:
        async with opened(sshd.spec()) as pipe:
            reading = asyncio.create_task(pipe.read(1))
            await asyncio.sleep(0)
            sshd.kill_sessions()
            with pytest.raises(PipeLost, match="the ssh connection was lost"):
                await reading
            with pytest.raises(PipeLost):
                for _ in range(3):
                    await pipe.write(b"say hello\n")


async def far_process(pipe: Pipe) -> psutil.Process:
    """The slave's process; a network namespace is no process namespace."""
    return psutil.Process(int((await ask(pipe, "facts")).split()[0]))


async def test_closing_ends_the_slave(host: LabHost) -> None:
    async with opened(host.spec()) as pipe:
        far = await far_process(pipe)
    wait_until_ended(far)


async def test_closing_does_not_wait_for_a_slave_that_stays(host: LabHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_pipe, "GRACE_S", 0.2)
    async with opened(host.spec()) as pipe:
        far = await far_process(pipe)
        await ask(pipe, "stay")
        async with asyncio.timeout(PATIENCE_S):
            await pipe.close()
    far.kill()


async def test_closing_drains_a_slave_that_is_writing(host: LabHost) -> None:
    async with opened(host.spec()) as pipe:
        far = await far_process(pipe)
        await pipe.write(b"give 20000000\n")
        await pipe.read(1)
        await pipe.close()
        wait_until_ended(far)


async def test_a_cable_that_is_pulled_for_a_moment_does_no_harm(namespaces: Lab) -> None:
    async with opened(namespaces.hosts[1].spec()) as pipe:
        with namespaces.hosts[1].unplugged():
            await asyncio.sleep(1.5)
        async with asyncio.timeout(PATIENCE_S):
            assert await ask(pipe, "say here") == "here"


async def test_closing_over_a_dead_link_does_not_hang(namespaces: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_pipe, "GRACE_S", 0.2)
    async with opened(namespaces.hosts[1].spec()) as pipe:
        with namespaces.hosts[1].unplugged():
            async with asyncio.timeout(PATIENCE_S):
                await pipe.close()
