# ruff: noqa: UP031, RUF005
"""The first program on a test host: sent on its command line, it reports what is missing, or becomes the slave of
the bundle.

    python3 -IS -c LOADER <processor>:<bundle's hash>:<payload's size>[,...] [<cache directory>]

It writes lines `ivypy-boot <word>[TAB argument]...` on the pipe. After `send` it reads the payload of the bundle that
it chose, after `run` one byte, and nothing else ever, so that no byte meant for the slave is lost. Every other word but
`note` is its last.

Rule: Python 3.4 parses this file, so that an old Python can report that it is too old. Nothing runs from the cache that
was not read and hashed in this process, as an exact set of files: what was hashed is run by its descriptor, whatever
its path leads to by then, and the cache is where nobody else may put anything. A bundle in use carries a shared lock,
which the program inherits without knowing it; who removes a bundle takes that lock exclusively. No Python looks for
installed packages (-S): it needs none, and some installations take longer for that than for all else.
"""

import errno
import fcntl
import hashlib
import importlib.machinery
import os
import shutil
import stat
import sys
import tempfile
import time
import zlib

OLDEST = (3, 9)
NEWEST = 14  # of the names python3.N that are tried
OF_RED_HAT = "/usr/libexec/platform-python"  # where nobody installed another
PROBE = "import sys; print(sys.implementation.name, *sys.version_info[:3])"
KEPT = 5  # bundles that stay in the cache, whatever their age
TRIES = 20  # to replace a damaged bundle: 20 to 90 ms each
FRESH, OLD = ".ivypy-new-", ".ivypy-old-"  # a bundle that is on its way into the cache, or out of it
OLD_S = 24 * 3600  # locks do not reach across hosts that share a home directory, so what was used today stays too


def main(offers: str, cache: str = "") -> None:
    if not serves(sys.implementation.name, sys.version_info[:2]):
        use_another_python()
    machine = os.uname().machine
    offered = {one.split(":")[0]: one.split(":")[1:] for one in offers.split(",")}
    if machine not in offered:
        last("machine", machine)
    digest, size = offered[machine]
    home = os.path.expanduser(cache or default_cache())
    if home.startswith("~"):
        last("os-error", home, "this user has no home directory there")
    home = os.path.abspath(home)
    try:
        home = open_cache(home)
        held = hold(os.path.join(home, digest), digest)
        if held is None:
            held = install(home, digest, receive(machine, digest, int(size)))
            sweep(home, time.time())
        os.utime(held)
        os.set_inheritable(held, True)
        place = through(held)
    except OSError as error:
        last("os-error", home, error.strerror or str(error))
    for path in sorted(hashes(place)):
        if path.endswith(".so"):
            load(place, path)
    say("run")
    if os.read(0, 1):
        os.execv(sys.executable, [sys.executable, "-ISB", place])


def serves(name: str, version: "tuple[int, ...]") -> bool:
    """Whether the slave runs on such a Python. PyPy lacks the stable ABI, which the engine is built for."""
    return name == "cpython" and version >= OLDEST


def use_another_python() -> None:
    """Become the newest Python of this machine that serves, with the same words; or report those that do not."""
    import subprocess

    versions = [shown(sys.implementation.name, sys.version_info[:3])]
    for path in other_pythons():
        try:
            words = subprocess.check_output(
                [path, "-IS", "-c", PROBE], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            ).split()
            name, version = words[0].decode(), (int(words[1]), int(words[2]), int(words[3]))
        except (OSError, subprocess.CalledProcessError, ValueError, IndexError):
            continue
        if serves(name, version[:2]):
            say("note", "its Python is %s, so %s is used" % (versions[0], path))
            with open("/proc/self/cmdline", "rb") as file:
                os.execv(path, [path.encode()] + file.read().split(b"\0")[1:-1])
        versions.append("%s is %s" % (path, shown(name, version)))
    last("old", *versions)


def shown(name: str, version: "tuple[int, ...]") -> str:
    return ("" if name == "cpython" else name + " ") + ".".join(map(str, version))


