"""Faster than possible is no result: a time below what the work asks for at least is a fault of measuring.

The bound has to be true. Bytes for which there is no room in the caches count at the memory's rate; all that
a pass has to move, at the rate of the caches, but for what may lie nearer to the cores. Multiplications count
where no way is known that does with fewer: of matrix products, not of convolutions, which Winograd's and
Fourier's ways do with a fraction. What was measured of a machine is not all that it can, so rates are taken
higher by what is said below. Where they are not known nothing is claimed.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import numpy as np

from bench.ladder.records import MARGIN, MORE_BYTES, MORE_CACHED, MachineLimits, RungMeasurement
from bench.results.records import Layer, Measurement
from bench.words import units
from engine.graph.graph import Graph
from kernels.ops import Params
from kernels.ops.gemm import Gemm

MORE_FLOPS = {"cpu": 1.5, "cuda": 1.1}
WGMMA = 2.0  # over what mma.sync reaches, by which the matrix units were measured
STRASSEN = 7 / 8  # of a product's multiplications

Measured = TypeVar("Measured", Measurement, RungMeasurement)


@dataclass(frozen=True)
class Work:
    """What a pass asks of a machine at least. read, written: bytes; products: operations of matrix products
    alone, in this precision."""

    read: int
    written: int
    products: int = 0
    precision: str = "fp32"
    surely: bool = True  # whether all of it is moved even where it lies in a cache


def of_params(p: Params, precision: str = "fp32") -> Work:
    """Of one operator. Weights count nothing: they may lie packed, or in another precision."""
    read = p.least_read() * np.dtype(p.dtype).itemsize
    written = p.outputs * np.dtype(p.out_dtype).itemsize
    products = 2 * p.m * p.n * p.k * p.batch if isinstance(p, Gemm) else 0
    return Work(read, written, products, precision)


def of_model(graph: Graph, batch: int, precision: str) -> Work:
    """Of a whole pass: its inputs, its outputs, and the weights of products and convolutions once."""
    used = {
        name for node in graph.nodes if node.op_type in ("Conv", "Gemm", "MatMul") for name in node.inputs
    }
    elements = sum(array.size for name, array in graph.initializers.items() if name in used)
    each = 4 if precision == "fp32" else 2

    def nbytes(shape: tuple[int | str | None, ...]) -> int:
        return each * math.prod([d if isinstance(d, int) else batch for d in shape])

    free = {"float32", "float16"}
    read = sum(nbytes(info.shape) for info in graph.inputs if info.dtype in free) if _image(graph) else 0
    # Of a whole model it may be little: weights that others are worked out of are read once, not in each
    # pass.
    return Work(read + elements * each, 0, 0, precision, surely=False)


def least_s(work: Work, limits: MachineLimits, cold: bool = False) -> tuple[float, str]:
    """Seconds that the machine takes at least, and what for; 0.0 where nothing is known."""
    found = [(0.0, "")]
    if limits.cache_nbytes:
        # Cold, nothing that is read lies in a cache; what is written may stay there.
        beyond = max(0, work.read + work.written - limits.cache_nbytes)
        beyond = max(beyond, work.read) if cold and limits.device == "cuda" else beyond
        rate = limits.bytes_per_s * MORE_BYTES[limits.device]
        found.append(
            (beyond / rate, f"{units.nbytes(beyond)} that no cache holds at {units.si(rate, 'B/s')}")
        )
    if work.surely and limits.cache_bytes_per_s:
        both = max(0, work.read + work.written - limits.nearest_nbytes)
        moved = both if limits.device == "cpu" else max(work.read, work.written)
        rate = limits.cache_bytes_per_s * MORE_CACHED[limits.device]
        found.append((moved / rate, f"{units.nbytes(moved)} out of the caches at {units.si(rate, 'B/s')}"))
    if work.products and (rate := _product_rate(limits, work.precision)):
        flops = work.products * STRASSEN
        found.append((flops / rate, f"its multiplications at {units.si(rate, 'FLOP/s')}"))
    return max(found)


def held(measured: Measured, work: Work, limits: MachineLimits | None, cold: bool = False) -> Measured:
    """The measurement; where it says what cannot be, it is "invalid", with the reason and without its
    samples: nothing is compared with it, and it is the best of nothing."""
    if limits is None or measured.disposition != "ok" or not measured.samples_ns:
        return measured
    seconds, why = least_s(work, limits, cold)
    median_s = statistics.median(measured.samples_ns) / 1e9
    if median_s >= MARGIN * seconds:
        return measured
    reason = (
        f"{units.duration(median_s * 1e9)} a pass is faster than this machine can be: "
        f"{why} take {units.duration(seconds * 1e9)}"
    )
    return msgspec.structs.replace(
        measured, disposition="invalid", reason=reason, samples_ns=(), rounds=(), instances=()
    )


def layers(measured: Measurement, limits: MachineLimits | None) -> Measurement:
    """The measurement, its layers saying where their bytes cannot have come out of the memory."""
    if limits is None or not measured.layers:
        return measured
    return msgspec.structs.replace(measured, layers=tuple(_beyond(one, limits) for one in measured.layers))


def _beyond(layer: Layer, limits: MachineLimits) -> Layer:
    # A step's share of one kernel's time need not be when its bytes came.
    if not layer.time_ns or layer.clock == "stamps":
        return layer
    written = np.dtype(np.float32).itemsize * math.prod(layer.shape)
    surely = max(0, layer.nbytes - layer.unread)
    return msgspec.structs.replace(layer, beyond=limits.beyond(surely, written, layer.time_ns / 1e9))


def _product_rate(limits: MachineLimits, precision: str) -> float:
    """Operations a second that products of this precision are not faster than; 0.0 where not known."""
    plain = limits.flops_per_s * MORE_FLOPS[limits.device]
    if limits.device == "cpu":
        return plain
    if not limits.matrix_flops_per_s:
        return 0.0
    fastest = WGMMA * max(limits.matrix_flops_per_s.values())
    # Three products of a lower precision make one of float32.
    return max(plain, fastest / 3) if precision in ("fp32", "fp32-tc") else max(plain, fastest)


def _image(graph: Graph) -> bool:
    """Whether the input is certainly read whole: a first node that has no strides."""
    names = {info.name for info in graph.inputs}
    first = [node for node in graph.nodes if names & set(node.inputs)]
    return bool(first) and all(
        node.op_type in ("Conv", "Gemm", "MatMul", "Flatten", "Reshape")
        and all(step == 1 for step in node.attributes.get("strides", ()))
        for node in first
    )
