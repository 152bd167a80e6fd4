"""Every way in which a host cannot become a slave: the exact line that its user reads.

The launcher here is a command line on this machine; the ssh launcher's own faults are in test_ssh.py.
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from ivypy.master.hosts import bootstrap_client, bootstrap_script, subprocess_pipe
from ivypy.master.hosts.bundle import ENGINE_FILE, Bundle, own_engine, pack
from ivypy.master.hosts.host_spec import HostSpec, Launcher
from tests.support.stand_in_slave import STAND_IN, ask, connected, fault, local, opened, script, stand_in

pytestmark = pytest.mark.slow

INSTALL = "install Python 3.9 or newer there, or name it with python:"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not exit by itself is killed soon."""
    monkeypatch.setattr(subprocess_pipe, "GRACE_S", 0.2)


def command(tmp_path: Path, *words: str, **changes: object) -> HostSpec:
    """The controller's Python behind a command line, as `env` has it if no words are given."""
    return local(
        tmp_path / "cache",
        **{"name": "h1", "launcher": Launcher.COMMAND, "command": words or ("env",), "python": (sys.executable,)}
        | changes,
    )


def wrapped(tmp_path: Path, statement: str) -> str:
    """A Python of this version that is made to believe something else before it hears from us."""
    code = f"import sys; {statement}; exec(sys.argv.pop(1))"
    return script(tmp_path / "python3", f"shift 2; exec {sys.executable} -I -c '{code}' \"$@\"")


