"""A lab on one machine: test hosts with a real sshd each, in network namespaces, or else on addresses of 127/8.

Rule: every name, address and port is this run's own, and everything is undone. Traffic stays between namespaces that
the lab made, or on loopback.
"""

import contextlib
import fcntl
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from ivypy.master.hosts.host_spec import HostSpec, Launcher
from tests.support import leftovers
from tests.support.devices import Missing

START_S = 10.0  # for an sshd
CONNECT_S = 60.0  # for a login, and for each answer of the bootstrap: many may be under way on few cores


@dataclass
class LabHost:
    """A test host. `namespace` is empty where it is only an address of its own."""

    name: str
    address: str
    namespace: str
    lab: "Lab"
    sshds: "list[Sshd]" = field(default_factory=list)  # the first is the host's own

    @property
    def folder(self) -> Path:
        return self.lab.folder / self.name

    @property
    def link(self) -> str:
        """The lab's end of its cable."""
        return f"{self.namespace}v"

    @property
    def inside(self) -> list[str]:
        """The words that run a command in it."""
        return ["ip", "netns", "exec", self.namespace] if self.namespace else []

    def spec(self, **changes: object) -> HostSpec:
        return replace(self.sshds[0].spec(), **changes)  # type: ignore[arg-type]

    def command_spec(self, **changes: object) -> HostSpec:
        """The same host, reached by a command line instead of ssh."""
        words = tuple(self.inside) or ("env",)
        return self.spec(launcher=Launcher.COMMAND, command=words, **changes)

    @contextlib.contextmanager
    def sshd(self, *settings: str) -> "Iterator[Sshd]":
        """One more sshd on this host, at another port, with `settings` for the usual ones of these names."""
        sshd = Sshd(self, free_port(self), settings)
        try:
            self.sshds.append(sshd)
            sshd.start()
            yield sshd
        finally:
            sshd.stop()
            self.sshds.remove(sshd)

    @contextlib.contextmanager
    def unplugged(self) -> Iterator[None]:
        run("ip", "link", "set", self.link, "down")
        try:
            yield
        finally:
            run("ip", "link", "set", self.link, "up")


class Sshd:
    """A running sshd, and what it takes to log in to it."""

    def __init__(self, host: LabHost, port: int, settings: tuple[str, ...] = ()) -> None:
        self.host = host
        self.port = port
        host.folder.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix=f"sshd{port}-", dir=host.folder))  # a port may be free again
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def host_key(self) -> Path:
        return self.folder / "host_key"

    @property
    def entry(self) -> str:
        """The host as known_hosts names it."""
        return self.host.address if self.port == 22 else f"[{self.host.address}]:{self.port}"

    @property
    def known_hosts_line(self) -> str:
        return self.known_as(self.host_key)

    def known_as(self, key: Path) -> str:
        """A line of known_hosts that says that this sshd has that key."""
        kind, public = key.with_suffix(".pub").read_text().split()[:2]
        return f"{self.entry} {kind} {public}\n"

    def spec(self, **changes: object) -> HostSpec:
        known_hosts = self.folder / "known_hosts"
        known_hosts.write_text(self.known_hosts_line)
        spec = HostSpec(
            name=self.host.name,
            launcher=Launcher.SSH,
            address=self.host.address,
            port=self.port,
            user=getpass.getuser(),
            identity=str(self.host.lab.identity),
            known_hosts=str(known_hosts),
            cache_dir=str(self.host.folder / "cache"),
            connect_timeout_s=CONNECT_S,
            ssh_config=False,
        )
        return replace(spec, **changes)  # type: ignore[arg-type]

    def start(self) -> None:
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.host_key))
        config = self.folder / "sshd_config"
        said = {
            setting.split()[0] for setting in self._settings
        }  # of some keywords sshd takes the first, of some the last
        usual = [setting for setting in self._usual() if setting.split()[0] not in said - {"HostKey"}]
        config.write_text("\n".join((*self._settings, *usual)) + "\n")
        sshd = [str(shutil.which("sshd", path=SBIN)), "-D", "-f", str(config), "-E", str(self.folder / "log")]
        if self.host.namespace:
            named = f'hostname {self.host.name}; exec "$@"'
            sshd = [*self.host.inside, "unshare", "--uts", "sh", "-c", named, "sh", *sshd]
        self._process = subprocess.Popen(sshd, stdin=subprocess.DEVNULL)
        self._wait_until_it_answers()

    @property
    def process(self) -> psutil.Process:
        assert self._process
        return psutil.Process(self._process.pid)

    def stop(self) -> None:
        if self._process:
            self.kill_sessions()
            self._process.terminate()
            self._process.wait()

    def sessions(self) -> list[psutil.Process]:
        """The processes of those who are logged in: sshd's own, shells, and what they run."""
        return self.process.children(recursive=True)

    def kill_sessions(self) -> None:
        for process in self.sessions():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def _usual(self) -> list[str]:
        return [
            f"Port {self.port}",
            f"ListenAddress {self.host.address}",
            f"HostKey {self.host_key}",
            f"PidFile {self.folder}/pid",
            f"AuthorizedKeysFile {self.host.lab.identity}.pub",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin prohibit-password",
            f"AllowUsers {getpass.getuser()}",
            "MaxStartups 200:30:400",
            "MaxSessions 64",
            "UseDNS no",
            "LogLevel VERBOSE",
        ]

    def _wait_until_it_answers(self) -> None:
        assert self._process
        deadline = time.monotonic() + START_S
        while self._process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                with socket.create_connection((self.host.address, self.port), timeout=1) as connection:
                    if connection.recv(4) == b"SSH-":
                        return
            time.sleep(0.01)
        raise Missing(f"an sshd that starts ({self.log() if (self.folder / 'log').exists() else 'no log'})")


