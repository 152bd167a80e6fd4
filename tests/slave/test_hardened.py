"""The modules of C, as the compiler and the linker made them: they are loaded as root, the engine on many machines."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "slave" / "engine"
MODULES = [*sorted(ENGINE.glob("**/*.abi3.so")), *(ROOT / "master" / "logs" / "native").glob("*.abi3.so")]

pytestmark = pytest.mark.skipif(shutil.which("readelf") is None, reason="this machine lacks readelf")


def said(option: str, module: Path) -> str:
    done = subprocess.run(["readelf", "-W", option, module], capture_output=True, text=True, check=True)
    return done.stdout


def test_there_is_one_to_look_at() -> None:
    assert any(module.parent == ENGINE for module in MODULES)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(ROOT)))
def test_a_module_is_hardened(module: Path) -> None:
    """Nothing of it can be redirected once it is loaded, no library of it is looked for where others may write."""
    dynamic, segments = said("-d", module), said("-l", module)
    assert "BIND_NOW" in dynamic or re.search(r"FLAGS_1.*NOW", dynamic)
    assert "RPATH" not in dynamic and "RUNPATH" not in dynamic
    assert "GNU_RELRO" in segments and re.search(r"GNU_STACK .* RW ", segments)


# On x86-64: `mov`, `sub` or `cmp` with the canary, at %fs:0x28. Elsewhere nothing in a stripped file tells.
CANARY = re.compile(rb"\x64\x48[\x8b\x2b\x3b].\x25\x28\x00\x00\x00", re.DOTALL)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(ROOT)))
def test_a_module_finds_out_that_a_buffer_overflowed(module: Path) -> None:
    if "X86-64" in said("-h", module):
        assert CANARY.search(module.read_bytes())
    if module.name.startswith("_engine"):
        assert re.search(r"__(?!stack)\w+_chk\b", said("--dyn-syms", module))
