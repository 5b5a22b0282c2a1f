"""An operator → a shared library, built from one C file by this machine's compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from kernels.cpu.compiled import ENTRY
from kernels.errors import KernelError, UnavailableError
from kernels.exported import source
from kernels.exported.operator import Operator

TILES = "kernelscope_tiles"  # as long as ENTRY, in whose place it stands in an object file
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror")
# Threads of ONNX Runtime keep memory that this library frees when they end: it stays loaded.
LINKED = (
    "-Wl,-z,nodelete",
    "-Wl,-z,notext",
    "-Wl,-z,defs",
    "-Wl,--version-script=exports.map",
    "-lm",
    "-ldl",
    "-lpthread",
)
EXPORTS = "{ global: RegisterCustomOps; kernelscope_open; kernelscope_run; local: *; };\n"
WAIT_S = 120.0


def file_name(op: Operator) -> str:
    """What the library is called. Without "lib" Python would take it for the module of that name."""
    return f"lib{op.name}.so"


def compiler() -> str:
    """The path of the machine's C compiler. Raises UnavailableError where there is none."""
    if not sys.platform.startswith("linux"):
        raise UnavailableError(
            "an operator is exported on Linux alone: its library is built with Linux's linker"
        )
    named = os.environ.get("CC", "").strip()
    for name in [named] if named else COMPILERS:
        if (found := shutil.which(name)) is not None:
            return found
    what = f"the C compiler {named}, which CC names, is not" if named else "no C compiler (cc, gcc, clang) is"
    raise UnavailableError(
        f"{what} on the PATH, and an exported operator is built by one: install gcc or clang"
    )


def written(op: Operator, folder: Path) -> list[Path]:
    """Write the C file, the library and what lies beside it into the folder. Gives the paths. Raises
    UnavailableError without a C compiler, KernelError where it fails."""
    by = compiler()
    folder.mkdir(parents=True, exist_ok=True)
    text, library = folder / f"{op.name}.c", folder / file_name(op)
    text.write_text(source.text(op), encoding="utf-8")
    files = [text, library]
    for number, module in enumerate(op.modules):
        ptx = folder / f"{op.name}.{number}.ptx"
        ptx.write_text(module.ptx, encoding="utf-8")
        files.append(ptx)
        if module.cubin is not None:
            cubin = ptx.with_suffix(".cubin")
            cubin.write_bytes(module.cubin)
            files.append(cubin)
    with tempfile.TemporaryDirectory(prefix="kernelscope-") as place:
        building = Path(place)
        shutil.copy(text, building / text.name)
        (building / "exports.map").write_text(EXPORTS)
        objects = []
        for number, code in enumerate(op.code):
            named = code if number == 0 else code.replace(ENTRY.encode(), TILES.encode())
            objects.append(f"{number}.o")
            (building / objects[-1]).write_bytes(named)
        (building / "tables.bin").write_bytes(op.tables)
        _run([by, *FLAGS, "-o", library.name, text.name, *objects, *LINKED], building, op)
        library.unlink(missing_ok=True)  # written over, it would break a program that has it loaded
        shutil.move(building / library.name, library)
    return files


def _run(command: list[str], folder: Path, op: Operator) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=WAIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KernelError(f"{op.words}: the C compiler {command[0]} did not build it: {error}") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
        why = lines[0] if lines else f"it ended with {done.returncode}"
        raise KernelError(f"{op.words}: the C compiler {command[0]} did not build it: {why}")
