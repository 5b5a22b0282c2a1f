"""What the machine of a rehearsal can do, asked before anything runs; what it cannot is a reason in words."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field

from kernels.precision import NAMES

OFFSCREEN = {"QT_QPA_PLATFORM": "offscreen"}
# Words of a GPU's name that are none of its own: whose it is, its memory, how it is plugged in.
_NO_NAME = re.compile(r"nvidia|geforce|tesla|quadro|graphics|\d+gb|hbm\d\w*|sxm\d*|pcie|nvl", re.IGNORECASE)


@dataclass(frozen=True)
class Machine:
    """gpu: its name, "" without one; no_gpu, no_window, no_compiler: why not ("": it can); datasets: why the
    images of a data set cannot be had, by its name. standin: commands run against a simulated GPU. gpus: what
    CUDA_VISIBLE_DEVICES calls those that there are, where there are several to choose from."""

    gpu: str = ""
    no_gpu: str = ""
    no_window: str = ""
    no_compiler: str = ""
    datasets: dict[str, str] = field(default_factory=dict)
    standin: bool = False
    gpus: tuple[str, ...] = ()

    @property
    def has_gpu(self) -> bool:
        return not self.no_gpu

    @property
    def device(self) -> str:
        return "cuda" if self.has_gpu else "cpu"

    @property
    def backends(self) -> tuple[str, str]:
        """Ours and the reference."""
        return f"engine-{self.device}", f"ort-{self.device}"

    @property
    def precisions(self) -> tuple[str, ...]:
        return NAMES if self.has_gpu else NAMES[:1]

    @property
    def short(self) -> str:
        """The name for a file: "h200" of an NVIDIA H200, "cpu" without a GPU."""
        return "standin" if self.standin else short_name(self.gpu)


def short_name(gpu: str) -> str:
    """ "NVIDIA GeForce RTX 4090" → "rtx-4090"; "" → "cpu"."""
    words = [word for word in re.split(r"[\s_-]+", gpu) if word and not _NO_NAME.fullmatch(word)]
    return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-") or ("gpu" if gpu else "cpu")


def look(standin: bool = False) -> Machine:
    """This machine. Whether there is a GPU is asked of the driver alone: where CuPy is missing beside one,
    nothing is skipped, and what fails for it is told."""
    from engine.machine import driver as cuda_driver

    reason = "" if standin else cuda_driver.unavailable() or ""
    device = None if standin or reason else cuda_driver.device()
    return Machine(
        gpu="a simulated GPU" if standin else device.name if device else "" if reason else "NVIDIA GPU",
        no_gpu=reason,
        no_window=_no_window(),
        no_compiler=_no_compiler(),
        datasets=_no_data(),
        standin=standin,
        gpus=() if standin or reason else _gpus(),
    )


def _gpus() -> tuple[str, ...]:
    """The GPUs that CUDA shows, told apart by their numbers; () where it shows one, or is told which."""
    from engine.machine import driver as cuda_driver

    count = 0 if "CUDA_VISIBLE_DEVICES" in os.environ else cuda_driver.count()
    return tuple(map(str, range(count))) if count > 1 else ()


def _no_compiler() -> str:
    if importlib.util.find_spec("cuda") and importlib.util.find_spec("cuda.bindings"):
        return ""
    return "NVIDIA's compiler (cuda-bindings) is not installed"


@functools.cache
def _no_window() -> str:
    """Why Qt cannot draw here, even offscreen; tried in a process of its own, which it would end."""
    if importlib.util.find_spec("PySide6") is None:
        return "PySide6 is not installed"
    program = "from PySide6.QtWidgets import QApplication; QApplication([])"
    try:
        tried = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | OFFSCREEN,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "Qt does not start within 60 s"
    lines = tried.stderr.strip().splitlines()
    return "" if tried.returncode == 0 else f"Qt does not start: {lines[-1] if lines else tried.returncode}"


def _no_data() -> dict[str, str]:
    """A data set that is not here yet is downloaded by the command that needs it; where it cannot be, there
    is nothing to rehearse it on."""
    from kernels.errors import KernelscopeError
    from models import datasets, names

    missing = {}
    for name in names.datasets():
        if datasets.available(name) is None:
            continue
        try:
            datasets.load(name, 1)
        except KernelscopeError as error:
            missing[name] = str(error)
    return missing
