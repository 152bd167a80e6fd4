"""A virtual machine with Debian's kernel, which has what this machine's lacks: device mapper, null_blk, NVMe.

QEMU emulates its processor, so it works without KVM, at a hundredth of the speed. The guest sees this machine's files,
read-only, and runs one shell script as root. Its devices are its own: nothing of this machine can be written.
"""

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.support.devices import Missing, memory_folder

PROGRAMS: Final = ("qemu-system-x86_64", "busybox", "modprobe", "dmsetup")
MODULES: Final = ("9p", "9pnet_virtio", "virtio_pci", "dm-mod", "null_blk", "nvme")
BEGIN: Final = "ivypy-guest-begins"
END: Final = "ivypy-guest-ends"
NULL_BLK: Final = "nr_devices=1 gb=1 irqmode=2 completion_nsec=20000000 hw_queue_depth=1024 submit_queues=1"

INIT: Final = f"""#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
for m in $(cat /mod/order); do
  case $m in null_blk.ko) insmod /mod/$m {NULL_BLK};; *) insmod /mod/$m;; esac
done
mount -t 9p -o trans=virtio,version=9p2000.L,ro host /host
mount -t proc proc /host/proc; mount -t sysfs sysfs /host/sys; mount --bind /dev /host/dev
mount -t tmpfs tmpfs /host/run; mount -t tmpfs tmpfs /host/tmp
echo {BEGIN}
PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot /host /bin/bash -c "$(cat /script)"
echo {END} $?
sleep 1
echo o > /proc/sysrq-trigger
sleep 10
"""


def _kernel() -> tuple[Path, Path, str]:
    """(its image, the folder with its modules below lib/modules, its release): installed, or unpacked by
    `scripts/setup long`."""
    for root in (Path("/"), Path(sys.prefix) / "guest-kernel"):
        for image in sorted(root.glob("boot/vmlinuz-*"), reverse=True):
            release = image.name.removeprefix("vmlinuz-")
            if (root / "lib/modules" / release / "modules.dep").exists():
                return image, root, release
    raise Missing("a kernel for a guest (Debian: linux-image-amd64)")


@functools.cache
def _modules(root: Path, release: str) -> list[Path]:
    """What is to be loaded, in order."""
    found: list[Path] = []
    for module in MODULES:
        words = ["modprobe", "-d", str(root), "-S", release, "--show-depends", module]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        found += [Path(line.split()[1]) for line in said.splitlines() if line.startswith("insmod")]
    return list(dict.fromkeys(found))


def _make_initrd(folder: Path, script: str, root: Path, release: str) -> Path:
    tree = folder / "tree"
    for name in ("bin", "mod", "proc", "sys", "dev", "host"):
        (tree / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox") or "busybox", tree / "bin")
    for name in ("sh", "mount", "insmod", "cat", "chroot", "sleep"):
        (tree / "bin" / name).symlink_to("busybox")
    modules = _modules(root, release)
    for module in modules:
        shutil.copy(module, tree / "mod")
    (tree / "mod/order").write_text("".join(f"{module.name}\n" for module in modules))
    (tree / "script").write_text(script)
    (tree / "init").write_text(INIT)
    (tree / "init").chmod(0o755)
    initrd = folder / "initrd"
    words = "find . | busybox cpio -o -H newc 2>/dev/null"
    with open(initrd, "wb") as file:
        subprocess.run(["sh", "-c", words], cwd=tree, stdout=file, check=True)
    return initrd


def run_in_guest(script: str, nvme_bytes: int = 64 << 20, timeout_s: float = 300.0, controllers: int = 1) -> list[str]:
    """What a shell script says as root in the guest, line by line. Raises Missing; AssertionError where it fails.

    The guest has an NVMe disk; with more than one controller, it reaches it by as many paths.
    """
    if missing := [program for program in PROGRAMS if shutil.which(program) is None]:
        raise Missing(", ".join(missing))
    if os.uname().machine != "x86_64":
        raise Missing("an x86-64 machine, to share its programs with a guest")
    image, root, release = _kernel()
    with memory_folder("guest-") as folder:
        disk = folder / "nvme"
        with open(disk, "wb") as file:
            file.truncate(nvme_bytes)
        words = ["qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2"]
        words += ["-m", "1024", "-nographic", "-no-reboot", "-net", "none", "-kernel", str(image)]
        words += ["-initrd", str(_make_initrd(folder, script, root, release))]
        words += ["-append", "console=ttyS0 quiet panic=1"]
        words += ["-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"]
        words += ["-drive", f"file={disk},if=none,id=nv,format=raw"]
        if controllers == 1:
            words += ["-device", "nvme,serial=ivypy1,drive=nv"]
        else:
            words += ["-device", "nvme-subsys,id=subsystem"]
            words += ["-device", "nvme,serial=ivypy1,subsys=subsystem"] * controllers
            words += ["-device", "nvme-ns,drive=nv"]
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    lines = [line.rstrip("\r") for line in done.stdout.splitlines()]
    lines = [BEGIN if line.endswith(BEGIN) else line for line in lines]  # the firmware ends no line
    assert BEGIN in lines, f"the guest did not start: {done.stderr}\n{done.stdout[-4000:]}"
    assert f"{END} 0" in lines, "\n".join(lines[lines.index(BEGIN) :])
    said = lines[lines.index(BEGIN) + 1 : lines.index(f"{END} 0")]
    return [line for line in said if not line.startswith("[")]  # the kernel's own
