"""What a kernel of the ladder writes: its parameters read back from its arguments, the answer by NumPy.

The arithmetic is that of the CPU's plainest rungs; a kernel of lower precision is given operands rounded as
its own are. Bytes are read and written where the arguments point, which have to be allocated. Of a launch in
stages the last one writes the answer; those before it are seen to have run, and to have scratch memory.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from kernels import cpu, layouts, registry
from kernels.cpu.common import activation
from kernels.ops import ITEMSIZE, Params
from kernels.ops.conv_pool import ConvPool
from kernels.ops.gemm import Gemm
from kernels.ops.lrn_pool import LrnPool
from kernels.ops.pool import Pool
from kernels.precision import EXACT
from kernels.registry import Rung
from kernels.tasks import TaskParams, record_of
from tests.kernels import lying
from tests.standin import arguments, unpacking
from tests.standin.code import Module
from tests.standin.memory import Memory

# Of the CPU's rungs those that keep nothing of the weights when they are bound: these may change.
_RUNGS = {"conv": "batched_im2col", "pool": "separable", "lrn": "blocks"}
# Inputs that may be absent, by their places.
_OPTIONAL = {
    **dict.fromkeys(("conv", "gemm", "conv_pool", "normalize"), 2),
    "attention": 3,
    "qconv": 6,
    "qgemm": 6,
}
_PROBED_FLOPS = 256  # of a thread in a round: a multiply-add is two
_COPIED_NBYTES = (
    1 << 16
)  # by a probe, of more: nobody reads them, and they would be most of what it takes here
# Stages that write the answer, by what their names add to the operator's.
_LAST = ("_reduce", "_product", "_outputs", "_finish")


@dataclass(frozen=True)
class Answer:
    """A launch made ready; flops, nbytes: of the work that it does, 0 where another stage does it."""

    do: Callable[[], object]
    flops: int = 0
    nbytes: int = 0


def bind(
    memory: Memory, module: Module, function: str, pointers: Sequence[int], scalars: Sequence[float]
) -> Answer:
    """pointers: the inputs', the output's, and that of the scratch memory where the kernel takes one."""
    if module.op == "probe":
        return _probe(memory, module, pointers, scalars)
    op = module.op
    params = arguments.params(op, scalars, bool(op in _OPTIONAL and pointers[_OPTIONAL[op]]))
    if "DTYPE" in module.defines:  # what the scalars do not tell is compiled in
        params = replace(params, dtype=tuple(ITEMSIZE)[module.define("DTYPE")])  # type: ignore[call-arg]
    if isinstance(params, Pool | LrnPool) and "X_TYPE" in module.defines:
        dtype, to = (tuple(ITEMSIZE)[module.define(name)] for name in ("X_TYPE", "TO"))
        params = replace(params, dtype=dtype, **({"to": to} if isinstance(params, LrnPool) else {}))
    count = record_of(op).most_inputs
    inputs, output = list(pointers[:count]), pointers[count]
    scratch = pointers[count + 1] if len(pointers) > count + 1 else 0
    if isinstance(params, TaskParams):  # each of its kernels writes the whole answer
        return _whole(memory, module, params, inputs, output, 0)
    stage = function.removeprefix(op)
    if module.launch == "gemm_cublas":
        return _finishing(memory, params, inputs, output)
    if stage == "" and f"{op}_reduce" in module.functions and module.define("PARTS") > 1:
        parts = 4 * module.define("PARTS") * int(np.prod(params.output_shape))
        return Answer(lambda: memory.view(scratch, (parts,), np.uint8).fill(0xFF))
    if stage == "" and any(op + last in module.functions for last in _LAST if last != "_reduce"):
        return Answer(lambda: _leave(memory, scratch, inputs[0]))
    if stage and stage not in _LAST:
        return Answer(lambda: memory.at(scratch, 1))
    staged = bool(stage) and stage != "_reduce"
    return _whole(memory, module, params, inputs, output, scratch if staged else 0)


# --- the last stage, which writes the answer ---


def _whole(
    memory: Memory, module: Module, params: Params, inputs: list[int], output: int, scratch: int
) -> Answer:
    """scratch: where an earlier stage has left the input's address, 0 where it is among the arguments."""
    bound: dict[int, Callable[[], None]] = {}

    def do() -> None:
        first = _left(memory, scratch) if scratch else inputs[0]
        if first not in bound:
            bound[first] = _Bound(memory, module, params, [first, *inputs[1:]], output)
        bound[first]()

    return Answer(do, params.flops, params.nbytes)


