"""Copies through page-locked memory: in pieces, in order, and the memory goes from one to the next."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.cuda import runtime as cuda_runtime


class _Event:
    def __init__(self, **named: object) -> None: ...

    def record(self, stream: object) -> None: ...

    def synchronize(self) -> None: ...


class _Cupy:
    """What Staging needs of CuPy, on the host: the device is an array, an address a place in it."""

    def __init__(self, nbytes: int) -> None:
        self.device = np.zeros(nbytes, np.uint8)
        self.pinned: list[np.ndarray] = []
        self.cuda = SimpleNamespace(
            runtime=SimpleNamespace(memcpyAsync=self._copy),
            PinnedMemory=self._allocate,
            PinnedMemoryPointer=lambda memory, at: memory.array[at:],
            Event=_Event,
        )

    def _allocate(self, nbytes: int) -> Any:
        self.pinned.append(np.zeros(nbytes, np.uint8))
        return SimpleNamespace(ptr=self.pinned[-1].ctypes.data, array=self.pinned[-1])

    def _copy(self, to: int, source: int, nbytes: int, kind: int, stream: object) -> None:
        assert kind in (cuda_runtime.TO_DEVICE, cuda_runtime.TO_HOST)
        host = to if kind == cuda_runtime.TO_HOST else source
        held = next(a for a in self.pinned if 0 <= host - a.ctypes.data < a.nbytes)
        pinned = held[host - held.ctypes.data :][:nbytes]
        if kind == cuda_runtime.TO_DEVICE:
            self.device[to : to + nbytes] = pinned
        else:
            pinned[:] = self.device[source : source + nbytes]


@pytest.mark.parametrize("much", [10, 1 << 20])
@pytest.mark.parametrize("nbytes", [1, 255, 256, 1000, 5000])
def test_what_was_uploaded_comes_back_whole(nbytes: int, much: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_runtime, "_HALF_NBYTES", 1024)
    monkeypatch.setattr(cuda_runtime, "_MUCH_NBYTES", much)
    monkeypatch.setattr(cuda_runtime, "_COPIERS", 3)
    staging = cuda_runtime.Staging(_Cupy(8192), SimpleNamespace(ptr=0), nbytes)
    assert staging.nbytes <= 2048
    sent, got = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8), np.zeros(nbytes, np.uint8)
    staging.upload(sent, 64)
    staging.download(64, got)
    np.testing.assert_array_equal(sent, got)


def test_the_next_takes_over_what_one_leaves_behind_and_no_two_share_it() -> None:
    gc.collect()  # what other tests left behind is known before, and takes no place from what is left here
    cupy = _Cupy(1)
    first = cuda_runtime.Staging(cupy, SimpleNamespace(ptr=0), 3000)
    second = cuda_runtime.Staging(cupy, SimpleNamespace(ptr=0), 4096)
    assert len(cupy.pinned) == 2
    del first
    gc.collect()
    third = cuda_runtime.Staging(cupy, SimpleNamespace(ptr=0), 2100)
    assert len(cupy.pinned) == 2
    assert third.nbytes == second.nbytes
    cuda_runtime.Staging(cupy, SimpleNamespace(ptr=0), 100)
    cuda_runtime.Staging(_Cupy(1), SimpleNamespace(ptr=0), 100)  # of another device: never shared
    assert len(cupy.pinned) == 3
    kept = [cuda_runtime.Staging(cupy, SimpleNamespace(ptr=0), 1 << (9 + i)) for i in range(6)]
    del kept
    gc.collect()
    assert len(cuda_runtime._spare) <= 3


def test_a_rung_whose_own_arrays_do_not_fit_says_that_memory_did_not_suffice():
    """And not that it lacks what it has: its name is asked for when it is loaded."""
    from engine.cuda import stages
    from kernels import registry
    from kernels.errors import KernelError, OutOfMemoryError

    rung = registry.find("cuda", "gemm", 1)

    def refuse(reason):
        raise RuntimeError(reason)

    with pytest.raises(OutOfMemoryError, match="load gemm 01 naive"):
        stages._kernel_or_error(
            rung, "gemm", lambda name: refuse("CUDA_ERROR_OUT_OF_MEMORY: out of memory"), "gemm"
        )
    with pytest.raises(KernelError, match="must define gemm"):
        stages._kernel_or_error(rung, "gemm", lambda name: refuse("CUDA_ERROR_NOT_FOUND"), "gemm")