async def test_a_python_that_is_too_old_says_its_version_and_that_of_others(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    python = wrapped(tmp_path, f'sys.version_info = (3, 8, 10, "final", 0); import os; os.environ["PATH"] = "{folder}"')
    script(folder / "python3.12", "exit 1")
    script(folder / "python3.10", "echo hello")
    script(folder / "python3.9", "echo pypy 3 9 16")
    assert str(await fault(command(tmp_path, python=(python,)))) == (
        f"h1: its Python is 3.8.10; {folder}/python3.9 is pypy 3.9.16; the slave needs CPython 3.9; {INSTALL}"
    )


@pytest.mark.parametrize("lacks", ['sys.version_info = (3, 6, 8, "final", 0)', 'sys.implementation.name = "pypy"'])
async def test_a_newer_python_beside_an_old_one_is_used(tmp_path: Path, lacks: str) -> None:
    """As on RHEL 8, whose own Python is 3.6. Beside it: those that do not start, 3.8 by another name, and this one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("python3.14", "python3.13", "python3.12"):
        script(folder / name, "exit 1")
    script(folder / "python3.11", "echo cpython 3 8 1")
    wraps = f'if [ $# = 3 ]; then exec {sys.executable} "$@"; fi; shift 3; exec {sys.executable} -I -c "$@"'
    newer = script(folder / "python3.10", wraps)
    python = wrapped(tmp_path, f'{lacks}; import os; os.environ["PATH"] = "{folder}"')
    log: list[str] = []
    async with opened(command(tmp_path, python=(python,)), log=log.append) as pipe:
        assert await ask(pipe, "say yes") == "yes"
    assert f"so {newer} is used" in "\n".join(log)


async def test_python_too_old_for_the_options_is_named(tmp_path: Path) -> None:
    """What Python 2.7.18 prints."""
    python = script(
        tmp_path / "python2",
        "echo 'Unknown option: -I' >&2\n"
        "echo 'usage: python2 [option] ... [-c cmd | -m mod | file | -] [arg] ...' >&2\n"
        "echo 'Try `python -h'\"'\"' for more information.' >&2\n"
        "exit 2",
    )
    assert str(await fault(command(tmp_path, python=(python,)))) == (
        f'h1: its "{python}" is a Python older than 3.4; {INSTALL}'
    )


async def test_missing_python_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    found = await fault(command(tmp_path, python=("no-such-python",)))
    assert found.what.startswith('there is no "no-such-python" there (env: ')
    assert found.what.endswith("No such file or directory)")
    assert found.remedy == INSTALL


@pytest.mark.parametrize(
    "words",
    [
        "bash: line 1: python3.11: command not found",  # bash
        "sh: 1: python3.11: not found",  # dash
        "zsh:1: command not found: python3.11",
        "fish: Unknown command: python3.11",
        "python3.11: Command not found.",  # csh
        "sudo: python3.11: command not found",
        'exec of "python3.11" failed: No such file or directory',  # ip netns exec
        'exec: "python3.11": executable file not found in $PATH: unknown',  # docker, kubectl
        "slurmstepd: error: execve(): python3.11: No such file or directory",
    ],
)
async def test_however_a_shell_says_that_python_is_missing(tmp_path: Path, words: str) -> None:
    shell = script(tmp_path / "shell", f"cat >&2 <<'END'\n{words}\nEND\nexit 1")
    assert str(await fault(command(tmp_path, shell, python=("python3.11",)))) == (
        f'h1: there is no "python3.11" there ({words}); {INSTALL}'
    )


async def test_exit_code_127_without_text_means_a_missing_python(tmp_path: Path) -> None:
    shell = script(tmp_path / "shell", "exit 127")
    assert (await fault(command(tmp_path, shell))).what == f'there is no "{sys.executable}" there (exit status 127)'


async def test_python_without_execute_permission_is_named(tmp_path: Path) -> None:
    (tmp_path / "python3").write_text("")
    found = await fault(command(tmp_path, python=(str(tmp_path / "python3"),)))
    assert found.what.startswith(f'"{tmp_path}/python3" may not be run there (env: ')
    assert found.remedy == "change its permissions, or name another with python:"


@pytest.mark.parametrize(
    "words",
    [
        "sudo: a password is required",
        "sudo: a terminal is required to read the password; either use the -S option to read from standard input or"
        " configure an askpass helper",
    ],
)
async def test_sudo_password_prompt_is_named(tmp_path: Path, words: str) -> None:
    sudo = script(tmp_path / "sudo", f"echo '{words}' >&2; exit 1")
    assert str(await fault(command(tmp_path, python=(sudo, "-n", "python3")))) == (
        f'h1: sudo asks for a password there; allow "{sudo} -n python3" without one (NOPASSWD in sudoers), '
        "or leave sudo out of python:"
    )


async def test_other_faults_are_reported_verbatim(tmp_path: Path) -> None:
    python = script(
        tmp_path / "python3",
        "echo '.bashrc: line 3: /opt/env.sh: No such file or directory' >&2; echo 'no memory' >&2; exit 1",
    )
    assert str(await fault(command(tmp_path, python=(python,)))) == (
        f'h1: its Python did not start: it exited with status 1 (no memory); see what "{python} -IS -c pass" says there'
    )


async def test_killed_python_is_named(tmp_path: Path) -> None:
    python = script(tmp_path / "python3", "kill -4 $$")
    found = await fault(command(tmp_path, python=(python,)))
    assert found.what == "its Python did not start: it was killed by SIGILL"


async def test_other_processor_is_named(tmp_path: Path) -> None:
    bundle = pack({"__main__.py": STAND_IN}, machine="riscv64")
    machine = os.uname().machine
    assert str(await fault(command(tmp_path), bundle)) == (
        f"h1: its processor is {machine}, this controller's engine is for riscv64; for hosts of another kind than the"
        " controller, run scripts/portable in the controller's checkout, or install ivypy's wheel there"
    )


@pytest.fixture(scope="session")
def for_a_newer_libc(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A bundle whose engine was linked against a glibc that does not exist yet."""
    if shutil.which("gcc") is None:
        pytest.skip("this machine lacks gcc")
    folder = tmp_path_factory.mktemp("libc")
    (folder / "future.c").write_text("void from_the_future(void) {}\n")
    (folder / "future.map").write_text("GLIBC_9.99 { global: from_the_future; };\n")
    (folder / "engine.c").write_text("void from_the_future(void);\nvoid use(void) { from_the_future(); }\n")
    shared = ["gcc", "-shared", "-fPIC"]
    future = [*shared, "future.c", "-o", "libc.so.6", "-Wl,-soname,libc.so.6", "-Wl,--version-script,future.map"]
    subprocess.run(future, cwd=folder, check=True)
    subprocess.run([*shared, "engine.c", "-nostdlib", "./libc.so.6", "-o", "_engine.abi3.so"], cwd=folder, check=True)
    return stand_in(**{"ivypy/slave/engine/_engine.abi3.so": (folder / "_engine.abi3.so").read_bytes()})


async def test_libc_too_old_is_named(tmp_path: Path, for_a_newer_libc: Bundle) -> None:
    assert str(await fault(command(tmp_path), for_a_newer_libc)) == (
        f"h1: its libc is {os.confstr('CS_GNU_LIBC_VERSION')}, _engine.abi3.so needs glibc 9.99; "
        "for hosts older than the controller, run scripts/portable in the controller's checkout, or install ivypy's"
        " wheel there"
    )


async def test_an_engine_that_does_not_load_for_another_reason(tmp_path: Path) -> None:
    found = await fault(command(tmp_path), stand_in(**{"ivypy/slave/engine/_engine.abi3.so": b"\x7fELF"}))
    assert found.what.startswith("_engine.abi3.so does not load there (")
    assert "file too short; libc: glibc " in found.what


def mounted(options: str, cache: Path) -> tuple[str, ...]:
    """Words that run a command where `cache` is a file system of its own, which only the command sees."""
    mount = f'mount -t tmpfs -o mode=700,{options} none "$0" && exec "$@"'
    words = ("unshare", "--mount", "sh", "-c", mount, str(cache))
    cache.mkdir(0o700, exist_ok=True)
    if subprocess.run([*words, "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("mount namespaces are not allowed here (root and unshare are needed)")
    return words


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ("ro", "the cache {cache} cannot be used (Read-only file system)"),
        ("size=4k", "the cache {cache} cannot be used (No space left on device)"),
        ("noexec", "_engine.abi3.so may not be executed where the cache is (mounted noexec?)"),
    ],
)
async def test_a_cache_on_a_file_system_that_does_not_serve(tmp_path: Path, options: str, what: str) -> None:
    cache = tmp_path / "cache"
    bundle = stand_in(**{ENGINE_FILE: own_engine()})
    assert str(await fault(command(tmp_path, *mounted(options, cache)), bundle)) == (
        f"h1: {what.format(cache=cache)}; name another directory with cache_dir:"
    )


async def test_a_user_without_a_home_directory(tmp_path: Path) -> None:
    """As containers have them: a number that no name belongs to."""
    python = wrapped(tmp_path, "import os, pwd; os.environ.clear(); pwd.getpwuid = {}.__getitem__")
    assert str(await fault(command(tmp_path, python=(python,), cache_dir=None))) == (
        "h1: the cache ~/.cache/ivypy cannot be used (this user has no home directory there); "
        "name another directory with cache_dir:"
    )


async def test_a_cache_that_is_no_directory(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.touch()
    assert (await fault(command(tmp_path))).what == f"the cache {cache} cannot be used (Not a directory)"


async def test_a_cache_that_is_open_to_others(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o750)
    assert str(await fault(command(tmp_path))) == (
        f'h1: the cache {cache} is open to others (mode 0750); run "chmod 700 {cache}" there if it is yours, '
        "or name another directory with cache_dir:"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
async def test_a_cache_that_belongs_to_another(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(0o700)
    os.chown(cache, 12345, 12345)
    assert (await fault(command(tmp_path))).what == f"the cache {cache} belongs to uid 12345, not to uid 0"


async def test_a_cache_that_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(0o700)
    cache = tmp_path / "cache"
    cache.symlink_to("elsewhere")
    assert (await fault(command(tmp_path))).what == f"the cache {cache} cannot be used (it is a link)"
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, 0o757, 0o775])
async def test_a_cache_below_a_directory_that_others_may_write(tmp_path: Path, mode: int) -> None:
    open_one = tmp_path / "open"
    open_one.mkdir()
    open_one.chmod(mode)
    if os.geteuid() == 0:
        os.chown(open_one, 0, 12345)
    elif mode == 0o775:
        pytest.skip("only root can give a directory to a group")
    (open_one / "mine").mkdir(0o700)
    spec = command(tmp_path, cache_dir=str(open_one / "mine" / "cache"))
    assert str(await fault(spec)) == (
        f"h1: the directory {open_one} above its cache may be written by others (mode {mode:04o});"
        f' run "chmod go-w {open_one}" there if it is yours, or name another directory with cache_dir:'
    )
    assert not (open_one / "mine" / "cache").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
async def test_a_cache_below_a_directory_of_another(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(0o755)
    os.chown(theirs, 12345, 12345)
    found = await fault(command(tmp_path, cache_dir=str(theirs / "cache")))
    assert found.what == f"the directory {theirs} above its cache belongs to uid 12345"


# A command line whose pipe changes what it carries, the payload that is: `damage`, `cut`, or `damage PATH` once only.
FILTER = """
import os, sys
how, path, *words = sys.argv[1:]
far, near = os.pipe()
if os.fork() == 0:
    os.dup2(far, 0)
    os.close(near)
    os.execvp(words[0], words)
os.close(far)
while data := os.read(0, 1 << 16):
    if len(data) > 100 and how == "cut":
        os.write(near, data[:100])
        break
    if len(data) > 100 and not os.path.exists(path):
        data = data[:50] + bytes([data[50] ^ 1]) + data[51:]
        if path:
            open(path, "w").close()
    os.write(near, data)
os.close(near)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def filtered(how: str, path: str = "") -> tuple[str, ...]:
    return (sys.executable, "-c", FILTER, how, path)


async def test_transfer_damaged_twice_is_reported(tmp_path: Path) -> None:
    log: list[str] = []
    assert str(await fault(command(tmp_path, *filtered("damage")), log=log.append)) == (
        "h1: the bundle arrived damaged, 2 times; its pipe changes bytes: give it no terminal "
        "(docker exec -i, not -it); its login scripts may read nothing"
    )
    assert log.count("<- ivypy-boot damaged") == 2
    assert list((tmp_path / "cache").iterdir()) == []


async def test_transfer_damaged_once_is_repeated(tmp_path: Path) -> None:
    log: list[str] = []
    async with opened(command(tmp_path, *filtered("damage", str(tmp_path / "done"))), log=log.append) as pipe:
        assert await ask(pipe, "say yes") == "yes"
    assert log.count("<- ivypy-boot damaged") == 1


async def test_transfer_that_is_cut_is_reported(tmp_path: Path) -> None:
    short = len(stand_in().payload) - 100
    assert str(await fault(command(tmp_path, *filtered("cut")))) == (
        f"h1: the bootstrap failed: it exited with status 1 (the transfer ended {short} bytes short); "
        "check that it stays up, and try again"
    )
    assert list((tmp_path / "cache").iterdir()) == []


async def test_silent_far_end_is_a_timeout(tmp_path: Path) -> None:
    spec = command(tmp_path, "sh", "-c", "exec sleep 1000", connect_timeout_s=0.3)
    assert str(await fault(spec)) == (
        f'h1: no answer from its Python for 0.3 s; see why "{sys.executable} -IS -c pass" takes so long there, '
        "or raise connect_timeout:"
    )


async def test_the_noise_of_login_scripts_is_skipped_and_logged(tmp_path: Path) -> None:
    shell = script(tmp_path / "shell", "echo 'Welcome to lab 7!\r'; echo; printf 'quota: 12%%'; exec \"$@\"")
    log: list[str] = []
    async with opened(command(tmp_path, shell), log=log.append) as pipe:
        assert await ask(pipe, "say yes") == "yes"
    assert log[1:4] == [
        "<- (skipped) Welcome to lab 7!",
        "<- (skipped) quota: 12%",
        f"<- ivypy-boot send\t{platform.machine()}",
    ]


@pytest.mark.parametrize("noise", ["yes", "cat /dev/zero"])
async def test_endless_noise_is_given_up(tmp_path: Path, noise: str) -> None:
    found = await fault(command(tmp_path, "sh", "-c", f"exec {noise}"))
    assert found.what == ("the bootstrap failed: it sent 65536 bytes that are not the bootstrap's")


async def test_unknown_bootstrap_message_is_named(tmp_path: Path) -> None:
    shell = script(tmp_path / "shell", "echo 'ivypy-boot dance\twell'; cat >/dev/null")
    assert (await fault(command(tmp_path, shell))).what == "its bootstrap sent 'dance', which is unknown here"


async def test_a_pipe_that_was_not_opened_leaves_no_process(tmp_path: Path) -> None:
    shell = script(tmp_path / "shell", f"echo $$ > {tmp_path}/pid; echo 'ivypy-boot old\t2.7.18'; exec sleep 1000")
    await fault(command(tmp_path, shell, python=("python2",)))
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def test_the_program_on_the_command_line_survives_every_shell() -> None:
    assert not set("'$\\`!") & set(bootstrap_client.loader())
    assert len(bootstrap_client.loader()) < 7000


WAYS = {  # how the words get to Python
    "as they are": ("env",),
    "bash joins them": ("bash", "-c", 'exec bash -c "$*"', "bash"),
    "sh joins them": ("sh", "-c", 'exec sh -c "$*"', "sh"),
    "zsh joins them": ("zsh", "-c", 'exec zsh -c "$*"', "zsh"),
    "fish joins them": ("bash", "-c", 'exec fish -c "$*"', "fish"),
    "tcsh joins them": ("bash", "-c", 'exec tcsh -c "$*"', "tcsh"),
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_command_may_pass_its_arguments_on_directly_or_to_a_shell(tmp_path: Path, way: str) -> None:
    if missing := [word for word in ("zsh", "fish", "tcsh") if word in way and shutil.which(word) is None]:
        pytest.skip(f"this machine lacks {missing}")
    async with opened(command(tmp_path, *WAYS[way])) as pipe:
        assert await ask(pipe, "say yes") == "yes"


async def test_a_command_line_that_a_second_shell_does_not_take_is_reported_in_short(tmp_path: Path) -> None:
    joins = script(tmp_path / "joins", 'exec bash -c "$*"')
    found = await fault(command(tmp_path, joins, joins))
    assert found.what.startswith("a shell on the way rejects the command line (bash: ") and len(found.what) < 300
    assert found.remedy == "use a command: that passes its arguments on directly, or to one shell only"


async def test_the_log_shows_what_was_run_without_the_program(tmp_path: Path) -> None:
    log: list[str] = []
    bundle = stand_in()
    async with connected(command(tmp_path), bundle, log.append):
        pass
    size = len(bundle.payload)
    assert log == [
        f"-> env {sys.executable} -IS -c <bootstrap> {bundle.machine}:{bundle.hash}:{size} {tmp_path}/cache",
        f"<- ivypy-boot send\t{bundle.machine}",
        f"-> the bundle {bundle.hash[:12]}, {size / 1000:.1f} kB",
        "<- ivypy-boot run",
    ]


def test_the_first_python_of_any_name_is_started(tmp_path: Path) -> None:
    """As sshd's shell starts it: `python3` if it is there, else the newest, else all names in one line."""

    def started() -> "subprocess.CompletedProcess[str]":
        words = [shell, *bootstrap_client.ANY_PYTHON[1:], "-I"]
        return subprocess.run(words, env={"PATH": str(tmp_path)}, capture_output=True, text=True)

    shell = str(shutil.which("sh"))
    if not os.path.exists(bootstrap_script.OF_RED_HAT):
        done = started()
        assert done.returncode == 127
        assert done.stderr == ("python3: not found, nor python3.9 to python3.14, nor /usr/libexec/platform-python\n")
    for name in ("python3.9", "python3.13", "python3"):
        script(tmp_path / name, f"echo {name} $1")
        assert started().stdout == f"{name} -I\n"
