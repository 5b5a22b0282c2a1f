"""What data sheets say of GPUs (gpus.toml), and the floor below a kernel's time that follows from its counts:
no estimate, but a time that no such GPU can stay below at the clock of its data sheet.

What a multiprocessor does a clock at most is the same on compute capability 7.0 to 9.0: four schedulers issue
an instruction of a warp each; shared memory gives one wavefront, 4 bytes from each of its 32 banks (CUDA C++
Programming Guide, "Compute Capabilities"); the L1 cache moves 128 bytes, which are four sectors (NVIDIA A100
Tensor Core GPU Architecture; of Turing half of that is told)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernels import toml
from kernels.errors import InputError
from kernels.nearest import did_you_mean

ISSUED, SECTORS, WAVEFRONTS = 4, 4, 1  # a clock and multiprocessor
SECTOR = 32  # bytes


@dataclass(frozen=True)
class Gpu:
    name: str
    capability: tuple[int, int]
    multiprocessors: int
    clocks_per_s: float
    bytes_per_s: float
    l2_nbytes: int
    source: str


@dataclass(frozen=True)
class Floor:
    """seconds: no pass takes less. by: which of instructions, sectors, wavefronts or memory says so."""

    seconds: float
    by: str


@functools.cache
def known() -> Mapping[str, Gpu]:
    """By name."""
    told = toml.read(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {
        name: Gpu(
            name,
            (it["capability"][0], it["capability"][1]),
            it["multiprocessors"],
            it["clock_mhz"] * 1e6,
            it["memory_gb_per_s"] * 1e9,
            int(it["l2_mib"] * (1 << 20)),
            it["source"],
        )
        for name, it in told.items()
    }


def find(name: str) -> Gpu:
    """By name, however it is written. Raises InputError with those that are known."""

    def plain(text: str) -> str:
        return text.casefold().replace(" ", "").replace("-", "").removeprefix("geforce").removeprefix("rtx")

    for gpu in known().values():
        if plain(gpu.name) == plain(name):
            return gpu
    raise InputError(
        f"there is no data sheet of a GPU {name!r}{did_you_mean(name, list(known()))}; there are those of "
        f"{', '.join(known())}"
    )


def floor(gpu: Gpu, counted: Mapping[str, int], nbytes: int) -> Floor:
    """Below which no pass stays. counted: instructions, sectors and wavefronts of a pass; nbytes: what it
    reads and writes at least, of which the L2 cache may hold what fits into it."""
    a_clock = gpu.multiprocessors * gpu.clocks_per_s
    bounds = {
        "instructions": counted.get("instructions", 0) / (ISSUED * a_clock),
        "sectors": counted.get("sectors", 0) / (SECTORS * a_clock),
        "wavefronts": counted.get("wavefronts", 0) / (WAVEFRONTS * a_clock),
        "memory": max(0, nbytes - gpu.l2_nbytes) / gpu.bytes_per_s,
    }
    by = max(bounds, key=lambda name: bounds[name])
    return Floor(bounds[by], by)