def other_pythons() -> "list[str]":
    names = ["python3"] + ["python3.%d" % minor for minor in range(NEWEST, OLDEST[1] - 1, -1)] + [OF_RED_HAT]
    return [path for path in map(shutil.which, names) if path]


def say(*words: str) -> None:
    """One line; the newline before it ends whatever a login script may have left without one."""
    fields = [" ".join(word.split()) for word in words]
    os.write(1, ("\nivypy-boot " + "\t".join(fields) + "\n").encode("utf-8", "backslashreplace"))


def last(*words: str) -> None:
    say(*words)
    raise SystemExit(1)


def default_cache() -> str:
    base = os.environ.get("XDG_CACHE_HOME", "")
    return os.path.join(base if os.path.isabs(base) else "~/.cache", "ivypy")


def open_cache(home: str) -> str:
    """Make the cache directory, or see that it is ours alone; its path, without links and out of others' reach."""
    mask = os.umask(0o077)
    os.makedirs(os.path.dirname(home), exist_ok=True)
    os.umask(mask)
    parent = os.path.realpath(os.path.dirname(home))
    see_to_parents(parent)
    home = os.path.join(parent, os.path.basename(home))
    try:
        os.mkdir(home, 0o700)
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise
    status = os.lstat(home)
    if stat.S_ISLNK(status.st_mode):
        last("os-error", home, "it is a link")
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if status.st_uid != os.geteuid():
        last("open-cache", home, "belongs to uid %d, not to uid %d" % (status.st_uid, os.geteuid()))
    if status.st_mode & 0o077:
        last("open-cache", home, "is open to others (mode %04o)" % stat.S_IMODE(status.st_mode))
    return home


def see_to_parents(path: str) -> None:
    """See that nobody but this user and root can put another directory in the place of one that leads to the cache.

    In a sticky one, such as /tmp, they cannot. A group with its user's number is that user's own.
    """
    while True:
        status = os.lstat(path)
        mode = stat.S_IMODE(status.st_mode)
        if status.st_uid not in (0, os.geteuid()):
            last("open-parent", path, "belongs to uid %d" % status.st_uid)
        group = mode & 0o020 and status.st_gid not in (0, status.st_uid)
        if (group or mode & 0o002) and not mode & stat.S_ISVTX:
            last("open-parent", path, "may be written by others (mode %04o)" % mode)
        if path == os.path.dirname(path):
            return
        path = os.path.dirname(path)


def digest_of(found: "dict[str, str]") -> str:
    """A bundle's name: sha256 of its sorted lines `path hash`."""
    lines = ["%s %s\n" % (path, found[path]) for path in sorted(found)]
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def hashes(place: str) -> "dict[str, str]":
    """sha256 of every file below `place`; a link or device is there too, with a hash that no file has."""
    hash_of = {}
    for folder, folders, names in os.walk(place):
        for name in names + folders:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISREG(mode):
                with open(path, "rb") as file:
                    hash_of[os.path.relpath(path, place)] = hashlib.sha256(file.read()).hexdigest()
            elif not stat.S_ISDIR(mode):
                hash_of[os.path.relpath(path, place)] = "-"
    return hash_of


def hold(place: str, digest: str) -> "int | None":
    """A descriptor that holds the bundle's lock, if the bundle is there and whole."""
    try:
        held = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise
    try:
        lock(held, fcntl.LOCK_SH)
        if os.path.samestat(os.fstat(held), os.lstat(place)) and digest_of(hashes(through(held))) == digest:
            return held
    except FileNotFoundError:
        pass  # removed meanwhile
    os.close(held)
    return None


def through(held: int) -> str:
    """The path of what this descriptor holds, and of nothing else; in whatever this process becomes, too."""
    return "/proc/self/fd/%d" % held


def lock(held: int, how: int) -> bool:
    """Whether the lock was had. A file system without locks has none to give: then age alone protects."""
    try:
        fcntl.flock(held, how)
    except OSError:
        return False
    return True


