"""What this machine reaches at most: bytes copied and operations done in a second, measured by kernels of
ours.

No data sheet is used, but a copy of memory far larger than the caches, one within the caches, and
multiplications that need no memory: in float32 and, on a GPU that has them, by the matrix units. A CPU's BLAS
may be half as fast as our compiled kernels, because it does not know the processor well: both are tried.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from engine.cpu.steps import Blas, team
from engine.cuda.runtime import capability_of, import_cupy, load_module, translated
from engine.machine import host
from engine.machine.host import free_nbytes
from kernels import numba_support, nvrtc, registry
from kernels.cpu import rates
from kernels.errors import KernelError
from kernels.registry import Rung

FOLDER = registry.ROOT / "cuda" / "probe"
SECONDS = 0.25  # of each probe
COPIED_NBYTES = 64 << 20  # at least
CACHES = 4  # so many times the last cache
DEVICE_COPIED_NBYTES = 512 << 20
COPIES = 50  # within a cache, one after the other
CACHE_ROUNDS = 64
MATRIX = 1536
TILES_S = 0.005  # of multiply-adds, a thread, between two looks at the clock
FMA_ROUNDS, FMA_A_ROUND = 512, 16 * 8  # a thread; as in probe/fma.cu
BLOCK, BLOCKS_A_MULTIPROCESSOR = 256, 16
WARPS = BLOCK // 32
# By the type of the factors, as in probe/mma.cu and probe/wgmma.cu; and how many are added up at once.
FORMATS = {"tf32": 32, "fp16": 16, "bf16": 8, "int8": 1}
_STEPS = {"tf32": 8, "fp16": 16, "bf16": 16, "int8": 32}
MMA_ROUNDS, MMA_A_ROUND = 512, 4 * 8  # a warp
MMA_CAPABILITY = (8, 0)
WGMMA_CAPABILITY = (9, 0)  # that one alone
WGMMA_A_ROUND = 4  # a group of four warps
# Operations of one product of a warp, and of a group.
MMA = {name: 2 * 16 * 8 * steps for name, steps in _STEPS.items()}
WGMMA = {name: 2 * 64 * 192 * steps for name, steps in _STEPS.items()}


@dataclass(frozen=True)
class Reached:
    """Rates in a second, and by what they were measured, in words. matrix_flops_per_s: of the matrix units,
    or of instructions that add up several products, by type of the factors (FORMATS); matrix_missing: why a
    GPU's rates are not known. cache_nbytes: of all
    caches together, 0 where not known. cache_bytes_per_s: of all second-level caches together.
    nearest_nbytes: what may stay in caches nearer than these from one pass to the next. Both are 0 where not
    known."""

    bytes_per_s: float
    flops_per_s: float
    copied_by: str
    multiplied_by: str
    matrix_flops_per_s: Mapping[str, float] = field(default_factory=dict)
    matrix_by: str = ""
    matrix_missing: str = ""
    cache_nbytes: int = 0
    cache_bytes_per_s: float = 0.0
    nearest_nbytes: int = 0


def cpu(threads: int | None = None) -> Reached:
    """The faster of NumPy's copy and BLAS's reading; the faster of BLAS's matrix product and compiled chains
    of multiply-adds. threads: None: one for each physical core."""
    threads = threads or host.physical_cores()
    blas = Blas()
    room = free_nbytes() // 8
    size = min(max(COPIED_NBYTES, CACHES * host.last_level_cache_nbytes()), max(COPIED_NBYTES, room))
    source = np.ones(size // 4, np.float32)
    target = np.zeros_like(source)
    parts = zip(np.array_split(target, threads), np.array_split(source, threads), strict=True)
    calls = [partial(np.copyto, into, of) for into, of in parts]
    copying = _best(partial(team(threads).run, calls) if threads > 1 else calls[0])
    # What only reads is faster than a copy, which fetches what it overwrites as well.
    products = [partial(np.dot, part, part) for part in np.array_split(source, threads)]
    reading = _best(partial(team(threads).run, products) if threads > 1 else products[0])
    moved = [(2 * source.nbytes / copying, "copying"), (source.nbytes / reading, "reading")]
    bytes_per_s, doing = max(moved)
    nearest, second = host.level_nbytes(1)[0], host.level_nbytes(2)[1]
    cached = _cached(threads, second) if nearest and second else 0.0
    blas.limit(threads)
    a = np.ones((MATRIX, MATRIX), np.float32)
    product = np.empty_like(a)
    multiplying = _best(lambda: np.matmul(a, a, out=product))
    words = f"{threads} thread{'s' if threads > 1 else ''}"
    measured_rates = [(2 * MATRIX**3 / multiplying, f"{blas.words}, {MATRIX}×{MATRIX} matrices, {words}")]
    if numba_support.unavailable() is None:
        with contextlib.suppress(KernelError):  # what is then known is the BLAS's
            measured_rates.append((_chained(threads), f"compiled multiply-adds in vector registers, {words}"))
    matrices: dict[str, float] = {}
    if numba_support.unavailable() is None:
        with contextlib.suppress(KernelError):
            matrices["int8"] = _chained_bytes(threads)
    flops_per_s, multiplied_by = max(measured_rates)
    return Reached(
        bytes_per_s=bytes_per_s,
        flops_per_s=flops_per_s,
        copied_by=f"NumPy {doing} {size >> 20} MiB, {words}",
        multiplied_by=multiplied_by,
        matrix_flops_per_s=matrices,
        matrix_by=f"compiled products of bytes in vector registers, {words}" if matrices else "",
        cache_nbytes=host.all_caches_nbytes(),
        cache_bytes_per_s=cached,
        nearest_nbytes=nearest,
    )


def _cached(threads: int, cache_nbytes: int) -> float:
    """Bytes a second of all threads, each within half of its own second-level cache: copying, adding or
    reading, whichever is the fastest."""
    pairs = [np.ones((2, cache_nbytes // 4 // 4), np.float32) for _ in range(threads)]

    def again(call: Callable[[np.ndarray], object], pair: np.ndarray) -> None:
        for _ in range(COPIES):
            call(pair)

    ways: tuple[tuple[Callable[[np.ndarray], object], int], ...] = (
        (lambda pair: np.copyto(pair[1], pair[0]), 2),
        (lambda pair: np.add(pair[0], pair[0], out=pair[1]), 2),
        (lambda pair: np.dot(pair[0], pair[0]), 1),
    )
    bandwidths = []
    for call, moved in ways:
        calls = [partial(again, call, pair) for pair in pairs]
        seconds = _best(partial(team(threads).run, calls) if threads > 1 else calls[0], 1 / len(ways))
        bandwidths.append(COPIES * moved * sum(pair[0].nbytes for pair in pairs) / seconds)
    return max(bandwidths)


def _chained(threads: int) -> float:
    """Operations a second of all threads, with tiles of the shape that is fastest in one thread."""

    def seconds(shape: tuple[int, int]) -> float:
        call = rates.chains(*shape, 1)
        return min(_timed(call) for _ in range(9)) / rates.operations(*shape, 1)

    rows, vectors = shape = min(rates.SHAPES, key=seconds)
    rounds = max(1, round(TILES_S / (seconds(shape) * rates.operations(*shape, 1))))
    calls = [rates.chains(rows, vectors, rounds) for _ in range(threads)]
    best_seconds = _best(partial(team(threads).run, calls) if threads > 1 else calls[0])
    return threads * rates.operations(rows, vectors, rounds) / best_seconds


def _chained_bytes(threads: int) -> float:
    """Operations a second of all threads, with tiles of eight-bit products."""
    rounds = max(1, round(TILES_S / min(_timed(rates.byte_chains(1)) for _ in range(9))))
    calls = [rates.byte_chains(rounds) for _ in range(threads)]
    best_seconds = _best(partial(team(threads).run, calls) if threads > 1 else calls[0])
    return threads * rates.DOTS * rounds / best_seconds


def cuda() -> Reached:
    """The rates of the current device, by kernels of ours: a copy in device memory, chains of multiply-adds,
    and products by the matrix units. Raises what engine.cuda.rung raises."""
    cupy = import_cupy()
    with translated("the probes of the GPU"):
        device, capability = cupy.cuda.Device(), capability_of(cupy)
        arch = f"sm_{capability[0]}{capability[1]}"
        missing = no_matrix_units(capability)
        blocks = BLOCKS_A_MULTIPROCESSOR * int(device.attributes["MultiProcessorCount"])
        source = cupy.cuda.alloc(DEVICE_COPIED_NBYTES)
        target = cupy.cuda.alloc(DEVICE_COPIED_NBYTES)
        source.memset(0, DEVICE_COPIED_NBYTES)
        both = (np.uint64(source.ptr), np.uint64(target.ptr))
        everything = (*both, np.int64(DEVICE_COPIED_NBYTES // 16))
        copying = _best_on_device(cupy, "copy", arch, blocks, everything)
        # What only reads, as a product of one row does its weights, may be faster than a copy.
        streaming = _best_on_device(cupy, "memory", arch, blocks, everything)
        cache_nbytes = int(device.attributes.get("L2CacheSize", 0))
        words = cache_nbytes // 4 // 16
        reading = _best_on_device(cupy, "cache", arch, blocks, (*both, np.int64(words))) if words else 0.0
        multiplying = _best_on_device(cupy, "fma", arch, blocks, (*both, np.int64(FMA_ROUNDS)))
        matrices, units = ({}, "") if missing else _matrix_units(cupy, capability, arch, blocks, both)
    moved = [(2 * DEVICE_COPIED_NBYTES / copying, "copying"), (DEVICE_COPIED_NBYTES / streaming, "reading")]
    bytes_per_s, doing = max(moved)
    return Reached(
        bytes_per_s=bytes_per_s,
        flops_per_s=2.0 * FMA_ROUNDS * FMA_A_ROUND * blocks * BLOCK / multiplying,
        copied_by=f"a kernel {doing} {DEVICE_COPIED_NBYTES >> 20} MiB, 16 bytes a thread",
        multiplied_by="a kernel of float32 multiply-adds in registers",
        matrix_flops_per_s=matrices,
        matrix_by=units,
        matrix_missing=missing or "",
        cache_nbytes=cache_nbytes,
        cache_bytes_per_s=CACHE_ROUNDS * 16 * words / reading if reading else 0.0,
    )


def _matrix_units(
    cupy: Any, capability: tuple[int, int], arch: str, blocks: int, both: tuple[np.uint64, np.uint64]
) -> tuple[dict[str, float], str]:
    """Operations a second by precision, with the instruction by which this device has most, and how they were
    measured."""
    ways = {"mma": (MMA, MMA_A_ROUND * WARPS)}
    if capability == WGMMA_CAPABILITY:
        ways["wgmma"] = (WGMMA, WGMMA_A_ROUND * WARPS // 4)
    rates = {
        (precision, way): of_one[precision] * float(MMA_ROUNDS * a_round * blocks)
        / _best_on_device(cupy, f"{way}_{precision}", arch, blocks, (*both, np.int64(MMA_ROUNDS)))
        for way, (of_one, a_round) in ways.items()
        for precision in of_one
    }  # fmt: skip
    best = {precision: max(ways, key=lambda way: rates[precision, way]) for precision in MMA}
    words = {
        "mma": "kernels of mma.sync in registers, sums of 32 bits",
        "wgmma": "kernels of wgmma with both operands in shared memory, sums of 32 bits",
    }
    said = " and ".join(words[way] for way in dict.fromkeys(best.values()))
    return {precision: rates[precision, way] for precision, way in best.items()}, said


def no_matrix_units(capability: tuple[int, int]) -> str | None:
    """Why the matrix units of a device of this compute capability are not measured, or None."""
    if capability >= MMA_CAPABILITY:
        return None
    needed, have = (".".join(map(str, c)) for c in (MMA_CAPABILITY, capability))
    return f"mma.sync in TF32 needs compute capability {needed} or newer, and this device has {have}"


def probe(name: str) -> Rung:
    """A kernel of the probe as the compiler takes it. The file is read once."""
    rounds = {"cache": CACHE_ROUNDS, "memory": 1}.get(name)
    way, _, precision = name.partition("_")
    if precision:
        found = registry.code(FOLDER / f"{way}.cu", "probe", FORMAT=FORMATS[precision])
        needs = {"architecture": WGMMA_CAPABILITY} if way == "wgmma" else {}
        return replace(found, needs=MappingProxyType(needs))
    file = name if rounds is None else "reading"
    return registry.code(FOLDER / f"{file}.cu", "probe", **({} if rounds is None else {"ROUNDS": rounds}))


def _best_on_device(cupy: Any, name: str, arch: str, blocks: int, arguments: tuple[Any, ...]) -> float:
    """Seconds of the fastest launch, by CUDA events."""
    kernel = load_module(cupy, nvrtc.compile_rung(probe(name), arch)).get_function("probe")
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while len(times) < 5 or time.perf_counter() < end:
        start.record()
        kernel((blocks,), (BLOCK,), arguments)
        stop.record()
        stop.synchronize()
        times.append(float(cupy.cuda.get_elapsed_time(start, stop)) / 1e3)
    return min(times)


def _best(work: Callable[[], object], share: float = 1.0) -> float:
    """Seconds of the fastest call, so that other programs do not count. share: of SECONDS, how long to
    try."""
    times: list[float] = []
    end = time.perf_counter() + share * SECONDS
    while len(times) < 3 or time.perf_counter() < end:
        times.append(_timed(work))
    return min(times)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
