"""What one student's kernels are judged within: limits of time and memory, no network, no files but their
own. Bubblewrap makes the outer wall where it is installed; what there is without it is said."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.extras.fleet import device_lock
from kernels import confine
from kernels.cache import cache_dir

PROGRAM = "bwrap"


@dataclass(frozen=True)
class Walls:
    """mib: memory of a process (0: no limit of ours). hidden: folders that are not to be seen. inside:
    "auto", "bwrap" or "none"."""

    device: str = "cpu"
    mib: int = 0
    hidden: tuple[str, ...] = ()
    inside: str = "auto"

    def command(self, command: Sequence[str], folder: Path) -> list[str]:
        """How to start a worker within them; it may write to `folder`."""
        if self.inside == "none" or not usable():
            return list(command)
        box = [
            PROGRAM, "--die-with-parent", "--unshare-net", "--unshare-ipc", "--unshare-pid", "--unshare-uts",
            "--ro-bind", "/", "/", "--proc", "/proc", "--tmpfs", "/tmp",
        ]  # fmt: skip
        box += ["--dev-bind", "/dev", "/dev"] if self.device == "cuda" else ["--dev", "/dev"]
        for hidden in self.hidden:
            if Path(hidden).is_dir():
                box += ["--tmpfs", hidden]
        for needed in _below_tmp():
            box += ["--ro-bind", needed, needed]
        box += ["--bind", str(folder), str(folder), "--chdir", str(folder)]
        kept = [device_lock.folder(), *([cache_dir()] if self.device == "cuda" else [])]
        for path in kept:
            if path.is_dir():
                box += ["--bind", str(path), str(path)]
        return [*box, "--", *command]

    def environment(self, folder: Path) -> dict[str, str]:
        """What a worker within them is told."""
        if self.inside == "none":
            return {}
        told = {"TMPDIR": str(folder)}
        if usable():
            told[confine.NO_NETWORK] = "1"
        if self.device == "cpu":
            # What is compiled for a GPU is shared: nothing that runs there writes files. Here a kernel may.
            told |= {"KERNELSCOPE_CACHE": str(folder / "cache"), confine.CONFINED: ""}
            if self.mib:
                told[confine.MEMORY] = str(self.mib)
        return told


def _below_tmp() -> list[str]:
    """What Python and the program need that lies in /tmp, which is else not to be seen."""
    wanted = {sys.prefix, sys.base_prefix, str(Path(__file__).resolve().parents[3])}
    return sorted(path for path in wanted if path.startswith("/tmp/"))


@functools.cache
def usable() -> bool:
    """Whether bubblewrap is installed and may make its namespaces here."""
    if shutil.which(PROGRAM) is None:
        return False
    try:
        tried = subprocess.run(
            [PROGRAM, "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--unshare-net",
             "--unshare-pid", "--unshare-ipc", "--", "true"],
            capture_output=True, timeout=20, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


def words(device: str) -> str:
    """What there is on this machine, in a sentence."""
    outer = (
        "bubblewrap keeps each submission from the network, from other processes and from files"
        if usable()
        else "bubblewrap is not to be had here"
    )
    if device == "cuda":
        return f"{outer}; a CUDA kernel runs on the GPU alone, and reaches neither files nor network"
    return f"{outer}; {_inner()}"


@functools.cache
def _inner() -> str:
    """What the system itself offers, tried in a process of its own."""
    code = (
        "from kernels import confine; a = confine.isolate_network(); b = confine.restrict(); "
        "print(a or 'no network'); print(b or 'no files, no signals')"
    )
    root = str(Path(__file__).resolve().parents[3])
    try:
        told = subprocess.run(
            [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=30, check=False
        ).stdout.split("\n")
    except (OSError, subprocess.TimeoutExpired):
        told = []
    if len(told) < 2:
        return "the system itself offers no walls that could be tried"
    good = [line for line in told[:2] if line.startswith("no network") and "can be made" not in line]
    good += [told[1]] if told[1].startswith("no files") else []
    lacking = [line for line in told[:2] if line and line not in good]
    said = f"the system itself takes away: {', '.join(good)}" if good else ""
    return "; ".join(filter(None, [said, f"missing: {'; '.join(lacking)}" if lacking else ""]))