class _Bound:
    """An operator on memory of the device."""

    def __init__(
        self, memory: Memory, module: Module, params: Params, inputs: Sequence[int], output: int
    ) -> None:
        self._memory, self._module = memory, module
        self._places: list[tuple[int, int]] = []
        self._calls: list[Callable[[], object]] = []
        self._version, self._freed = -1, memory.freed
        given = zip(inputs, params.input_shapes, map(np.dtype, params.input_dtypes), strict=False)
        arrays = []
        for i, (address, shape, dtype) in enumerate(given):
            if i == 0 and module.layout("READS") != layouts.PLAIN:
                laid = self._laid_out(address, params.laid[0], module.layout("READS"), dtype)
                arrays.append(laid.reshape(shape))
            elif i == 1 and module.packs:
                arrays.append(self._unpacked(address, params, shape))
            elif i < 2 and module.precision not in EXACT:
                arrays.append(self._rounded(self._view(address, shape, dtype)))
            else:
                arrays.append(self._view(address, shape, dtype))
        to = np.dtype(params.out_dtype)
        layout = module.layout("WRITES")
        if layout == layouts.PLAIN:
            self._calls += calls(params, arrays, self._view(output, params.output_shape, to), module.twin)
            return
        answer = np.empty(params.output_shape, to if layout == layouts.BYTES else np.float32)
        laid = answer.reshape(params.laid[1])
        shape = lying.as_it_lies(layout, laid).shape
        held = self._view(output, shape, lying.of_case(layout, to))
        self._calls += calls(params, arrays, answer, module.twin)
        self._calls.append(lambda: np.copyto(held, lying.as_it_lies(layout, laid)))

    def _view(self, address: int, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        found = self._memory.view(address, shape, dtype)
        self._places.append((address, found.nbytes))
        return found

    def _laid_out(self, address: int, shape: Sequence[int], layout: str, dtype: np.dtype) -> np.ndarray:
        """What lies there as NHWC, its channels filled up."""
        found = np.empty(shape, dtype if layout == layouts.BYTES else np.float32)
        held = self._view(address, lying.as_it_lies(layout, found).shape, lying.of_case(layout, dtype))
        self._calls.append(lambda: np.copyto(found, lying.brought_back(held, shape)))
        return found

    def _rounded(self, source: np.ndarray) -> np.ndarray:
        rounded, precision = np.empty_like(source), self._module.precision

        self._calls.append(lambda: np.copyto(rounded, lying.rounded(source, precision)))
        return rounded

    def _unpacked(self, address: int, params: Any, shape: Sequence[int]) -> np.ndarray:
        held = self._view(address, (unpacking.nbytes(self._module, params),), np.dtype(np.uint8))
        found = np.empty(shape, params.input_dtypes[1])

        def unpack() -> None:
            version = self._memory.at(address, held.nbytes).version
            if version != self._version:
                found[...] = unpacking.unpacked(self._module, params, held)
                self._version = version

        self._calls.append(unpack)
        return found

    def __call__(self) -> None:
        if self._freed != self._memory.freed:  # else all of it is allocated still
            self._freed = self._memory.freed
            for address, nbytes in self._places:
                self._memory.at(address, nbytes)
        with np.errstate(all="ignore"):
            for call in self._calls:
                call()


def calls(
    params: Params, inputs: list[np.ndarray], output: np.ndarray, twin: str = ""
) -> list[Callable[[], None]]:
    """What computes an operator. twin: a rung of the CPU's that does it in place of a right one."""
    if twin:
        path, nothing = Path(twin), MappingProxyType[str, Any]({})
        text = path.read_text(encoding="utf-8")
        rung = Rung("cpu", params.op, 0, path.stem, "", "", nothing, nothing, path, text)
        return [_bound(cpu.load(rung), params, inputs, output)]
    match params:
        case ConvPool():
            first, second = params.conv, params.pool
        case LrnPool() if params.dtype != "float32":
            return [lambda: _between_bytes(params, *inputs, output)]
        case LrnPool():
            first, second = params.lrn, params.pool
        case _:
            return [_rung(params, inputs, output)]
    between = np.empty(first.output_shape, np.float32)
    return [_rung(first, inputs, between), _rung(second, [between], output)]


def _between_bytes(params: LrnPool, x: np.ndarray, y: np.ndarray) -> None:
    real = (x.astype(np.float32) - params.x_zero) * np.float32(params.x_scale)
    pooled = np.empty(params.output_shape, np.float32)
    for call in calls(replace(params, dtype="float32", to="float32"), [real], pooled):
        call()
    held = np.iinfo(params.to)
    y[...] = np.clip(np.rint(pooled / np.float32(params.out_scale)) + params.out_zero, held.min, held.max)


def _rung(params: Params, inputs: list[np.ndarray], output: np.ndarray) -> Callable[[], None]:
    name = _RUNGS.get(params.op) if params.dtype == "float32" else None
    if isinstance(params, TaskParams):
        name = registry.rungs("cpu", params.op)[0].name
    rung = registry.find("cpu", params.op, name) if name else registry.default("cpu", params)
    return _bound(cpu.load(rung), params, inputs, output)


def _bound(
    kernel: cpu.CpuKernel, params: Params, inputs: list[np.ndarray], output: np.ndarray
) -> Callable[[], None]:
    return kernel.bind(params, inputs, output, np.empty(kernel.workspace(params) // 4, np.float32))


def _finishing(memory: Memory, params: Params, inputs: Sequence[int], output: int) -> Answer:
    """The library has written the product; the kernel adds the bias and activates."""
    assert isinstance(params, Gemm)
    shape = (params.batch, params.m, params.n)

    def do() -> None:
        y = memory.view(output, shape, np.float32)
        if params.bias:
            length = params.input_shapes[2]
            bias = memory.view(inputs[2], length, np.float32)
            steps = (0, 4 * params.bias_stride_m, 4 * params.bias_stride_n)
            y += np.float32(params.beta) * np.lib.stride_tricks.as_strided(bias, shape, steps)
        for call in activation(params.activation, y):
            call()

    return Answer(do, math.prod(shape), 8 * math.prod(shape))


# --- stages in front of it ---


def _leave(memory: Memory, scratch: int, address: int) -> None:
    memory.view(scratch, (1,), np.uint64)[0] = address


def _left(memory: Memory, scratch: int) -> int:
    return int(memory.view(scratch, (1,), np.uint64)[0])


# --- probes ---


def _probe(memory: Memory, module: Module, pointers: Sequence[int], scalars: Sequence[float]) -> Answer:
    """engine.probe's: a copy of so many 16 bytes, reads of them, or rounds of multiply-adds that write
    nothing."""
    source, target = pointers
    count = int(scalars[0])
    if module.file == "reading.cu":
        return Answer(lambda: memory.at(source, 16 * count), 0, 16 * count * module.define("ROUNDS"))
    if module.file != "copy.cu":
        return Answer(lambda: None, _PROBED_FLOPS * count)

    def copy() -> None:
        memory.at(source, 16 * count)
        memory.at(target, 16 * count)
        ctypes.memmove(target, source, min(16 * count, _COPIED_NBYTES))

    return Answer(copy, 0, 32 * count)
