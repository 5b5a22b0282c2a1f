"""A GPU for machines without one: the whole program runs as on a machine that has one.

Replaced is what lies below the program alone: CuPy, CUDA's driver, compiler and profiler, ONNX Runtime's CUDA
provider. Memory is the host's; a kernel's launch is held to CUDA's limits and then answered by NumPy from its
arguments; times come from a model (`tests.standin.device`). What it cannot show is whether a kernel computes
what its launch asks for: that is for a real device.

`environment()` is what a child process needs to see it, `python -m tests.standin main.py …` runs any command.

`tests.standin` stands in for a GPU below the program: CuPy, libcuda, NVRTC's bindings, cuBLAS, CUPTI,
ONNX Runtime's CUDA provider. Memory is the host's; what is put on a stream is done when somebody waits
for it; launches are held to CUDA's limits and answered by NumPy from their own arguments and the bytes
they point to (packed weights are unpacked by the kernel's defines); times come from a model. Whether a
kernel computes what its launch asks for it cannot tell. A planted kernel is answered by the CPU's rung of
the same file name. `python -m tests.standin main.py …` runs any command so, `python -m tests.standin -m
pytest -m gpu …` the tests that are for a GPU.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tests.standin.settings import VARIABLE, Settings

SITE = Path(__file__).parent / "site"


def environment(base: Mapping[str, str] | None = None, settings: Settings | None = None) -> dict[str, str]:
    """os.environ, or `base`, with the stand-in in it."""
    found = dict(os.environ if base is None else base)
    paths = [str(SITE), *filter(None, found.get("PYTHONPATH", "").split(os.pathsep))]
    found["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    found.pop("CUDA_VISIBLE_DEVICES", None)
    if settings is not None:
        found[VARIABLE] = settings.as_text()
    return found
