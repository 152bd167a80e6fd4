"""Block devices that this machine does not have, as the small files that the kernel would show of them."""

from pathlib import Path

from ivypy.slave.devices import block_devices

QUEUE = {
    "queue__logical_block_size": "512",
    "queue__physical_block_size": "4096",
    "queue__rotational": "0",
    "queue__scheduler": "none [mq-deadline] kyber",
    "queue__nr_requests": "256",
    "ro": "0",
}


class SysfsTree:
    """A root folder with the small files of devices that this machine does not have."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "sys/block").mkdir(parents=True)
        (root / "dev").mkdir()

    def disk(self, device: str, name: str, number: str, **files: str) -> Path:
        """A disk below the sysfs folder of its `device`, which is in sys/devices."""
        folder = self.root / "sys/devices" / device / "block" / name
        self.write(folder, size="2048", dev=number, **files)
        (folder / "device").symlink_to("../..")
        (self.root / "sys/block" / name).symlink_to(folder)
        (self.root / "dev" / name).touch()
        return folder

    def write(self, folder: Path, **files: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            place = folder / name.replace("__", "/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text + "\n")

    def attributes(self) -> dict[str, dict[str, int | float | str]]:
        return {d.name: d.attributes for d in block_devices.all_devices(self.root)}
