"""Faster than possible is no result: a time below what the work asks for at least is a fault of measuring,
or the work was not done.

The bound has to be true. Bytes for which there is no room in the caches count at the memory's rate; all that
a pass has to move, at the rate of the caches, but for what may lie nearer to the cores. Multiplications count
as many as the method that a rung's header declares cannot do without (Params.least_flops): those of a direct
kernel one by one, fewer for Winograd's, Fourier's and Strassen's ways. Rates are the highest that was ever
measured here, of several means each. Where they are not known nothing is claimed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import numpy as np

from bench.results import stats
from bench.results.machine_limits import MachineLimits
from bench.results.records import Layer, Measurement, TimedResult
from bench.words import units
from engine.graph.graph import Graph
from kernels.ops import METHODS, Params
from kernels.precision import EXACT

BEYOND = 1.1  # of a limit: what is surely faster than that cannot be
# By the data sheets, over what the matrix units were measured to reach. Of H100 and H200 in float16: 989 of
# 650 by mma.sync; 989 of about 790 by wgmma, as random numbers take the power that the clock would need.
WGMMA = 1.55


Measured = TypeVar("Measured", bound=TimedResult[Any])


@dataclass(frozen=True)
class Work:
    """What a pass asks of a machine at least. read, written: bytes; flops: operations, in this precision.
    method: by which they are counted ("": whichever asks for the fewest)."""

    read: int
    written: int
    flops: float = 0.0
    precision: str = "fp32"
    method: str = ""
    surely: bool = True  # whether all of it is moved even where it lies in a cache


def of_params(p: Params, precision: str = "fp32", method: str = "") -> Work:
    """Of one operator, by a method of kernels.ops.METHODS, or by any. Weights count nothing: they may lie
    packed, or in another precision."""
    read = p.least_read() * np.dtype(p.dtype).itemsize
    written = p.outputs * np.dtype(p.out_dtype).itemsize
    flops = min(p.least_flops(each) for each in ([method] if method else METHODS))
    return Work(read, written, flops, precision, method)


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
        rate = limits.bytes_per_s
        found.append(
            (beyond / rate, f"{units.nbytes(beyond)} that no cache holds at {units.si(rate, 'B/s')}")
        )
    if work.surely and limits.cache_bytes_per_s:
        both = max(0, work.read + work.written - limits.nearest_nbytes)
        moved = both if limits.device == "cpu" else max(work.read, work.written)
        rate = limits.cache_bytes_per_s
        found.append((moved / rate, f"{units.nbytes(moved)} out of the caches at {units.si(rate, 'B/s')}"))
    if work.flops and (rate := _rate(limits, work)):
        counted = "" if work.method in ("", "split") else f", counted as {work.method},"
        found.append((work.flops / rate, f"its multiplications{counted} at {units.si(rate, 'FLOP/s')}"))
    return max(found)


def share(measured: Measured, work: Work, limits: MachineLimits | None, cold: bool = False) -> float:
    """How far a time is beyond what the machine takes at least, by the end of its interval that is slowest:
    above BEYOND it cannot be. 0.0 where nothing is known of it."""
    if limits is None or measured.disposition != "ok" or not measured.samples_ns:
        return 0.0
    return least_s(work, limits, cold)[0] / (_interval(measured).high / 1e9)


def held(measured: Measured, work: Work, limits: MachineLimits | None, cold: bool = False) -> Measured:
    """The measurement; where it surely says what cannot be, it is "invalid", with the reason and without its
    samples: nothing is compared with it, and it is the best of nothing. Where it may be so, it says so."""
    if limits is None or measured.disposition != "ok" or not measured.samples_ns:
        return measured
    seconds, why = least_s(work, limits, cold)
    time = _interval(measured)
    if seconds <= BEYOND * time.value / 1e9:
        return measured
    surely = seconds > BEYOND * time.high / 1e9
    reason = (
        f"{units.duration(time.value)} a pass {'is' if surely else 'may be'} faster than this machine can "
        f"be: {why} take {units.duration(seconds * 1e9)}"
    )
    if not surely:
        warnings = (*measured.validity.warnings, reason)
        doubted = msgspec.structs.replace(measured.validity, warnings=warnings)
        return msgspec.structs.replace(measured, validity=doubted)
    if work.method == "direct" and work.flops:
        reason += '; where a method that multiplies less is used, the header says so (method = "winograd")'
    return msgspec.structs.replace(
        measured, disposition="invalid", reason=reason, samples_ns=(), rounds=(), instances=()
    )


def _interval(measured: Measured) -> stats.Interval:
    return stats.median_interval(measured.samples_ns, measured.rounds, instances=measured.instances)


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


def _rate(limits: MachineLimits, work: Work) -> float:
    """Operations a second that nothing of this precision and method is faster than; 0.0 where not known."""
    plain, matrix = limits.flops_per_s, WGMMA * limits.matrix_most
    narrow = work.precision not in EXACT
    if limits.device == "cpu" or (work.precision == "fp32" and work.method not in ("", "split")):
        return 0.0 if limits.device == "cpu" and narrow else plain
    if not matrix:
        return 0.0
    return max(plain, matrix if narrow else matrix / 3)  # three products of a lower precision make one


def _image(graph: Graph) -> bool:
    """Whether the input is certainly read whole: a first node that has no strides."""
    names = {info.name for info in graph.inputs}
    first = [node for node in graph.nodes if names & set(node.inputs)]
    return bool(first) and all(
        node.op_type in ("Conv", "Gemm", "MatMul", "Flatten", "Reshape")
        and all(step == 1 for step in node.attributes.get("strides", ()))
        for node in first
    )