def receive(machine: str, digest: str, size: int) -> "dict[str, bytes]":
    """Ask for the payload and read exactly it: zlib of, for each file, `<path> <size>` newline and its bytes."""
    say("send", machine)
    pieces = []
    while size:
        piece = os.read(0, min(size, 1 << 16))
        if not piece:
            raise SystemExit("the transfer ended %d bytes short" % size)
        pieces.append(piece)
        size -= len(piece)
    try:
        files = unpack(zlib.decompress(b"".join(pieces)))
    except (ValueError, zlib.error):
        files = {}
    if digest_of({path: hashlib.sha256(data).hexdigest() for path, data in files.items()}) != digest:
        last("damaged")
    return files


def unpack(data: bytes) -> "dict[str, bytes]":
    files = {}
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        path, size = data[at:end].decode().rsplit(" ", 1)
        at = end + 1 + int(size)
        files[path] = data[end + 1 : at]
    return files


def install(home: str, digest: str, files: "dict[str, bytes]") -> int:
    """Put the bundle in its place, whole or not at all; returns its lock. Several may do so at once: one wins."""
    place = os.path.join(home, digest)
    fresh = tempfile.mkdtemp(prefix=FRESH, dir=home)
    try:
        for path, data in files.items():
            target = os.path.join(fresh, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                file.write(data)
        held = hold(fresh, digest)  # locked before anyone else can see it
        if held is None:
            raise OSError(errno.EIO, "data written there reads back differently")
        for _ in range(TRIES):
            try:
                os.rename(fresh, place)
                return held
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    raise
            theirs = hold(place, digest)
            if theirs is not None:
                os.close(held)
                return theirs
            if remove_unused(place):
                say("note", "the bundle in the cache was changed; it is replaced")
            else:
                time.sleep(0.02 + os.getpid() % 8 * 0.01)  # others read it too, and hold its lock meanwhile
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    raise OSError(errno.EBUSY, "the bundle %s in it was changed while it is in use" % digest[:12])


def sweep(home: str, now: float) -> None:
    """Remove what nobody uses: bundles that are neither among the newest, nor locked, nor used today; and leftovers.

    The directory may be one that somebody has other things in: what is not as it was sent is not taken for a bundle.
    """
    ages = {}
    for name in os.listdir(home):
        try:
            ages[name] = now - os.lstat(os.path.join(home, name)).st_mtime
        except OSError:
            pass  # another sweeps too
    bundles = sorted((name for name in ages if len(name) == 64 and name.isalnum()), key=lambda name: ages[name])
    for name in bundles[KEPT:]:
        if ages[name] > OLD_S and is_bundle(home, name):
            remove_unused(os.path.join(home, name))
    for name in ages:
        if ages[name] > OLD_S and name.startswith((FRESH, OLD)):
            remove_unused(os.path.join(home, name))


def is_bundle(home: str, name: str) -> bool:
    place = os.path.join(home, name)
    try:
        return not os.path.islink(place) and digest_of(hashes(place)) == name
    except OSError:
        return False  # another removes it, or it is not ours to read


def remove_unused(path: str) -> bool:
    """Out of the way at once, by a rename, then gone; unless someone holds its lock. Whether it was done."""
    try:
        held = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            if not (lock(held, fcntl.LOCK_EX | fcntl.LOCK_NB) and os.path.samestat(os.fstat(held), os.stat(path))):
                return False
            folder = tempfile.mkdtemp(prefix=OLD, dir=os.path.dirname(path))
            os.rename(path, os.path.join(folder, "bundle"))
            shutil.rmtree(folder, ignore_errors=True)
            return True
        finally:
            os.close(held)
    except OSError:
        return False  # another was quicker; or it stays, and does no harm


def load(place: str, path: str) -> None:
    """See that a compiled module finds what it needs on this machine; after `run` it is too late to explain."""
    name = os.path.basename(path).split(".")[0]
    file = os.path.join(place, path)
    loader = importlib.machinery.ExtensionFileLoader(name, file)
    try:
        loader.create_module(importlib.machinery.ModuleSpec(name, loader, origin=file))
    except (ImportError, OSError) as error:
        last("native", path, libc(), str(error))


def libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or "unknown"
    except (ValueError, OSError):
        return "not glibc"


if __name__ == "__main__":
    main(*sys.argv[1:])