SBIN = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


class Lab:
    """Hosts, and one key that opens them all."""

    def __init__(self, folder: Path, size: int, namespaces: bool | None = None) -> None:
        """`size` hosts; `namespaces`: whether each is a network namespace, None where this machine allows it."""
        missing = [tool for tool in ("sshd", "ssh-keygen") if shutil.which(tool, path=SBIN) is None]
        if missing:
            raise Missing(f"{' and '.join(missing)} (package openssh-server)")
        self.folder = folder
        self.identity = folder / "id"
        self.prefix = (
            f"iv{leftovers.session_name()}{secrets.token_hex(2)}"  # an interface name has at most 15 characters
        )
        self.hosts: list[LabHost] = []
        self.namespaces = may_make_namespaces(self.prefix) if namespaces is None else namespaces
        self._size = size
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> "Lab":
        with contextlib.ExitStack() as undo:
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.identity))
            if os.geteuid() == 0:
                os.makedirs("/run/sshd", exist_ok=True)  # sshd's; the package's service makes it too
            network = self._make_bridge(undo) if self.namespaces else random_loopback()
            for number in range(1, self._size + 1):
                self._add_host(number, f"{network}.{number + 10}", undo)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def _make_bridge(self, undo: contextlib.ExitStack) -> str:
        """The lab's own network; returns its first three numbers."""
        taken = run("ip", "-4", "-o", "addr") + run("ip", "-4", "route")
        network = next(n for n in iter(random_network, "") if f"{n}." not in taken)
        bridge = f"{self.prefix}b"
        run("ip", "link", "add", bridge, "type", "bridge")
        undo.callback(change_addresses, "ip", "link", "del", bridge)
        has_no_ipv6(bridge)
        change_addresses("ip", "addr", "add", f"{network}.1/24", "dev", bridge)
        run("ip", "link", "set", bridge, "up")
        return network

    def _add_host(self, number: int, address: str, undo: contextlib.ExitStack) -> None:
        namespace = f"{self.prefix}h{number}" if self.namespaces else ""
        host = LabHost(f"lab{number:02}", address, namespace, self)
        self.hosts.append(host)
        if namespace:
            # Undone in reverse: the cable before the namespace, since what `netns del` removes by itself lingers.
            run("ip", "netns", "add", namespace)
            undo.callback(delete_namespace, namespace)
            run("ip", "link", "add", host.link, "type", "veth", "peer", "name", "eth0", "netns", namespace)
            undo.callback(run, "ip", "link", "del", host.link)
            has_no_ipv6(host.link)
            run("ip", "link", "set", host.link, "master", f"{self.prefix}b", "up")
            run("ip", "-n", namespace, "addr", "add", f"{address}/24", "dev", "eth0")
            run("ip", "-n", namespace, "link", "set", "eth0", "up")
            run("ip", "-n", namespace, "link", "set", "lo", "up")
        host.sshds.append(Sshd(host, free_port(host)))
        undo.callback(host.sshds[0].stop)
        host.sshds[0].start()


def delete_namespace(name: str) -> None:
    for pid in run("ip", "netns", "pids", name).split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    run("ip", "netns", "del", name)


def random_loopback() -> str:
    return f"127.{secrets.randbelow(200) + 20}.{secrets.randbelow(256)}"


def random_network() -> str:
    return f"10.{secrets.randbelow(100) + 150}.{secrets.randbelow(256)}"


def free_port(host: LabHost) -> int:
    """A port at which nothing listens on this host; in a namespace of its own there is only the lab."""
    if host.namespace:
        return 22 if not host.sshds else 2200 + secrets.randbelow(20000)
    with socket.socket() as probe:
        probe.bind((host.address, 0))
        return int(probe.getsockname()[1])


def may_make_namespaces(prefix: str) -> bool:
    """Whether this process may make a namespace, a bridge and a cable; tried, and undone."""
    if os.geteuid() != 0 or any(shutil.which(tool, path=SBIN) is None for tool in ("ip", "unshare", "hostname")):
        return False
    name = f"{prefix}t"
    try:
        run("ip", "netns", "add", name)
    except subprocess.CalledProcessError:
        return False
    try:
        run("ip", "link", "add", f"{name}v", "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "link", "del", f"{name}v")
        run("ip", "link", "add", f"{name}b", "type", "bridge")
        run("ip", "link", "del", f"{name}b")
    except subprocess.CalledProcessError:
        return False
    finally:
        run("ip", "netns", "del", name)
    return True


@contextlib.contextmanager
def unchanged_addresses() -> Iterator[None]:
    """No lab is made or undone meanwhile: Chromium gives its requests up when the machine's addresses change."""
    with _locked_network(fcntl.LOCK_SH):
        yield


def change_addresses(*words: str) -> None:
    with _locked_network(fcntl.LOCK_EX):
        run(*words)


def has_no_ipv6(link: str) -> None:
    """A link that is up gives itself an address, where the kernel has IPv6 at all."""
    with contextlib.suppress(subprocess.CalledProcessError):
        run("ip", "link", "set", link, "addrgenmode", "none")


@contextlib.contextmanager
def _locked_network(lock: int) -> Iterator[None]:
    """The lock is on the network itself, so that tests of other sessions on this machine heed it, too."""
    with open("/proc/self/ns/net") as network:
        fcntl.flock(network, lock)
        yield


def run(*words: str) -> str:
    return subprocess.run(words, check=True, text=True, capture_output=True).stdout
