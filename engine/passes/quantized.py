"""A product between DequantizeLinear and QuantizeLinear as one step of whole numbers.

    DequantizeLinear(x), DequantizeLinear(weight) → Conv | Gemm | MatMul
        → Add of a constant a channel → Relu | Clip → QuantizeLinear

x by one scale; the weights by one, or by one a channel; the bias in whatever form; what follows the product
where it is there. Without a QuantizeLinear the step gives float32. The step sums whole numbers, and works the
rest out in double precision, where the product of two float32 scales is exact: it says what the nodes say in
exact arithmetic, and rounds once. Whatever does not fit stays in floating point, as it stands.

A tensor that the graph gives out, or that something else reads, is never taken into a step.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from engine.graph.plan import TensorSpec
from engine.ops import Kernel, View
from engine.ops._base import Dequantized, Refused
from engine.ops._quantized import Behind, Whole, quantized, scale_of, within
from engine.passes.trace import Program, alive
from kernels.ops._quantized import EIGHT_BITS, FEWER_BITS
from kernels.ops.binary import Binary
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.quantize import Quantize
from kernels.ops.unary import Unary


def fuse_quantized(program: Program) -> Program:
    """The program with every product that can be one of whole numbers being it."""
    kernels = (item for item in program.items if isinstance(item, Kernel))
    if not any(isinstance(kernel.params, Quantize) for kernel in kernels):
        return program
    return _Pass(program).done()


@dataclass
class _Found:
    """A product, what is taken into it (output tensors by order), and what becomes of the sums so far."""

    factors: tuple[Whole, Whole]
    nodes: list[str]
    chain: list[Kernel]
    behind: Behind


class _Pass:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.constants = dict(program.constants)
        self.specs = dict(program.specs)
        self.makers = {item.output: item for item in program.items}
        self.readers: dict[str, list[Kernel | View]] = {}
        self.uses = Counter(program.outputs)
        for item in program.items:
            for name in (item.source,) if isinstance(item, View) else item.inputs:
                self.readers.setdefault(name, []).append(item)
                self.uses[name] += 1
        self.taken: set[str] = set()  # outputs of kernels that became part of a step
        self.claimed: set[str] = set()  # nodes that belong to a step

    def done(self) -> Program:
        steps: dict[str, Kernel] = {}
        for item in self.program.items:
            step = self._step(item) if isinstance(item, Kernel) and item.output not in self.taken else None
            if step is not None:
                steps[item.output] = step
        steps = self._with_their_ends(steps)
        items: list[Kernel | View] = []
        for item in self.program.items:
            if item.output in steps:
                items.append(steps[item.output])
            elif item.output not in self.taken:
                items.append(item)
        return alive(replace(self.program, items=tuple(items), specs=self.specs, constants=self.constants))

    def _with_their_ends(self, steps: dict[str, Kernel]) -> dict[str, Kernel]:
        """Each DequantizeLinear whose every reader became a step is a node of the first of these."""
        extended = dict(steps)
        for item in self.program.items:
            if not isinstance(item, Kernel) or not isinstance(item.params, Quantize):
                continue
            readers = self.readers.get(item.output, [])
            outputs = [reader.output for reader in readers]
            if item.output in self.program.outputs or not readers or not all(o in steps for o in outputs):
                continue
            first = extended[outputs[0]]
            extended[outputs[0]] = replace(
                first,
                nodes=tuple(dict.fromkeys((*item.nodes, *first.nodes))),
                parameters=first.parameters + item.parameters,
            )
        return extended

    def _step(self, item: Kernel) -> Kernel | None:
        """The step that a product becomes, or None."""
        if not isinstance(item.params, Conv | Gemm) or item.params.activation is not None:
            return None
        match = self._product(item, item.params)
        if match is None:
            return None
        self._follow(item, match)
        last = match.chain[-1] if match.chain else item
        try:
            lowered = quantized(replace(item, output=last.output), *match.factors, match.behind)
        except Refused:
            return None
        (step,) = lowered.items
        assert isinstance(step, Kernel)
        self.constants.update(lowered.constants)
        self.specs.update(lowered.specs)
        self.taken.update(kernel.output for kernel in match.chain)
        self.claimed.update(match.nodes)
        names = [*match.nodes, *item.nodes, *(name for kernel in match.chain for name in kernel.nodes)]
        return replace(
            step,
            nodes=tuple(dict.fromkeys(names)),
            parameters=item.parameters + sum(kernel.parameters for kernel in match.chain),
        )

    def _product(self, item: Kernel, params: Conv | Gemm) -> _Found | None:
        """The factors and the bias of a product whose factors are dequantized."""
        x = self._of_pass(item.inputs[0])
        weight = self._of_constant(item.inputs[1], params) or self._of_pass(item.inputs[1])
        if x is None or weight is None or params.dtype != "float32":
            return None
        (left, x_scale), (right, weight_scale) = x, weight
        scale = scale_of((x_scale, weight_scale, np.array([getattr(params, "alpha", 1.0)])))
        if isinstance(params, Gemm) and params.trans_a:
            return None
        nodes = self._unclaimed(item.inputs[1])
        shift = None
        if params.bias:
            if isinstance(params, Gemm) and params.bias_stride_m:
                return None
            shift = self._exact(item.inputs[2])
            if shift is None:
                return None
            shift = shift.reshape(-1) * getattr(params, "beta", 1.0)
            nodes += self._unclaimed(item.inputs[2])
        return _Found((left, right), nodes, [], Behind(scale, None, shift))

    def _of_pass(self, name: str) -> tuple[Whole, np.ndarray] | None:
        """An eight-bit tensor that was dequantized by one scale, and that."""
        maker = self.makers.get(name)
        if not isinstance(maker, Kernel) or not isinstance(maker.params, Quantize):
            return None
        p = maker.params
        if p.channels != 1 or p.to != "float32" or p.dtype not in EIGHT_BITS:
            return None
        scale, zero = (self.constants.get(each) for each in maker.inputs[1:])
        if scale is None or zero is None:
            return None
        source = maker.inputs[0]
        value = self.constants.get(source)
        return Whole(source, p.dtype, zero.astype(p.dtype).reshape(1), value), scale

    def _of_constant(self, name: str, params: Conv | Gemm) -> tuple[Whole, np.ndarray] | None:
        """Weights that were dequantized beforehand, by one scale or by one a channel of the answer."""
        source = self.program.dequantized.get(name)
        if source is None or source.value.dtype.name not in (*EIGHT_BITS, *FEWER_BITS):
            return None
        if source.scale.size > 1:
            rank = source.value.ndim
            axis = source.axis % rank
            wanted = 0 if isinstance(params, Conv) else rank - (1 if not params.trans_b else 2)
            if axis != wanted or (isinstance(params, Gemm) and rank != 2):
                return None
        if source.value.dtype.name in FEWER_BITS:
            return self._widened(source), source.scale
        return Whole(source.source, source.value.dtype.name, source.zero, source.value), source.scale

    def _widened(self, made: Dequantized) -> Whole:
        """Weights of fewer bits in int8, which holds them all."""
        name, value = f"{made.source}:int8", made.value.astype(np.int8)
        self.constants[name], self.specs[name] = value, TensorSpec(value.shape, "int8")
        return Whole(name, "int8", None if made.zero is None else made.zero.astype(np.int8), value)

    def _exact(self, name: str) -> np.ndarray | None:
        """A constant in float64: of what was dequantized the exact product, not the float32 that it is."""
        source = self.program.dequantized.get(name)
        if source is not None:
            return _dequantized(source)
        value = self.constants.get(name)
        return None if value is None else value.astype(np.float64)

    def _unclaimed(self, name: str) -> list[str]:
        """The node of the graph that dequantized a constant, unless another step has it."""
        source = self.program.dequantized.get(name)
        return [source.node] if source is not None and source.node and source.node not in self.claimed else []

    def _follow(self, item: Kernel, found: _Found) -> None:
        """Take into `found` what follows the product, up to a QuantizeLinear; nothing but sums where there
        is none."""
        shape = self.specs[item.output].shape
        axis = 1 if isinstance(item.params, Conv) else len(shape) - 1
        behind, chain, name = found.behind, list[Kernel](), item.output
        low, high = -math.inf, math.inf
        clamped = False
        added: list[Kernel] = []
        while self.uses[name] == 1 and name in self.readers:
            (reader,) = self.readers[name]
            if not isinstance(reader, Kernel) or self.specs[reader.output].shape != shape:
                break
            p = reader.params
            limits = _limits(p)
            shift = None if clamped else self._added(reader, name, shape, axis)
            if shift is not None:
                whole = shift if behind.shift is None else behind.shift + shift
                behind = replace(behind, shift=whole)
                found.nodes += [n for each in reader.inputs for n in self._unclaimed(each)]
            elif limits is not None:
                low, high = (min(max(bound, limits[0]), limits[1]) for bound in (low, high))
                clamped = True
            elif isinstance(p, Quantize):
                rounding = self._rounded(reader, behind, low, high)
                if rounding is not None:
                    found.behind, found.chain = rounding, [*chain, reader]
                    return
                break
            else:
                break
            chain.append(reader)
            if not clamped:
                added = list(chain)
                found.behind = behind
            name = reader.output
        found.chain = added

    def _added(self, reader: Kernel, name: str, shape: tuple[int, ...], axis: int) -> np.ndarray | None:
        """What an addition of a constant a channel adds."""
        p = reader.params
        if not isinstance(p, Binary) or p.kind not in ("add", "sub") or p.activation is not None:
            return None
        first, second = reader.inputs
        if first == second or (p.kind == "sub" and first != name):
            return None
        value = self._exact(second if first == name else first)
        if value is None or value.ndim > len(shape):
            return None
        sizes = (1,) * (len(shape) - value.ndim) + value.shape
        if any(size != 1 for place, size in enumerate(sizes) if place != axis):
            return None
        return np.broadcast_to(value.reshape(-1), (shape[axis],)) * (1 if p.kind == "add" else -1)

    def _rounded(self, reader: Kernel, behind: Behind, low: float, high: float) -> Behind | None:
        """What a QuantizeLinear by one scale makes of the sums, held between two real numbers before."""
        p = reader.params
        assert isinstance(p, Quantize)
        if p.channels != 1 or p.dtype != "float32" or p.to not in EIGHT_BITS:
            return None
        scale, zero = (self.constants.get(each) for each in reader.inputs[1:])
        if scale is None or zero is None:
            return None
        step, at = float(scale.reshape(-1)[0]), int(zero.reshape(-1)[0])
        if not (step > 0 and math.isfinite(step)):
            return None
        # Rounding keeps order: what is held before it is held between these numbers behind it.
        least, most = within(p.to)
        ends = [float(np.clip(np.rint(end / step) + at, least, most)) for end in (low, high)]
        return replace(behind, to=p.to, out_scale=step, out_zero=at, low=int(ends[0]), high=int(ends[1]))


def _limits(params: object) -> tuple[float, float] | None:
    """Between which numbers a function of one element holds what it is given, where that is all it does."""
    if not isinstance(params, Unary):
        return None
    if params.kind == "relu":
        return 0.0, math.inf
    return (params.alpha, params.beta) if params.kind == "clip" and params.alpha <= params.beta else None


def _dequantized(made: Dequantized) -> np.ndarray:
    """(value − zero) · scale, float64."""
    column = [1] * made.value.ndim
    if made.scale.size > 1:
        column[made.axis % made.value.ndim] = -1

    def along(values: np.ndarray) -> np.ndarray:
        return values.astype(np.float64).reshape(column if values.size > 1 else ())

    whole = made.value.astype(np.float64)
    whole = whole if made.zero is None else whole - along(made.zero)
    return whole * along(made.scale)
