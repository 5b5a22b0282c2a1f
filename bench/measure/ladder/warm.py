"""What a ladder's worker does before it is given a job, so that a kernel that was saved waits for nothing but
its own compiling, checking and timing: libraries loaded, the device's context made, one small rung rehearsed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import threading

from engine.cuda.runtime import import_cupy
from engine.machine import driver as cuda_driver
from kernels.errors import KernelscopeError
from kernels.ops.conv import Conv

# As small as shows everything: an oracle's answer, a pass, its comparison, a sample.
REHEARSED = Conv(n=1, c=1, h=6, w=6, m=1, kh=3, kw=3, out_h=4, out_w=4, bias=True, activation="relu")


def warm_up() -> None:
    """Returns once all is loaded. What does not work is left to the first job, which tells it in its own
    words."""
    # CUDA's own errors are RuntimeErrors; ours are told from them where a job meets them.
    waking = threading.Thread(target=_wake_device, daemon=True, name="device")
    waking.start()
    # Meanwhile, since making a context is the driver's work: what the judge and the reference need.
    from bench.measure.ladder import runner  # noqa: F401
    from engine import backends
    from engine.ort import sessions as ort

    with contextlib.suppress(KernelscopeError):
        ort.import_onnxruntime()
    _answer()
    backends.get("engine-cuda").unavailable()  # which loads the compiler, where there is a driver
    waking.join()
    with contextlib.suppress(KernelscopeError, RuntimeError):
        rehearse()


def rehearse() -> None:
    """Run a rung of ours as the user's will be, on the GPU where there is one. Raises KernelscopeError."""
    from bench.judge import Trial
    from bench.measure.ladder.entrants import ENGINES, capability
    from engine import backends
    from kernels import registry

    device = "cuda" if backends.get(ENGINES["cuda"]).unavailable() is None else "cpu"
    rungs = registry.rungs(device, REHEARSED.op)
    rung = next(rung for rung in rungs if rung.refusal(REHEARSED, capability(device)) is None)
    with Trial(rung, REHEARSED, threads=1) as trial:
        trial.check("before a job")
        trial.time_runs(1)


def _wake_device() -> None:
    """The GPU's context, where there is a GPU and CuPy for it."""
    if cuda_driver.unavailable() is None and importlib.util.find_spec("cupy") is not None:
        with contextlib.suppress(KernelscopeError, RuntimeError):
            import_cupy().cuda.Device().synchronize()


def _answer() -> None:
    """One of the oracle's, whose operators take as long to load as all of a small check."""
    import numpy as np

    from bench.measure.answers import samples

    samples.draw(REHEARSED, np.random.default_rng(0))
