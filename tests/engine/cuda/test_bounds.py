"""What a stranger's kernel may take of a GPU's memory: it is read from what was really compiled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.cuda import bounds
from engine.machine import driver
from kernels import confine, cubin, nvrtc, registry
from kernels.errors import KernelError, OutOfMemoryError
from kernels.registry import Rung

THREADS = 132 * 2048
BEFORE: Mapping[str, str] = {  # a function
    "large": "__device__ char large[3ull << 30];\n",
    "beyond": "__device__ char large[300ull << 30];\n",  # ptxas cuts its size to 32 bits, and says 0 bytes
    "constant": "__constant__ char large[40000]; __device__ int first[4] = {1, 2, 3, 4};\n",
}
WITHIN: Mapping[str, str] = {
    "plain": "",
    "large": "if (large[threadIdx.x]) return;",
    "beyond": "if (large[threadIdx.x]) return;",
    "constant": "if (large[threadIdx.x] + first[threadIdx.x & 3] == 77) return;",
    "stack": "volatile char large[200000]; for (int i = threadIdx.x; i < 200000; ++i) large[i] = i;",
    "starts": "probe<<<1, 1>>>();",
}


def rung(folder: Path, name: str) -> Rung:
    source = registry.find("cuda", "softmax", 1).source
    source = re.sub(r"^rung = \d+", "rung = 90", source, count=1, flags=re.MULTILINE)
    source = re.sub(r'^name = "\w+"', 'name = "mine"', source, count=1, flags=re.MULTILINE)
    at = source.index("{", source.index("__global__")) + 1
    source = f"{source[:at]}\n    {WITHIN[name]}{source[at:]}"
    before = BEFORE.get(name, "") + "__global__ void probe() {}\n" * (name == "starts")
    (folder / name).mkdir()
    whole = source.replace('extern "C" __global__', before + 'extern "C" __global__', 1)
    (folder / name / "90_mine.cu").write_text(whole)
    return registry.find("cuda", "softmax", "mine", [folder / name])


class Driver:
    """What limits of a context are set to."""

    def __init__(self) -> None:
        self.limits: dict[int, int] = {}

    def cuCtxSetLimit(self, limit: int, nbytes: Any) -> int:
        self.limits[limit] = nbytes.value
        return 0


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Driver:
    held = Driver()
    monkeypatch.setattr(driver, "library", lambda: held)
    return held


def device() -> SimpleNamespace:
    attributes = {"MultiProcessorCount": 132, "MaxThreadsPerMultiProcessor": 2048}
    return SimpleNamespace(cuda=SimpleNamespace(Device=lambda: SimpleNamespace(attributes=attributes)))


@pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
def test_who_takes_more_than_it_may_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: Driver
) -> None:
    compiled = {
        name: nvrtc.compile_rung(rung(tmp_path, name), "sm_80") for name in WITHIN if name != "starts"
    }
    asked = {name: cubin.asked(path.read_bytes()) for name, path in compiled.items()}
    assert asked == {  # and the address of a variable, 8 bytes
        "plain": cubin.Asked(0, 0),
        "large": cubin.Asked((3 << 30) + 8, 0),
        "beyond": cubin.Asked(300 << 30, 0),
        "constant": cubin.Asked(40016 + 8, 0),
        "stack": cubin.Asked(0, 200000),
    }
    with pytest.raises(KernelError, match="kernel launch"):  # it starts none of its own
        nvrtc.compile_rung(rung(tmp_path, "starts"), "sm_80")

    def admitted(name: str, workspace_nbytes: int = 0) -> None:
        found = registry.find("cuda", "softmax", "mine", [tmp_path / name])
        bounds.admit(device(), found, compiled[name], workspace_nbytes)

    for name in compiled:  # nobody said that a stranger wrote it
        admitted(name)
    assert not library.limits
    monkeypatch.setenv(confine.WALLED_MIB, "2048")
    for name in ("plain", "constant"):
        admitted(name, 2000 << 20)
    assert library.limits == {1: 64 << 10, 2: 8 << 20}
    library.limits.clear()
    for name, words in {
        "large": "the 2,048 MiB that it may: 3,072 MiB of variables",
        "beyond": "307,200 MiB of variables",
        "stack": f"51,562 MiB of stacks of {THREADS:,} threads, 200,000 bytes each",
    }.items():
        with pytest.raises(OutOfMemoryError, match=re.escape(words)):
            admitted(name)
    with pytest.raises(OutOfMemoryError, match="2,049 MiB of workspace"):
        admitted("plain", 2049 << 20)
    assert not library.limits
    ours = registry.find("cuda", "softmax", 1)
    bounds.admit(device(), ours, compiled["large"])  # of this program: it takes what it needs


@pytest.mark.parametrize(
    "held", [b"", b"\x7fELF\x02" + bytes(10), b"\x7fELF\x02" + b"\xff" * 80, b"no cubin" * 9]
)
def test_what_is_no_cubin_is_refused(held: bytes) -> None:
    with pytest.raises(KernelError, match="no cubin"):
        cubin.asked(held)
