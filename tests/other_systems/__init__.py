"""The program as on Windows and macOS, played on this machine.

`site/sitecustomize.py` is on the path of every process that is started with `environment(system)`. What
modules of the program import from there on is that system's: `sys.platform`, `os`, `signal`, `select`,
`socket` and others lack what that system lacks, and files below /proc, /sys and /dev/shm are not there. What
the program uses (NumPy, ONNX Runtime, psutil) sees the real system.

This finds calls of functions and modules that another system has not, and that what is done instead works.
It does not find how functions of the same name behave there: paths, file locks, how processes end. For that
there is .github/workflows/other-systems.yml, to be run by whoever has such machines.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

SYSTEMS = ("win32", "darwin")
PLAYED = "KERNELSCOPE_TEST_SYSTEM"
WITHOUT = "KERNELSCOPE_TEST_WITHOUT"  # packages that are not installed, by commas


def environment(system: str, without: str = "") -> dict[str, str]:
    """The variables of a process that is to run as on that system."""
    places = [str(Path(__file__).with_name("site")), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {PLAYED: system, WITHOUT: without, "PYTHONPATH": os.pathsep.join(places)}


# What is put into the pass of a kernel, by its name, and before which line.
CHANGES = {
    "mine": ("", ""),
    "aborts": ("    def run():\n", "    def run():\n        __import__('os').abort()\n"),
    "endless": ("    def run():\n", "    def run():\n        while True:\n            pass\n"),
    "wrong": ("y.fill(0)", "y.fill(1)"),
}


def kernels(folder: Path, names: tuple[str, ...] = tuple(CHANGES)) -> None:
    """Write kernels of a user's for conv into this folder: a right one, and such as abort, never end or
    answer wrong."""
    from kernels import registry

    (plain,) = (registry.ROOT / "cpu" / "conv").glob("01_*.py")
    text = plain.read_text("utf-8")
    folder.mkdir(parents=True)
    for number, name in enumerate(names, 90):
        old, new = CHANGES[name]
        assert old in text
        made = re.sub(r"^# rung = .*", f"# rung = {number}", text, flags=re.MULTILINE)
        made = re.sub(r"^# name = .*", f'# name = "{name}"', made, flags=re.MULTILINE)
        (folder / f"{number}_{name}.py").write_text(made.replace(old, new, 1), encoding="utf-8")
