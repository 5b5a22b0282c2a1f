"""Where a session of ONNX Runtime reads its inputs and leaves its outputs, and whether a pass over bound
memory answers as a plain `run` does.

A bound input that lies on another device than the nodes run on that read it is copied there once, when it is
bound (onnxruntime/core/session/IOBinding.cc: BindInput calls CopyOneInputAcrossDevices). What is written to
the bound memory afterwards never reaches these nodes. So an input is bound on the device on which the session
says that it is read (`get_input_memory_infos`), and an output where the session says that it is written. A
CUDA graph may be captured only where every node, input and output is on the GPU (ONNX Runtime's page on the
CUDA execution provider, "Using CUDA Graphs").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.precision import PRECISIONS

_CPU = "CPUExecutionProvider"


@dataclass(frozen=True)
class Placed:
    """What of a session is not on the GPU. nodes: (name, operator) of those that run on the CPU; inputs,
    outputs: names of those that lie in the host's memory."""

    nodes: tuple[tuple[str, str], ...] = ()
    inputs: frozenset[str] = frozenset()
    outputs: frozenset[str] = frozenset()

    @property
    def all_on_gpu(self) -> bool:
        return not (self.nodes or self.inputs or self.outputs)

    @property
    def words(self) -> str:
        """What is not on the GPU, in words; "" where all is."""
        sentences = []
        if self.nodes:
            first = ", ".join(f"{name} ({op_type})" for name, op_type in self.nodes[:3])
            sentences.append(
                f"nodes that ONNX Runtime runs on the CPU: {first}{', …' * (len(self.nodes) > 3)}"
            )
        if self.inputs:
            sentences.append(f"inputs read on the CPU: {', '.join(sorted(self.inputs))}")
        if self.outputs:
            sentences.append(f"outputs written on the CPU: {', '.join(sorted(self.outputs))}")
        return "; ".join(sentences)


def placed(session: Any, nodes: Iterable[Any]) -> Placed:
    """Of a session on a GPU. nodes: of its model's GraphProto, for releases of ONNX Runtime that do not say
    themselves where inputs and outputs lie."""
    off = on_cpu(session)
    inputs, outputs = (
        _on_host(getattr(session, f"get_{kind}s")(), getattr(session, f"get_{kind}_memory_infos", None))
        for kind in ("input", "output")
    )
    if inputs is None or outputs is None:
        names = {name for name, _ in off}
        here = [node for node in nodes if node.name in names]
        inputs = frozenset(it.name for it in session.get_inputs()) & {n for node in here for n in node.input}
        outputs = frozenset(it.name for it in session.get_outputs()) & {
            n for node in here for n in node.output
        }
    return Placed(off, inputs, outputs)


def on_cpu(session: Any) -> tuple[tuple[str, str], ...]:
    """(name, operator) of the nodes that run on the CPU; () where that is not told."""
    info = getattr(session, "get_provider_graph_assignment_info", None)
    if info is None:  # before ONNX Runtime 1.24
        return ()
    return tuple(
        (node.name, node.op_type) for part in info() if part.ep_name == _CPU for node in part.get_nodes()
    )


def _on_host(arguments: Sequence[Any], infos: Any) -> frozenset[str] | None:
    """Names of those that lie in the host's memory, pinned or not; None where the session does not say."""
    if infos is None:  # before ONNX Runtime 1.23
        return None
    memory_infos = list(infos())
    if len(memory_infos) != len(arguments):
        return None
    return frozenset(
        argument.name
        for argument, info in zip(arguments, memory_infos, strict=True)
        if any(word in info.name.lower() for word in ("cpu", "pinned"))
    )


PIECE = 1 << 18  # elements that are compared at once: in float64 they lie in a core's cache


def differs(
    bound: Mapping[str, np.ndarray], plain: Mapping[str, np.ndarray], precision: str = "fp32"
) -> str | None:
    """How the answers of a bound pass are not those of a plain one over the same inputs, in words; None where
    they are. NaN where the other has NaN is the same, and so is infinity."""
    for name, right in plain.items():
        got = bound.get(name)
        if got is None:
            return f"output {name} is missing"
        if got.shape != right.shape:
            return f"output {name} has shape {got.shape} instead of {right.shape}"
        ours, theirs = np.ravel(got), np.ravel(right)
        # Piece by piece, as a large answer in float64 takes many times its memory. Most often both are alike
        # bit for bit.
        pieces = [slice(start, start + PIECE) for start in range(0, theirs.size, PIECE)]
        unlike = [piece for piece in pieces if not np.array_equal(ours[piece], theirs[piece])]
        off = length = 0.0
        for piece in unlike:
            one, other = (np.asarray(of[piece], np.float64) for of in (ours, theirs))
            known = np.isfinite(other)
            if (np.isfinite(one) != known).any():
                return f"output {name} is NaN or infinity at other places"
            off += float(np.square(one[known] - other[known]).sum())
        for piece in pieces if off else ():
            other = np.asarray(theirs[piece], np.float64)
            length += float(np.square(other[np.isfinite(other)]).sum())
        off, length = math.sqrt(off), math.sqrt(length)
        # A pass that is fed wrongly is off by its whole answer; two right passes of one session by their
        # rounding alone, which grows along the net.
        if off > PRECISIONS[precision].pass_rounding * length:
            share = f"by {off / length:.2g} of its length" if length else "from 0"
            return f"output {name} differs {share}"
    return None


class OnGpu:
    """One input or output: its place on the device, its shape and its dtype there."""

    def __init__(self, pool: Any, shape: tuple[int, ...], dtype: np.dtype, stream: Any) -> None:
        self.shape, self.dtype = shape, dtype
        self.nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self._memory = pool.malloc(max(self.nbytes, 1))
        self._memory.memset_async(0, max(self.nbytes, 1), stream)

    @property
    def pointer(self) -> int:
        return int(self._memory.ptr)


class OnHost:
    """One input or output in the host's memory."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.shape, self.dtype = shape, dtype
        self.array = np.zeros(shape, dtype)
        self.nbytes = self.array.nbytes

    @property
    def pointer(self) -> int:
        return int(self.array.ctypes.data)


Buffer = OnGpu | OnHost


def bind(to: Callable[..., None], buffers: Mapping[str, Buffer], device: int) -> None:
    """Bind each by name with `to`, a binding's bind_input or bind_output."""
    for name, it in buffers.items():
        where = ("cpu", 0) if isinstance(it, OnHost) else ("cuda", device)
        to(name, *where, it.dtype.type, it.shape, it.pointer)
