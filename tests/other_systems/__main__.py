"""`python -m tests.other_systems [SYSTEM...]`: the program as on other systems, in a minute or two for each.

Its commands run in folders of their own; what must come of each stands in `COMMANDS`. Exit code 1 if one
does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.other_systems import SYSTEMS, WITHOUT, environment, kernels

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("--budget", "0.05", "--charts", "none")
ONE = ("--instances", "1")
SHAPE = ("--shape", "1,2,9,9,3,3")
# Not those that are for another compiler or library, or that run when they are imported.
IMPORTS = """
import importlib, pkgutil, sys
sys.path.insert(0, sys.argv[1])
apart = ("kernels.cuda", "kernels.languages.compilers", "models.train", "engine.rivals")
for top in ("bench", "engine", "gui", "kernels", "models"):
    for module in pkgutil.walk_packages(importlib.import_module(top).__path__, f"{top}."):
        if not module.name.startswith(apart):
            importlib.import_module(module.name)
print("no module fails")
"""
# Exit code, what must be printed, and the command.
COMPARISON = ("compare", "lenet5-digits", "--batch", "4", "--images", "16")
COMMANDS: tuple[tuple[int, tuple[str, ...], tuple[str, ...]], ...] = (
    (0, ("system", "file locks", "engine-cpu"), ("doctor",)),
    (0, ("engine-cpu", "ort-cpu", "top-1"), (*COMPARISON, *SMALL, *ONE)),
    (
        0,
        ("engine-cpu", "ort-cpu", "A profiled pass in parts"),
        ("profile", "lenet5-digits", "--batch", "4", *SMALL),
    ),
    (0, ("shift_and_add", "the reference: ok"), ("ladder", "conv", "--device", "cpu", *SHAPE, *SMALL, *ONE)),
    (
        1,
        ("mine (yours)", "crashed", "timed out", "wrong on all"),
        ("ladder", "conv", "--device", "cpu", *SHAPE, "--kernels", "kernels", "--timeout", "6", *SMALL, *ONE),
    ),
    (0, ("conv",), ("runs", "list")),
)


def main(systems: list[str]) -> int:
    failed = 0
    for system in systems or SYSTEMS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            kernels(folder / "kernels")
            told = environment(system, without="numba,llvmlite") | {
                "KERNELSCOPE_CACHE": str(folder / "cache"),
                "KERNELSCOPE_DATA": os.environ.get("KERNELSCOPE_DATA", ""),
                "QT_QPA_PLATFORM": "offscreen",
            }
            everything = (0, ("no module fails",), ("-c", IMPORTS, str(ROOT)))
            commands = [(code, says, (str(ROOT / "main.py"), *words)) for code, says, words in COMMANDS]
            for code, says, words in (everything, *commands):
                variables = told | ({WITHOUT: ""} if words[0] == "-c" else {})
                done = subprocess.run(
                    [sys.executable, *words],
                    cwd=folder, env=variables, capture_output=True, text=True, timeout=200,
                )  # fmt: skip
                output = done.stdout + done.stderr
                lacks = [part for part in says if part not in output]
                # On macOS two locks are as on Linux.
                lacks = [part for part in lacks if (system, part) != ("darwin", "file locks")]
                good = done.returncode == code and not lacks and "Traceback" not in output
                failed += not good
                shown = "import every module" if words[0] == "-c" else " ".join(words[1:])
                print(f"{'ok  ' if good else 'BAD '} {system}: {shown}", flush=True)
                if not good:
                    print(f"exit code {done.returncode}, lacks {lacks}\n{output[-3000:]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
