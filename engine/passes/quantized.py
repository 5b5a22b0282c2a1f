"""What stands between DequantizeLinear and QuantizeLinear as one step of whole numbers.

    DequantizeLinear(x), DequantizeLinear(weight) → Conv | Gemm | MatMul
        → Add of a constant a channel → Relu | Clip → QuantizeLinear

x by one scale; the weights by one, or by one a channel; the bias in whatever form; what follows the product
where it is there. Without a QuantizeLinear the step gives float32. The step sums whole numbers, and works the
rest out in double precision, where the product of two float32 scales is exact: it says what the nodes say in
exact arithmetic, and rounds once. Whatever does not fit stays in floating point, as it stands.

What only picks, moves or adds numbers stays in bytes as well, so that a net of blocks hands on nothing else:

    DequantizeLinear(x) → MaxPool | AveragePool | Reshape and the like → Relu | Clip → QuantizeLinear
    DequantizeLinear(a), DequantizeLinear(b), … → Add | Sub | Concat → Relu | Clip → QuantizeLinear

An average is a product by weights that are 1. A Relu between DequantizeLinear and a product is taken of the
bytes.

A tensor that the graph gives out, or that something else reads, is never taken into a step.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.graph.plan import TensorSpec
from engine.ops import Kernel, View
from engine.ops._base import Dequantized, Refused
from engine.ops._quantized import Behind, Whole, quantized, scale_of, within
from engine.passes.trace import Program, alive, free_name
from kernels.ops._quantized import EIGHT_BITS, FEWER_BITS
from kernels.ops.binary import Binary
from kernels.ops.concat import Concat
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.pool import Pool
from kernels.ops.qadd import QAdd
from kernels.ops.quantize import Quantize
from kernels.ops.unary import Unary


def fuse_quantized(program: Program) -> Program:
    """The program with every step of whole numbers that there can be."""
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
        self.taken: set[str] = set()  # outputs of what became part of a step
        self.within: dict[str, str] = {}  # of what became a step, or its first part: where that step stands
        self.claimed: set[str] = set()  # nodes that belong to a step

    def done(self) -> Program:
        steps: dict[str, list[Kernel | View]] = {}
        for item in self.program.items:
            if not isinstance(item, Kernel) or item.output in self.taken:
                continue
            if found := self._step(item) or self._in_bytes(item):
                steps[item.output] = found
        self._with_their_ends(steps)
        items: list[Kernel | View] = []
        for item in self.program.items:
            if item.output in steps:
                items += steps[item.output]
            elif item.output not in self.taken:
                items.append(item)
        return alive(replace(self.program, items=tuple(items), specs=self.specs, constants=self.constants))

    def _with_their_ends(self, steps: dict[str, list[Kernel | View]]) -> None:
        """Each DequantizeLinear whose every reader became a step is a node of the first of these; the last
        one where others read it too, for then it is no part of that step where the step stands alone."""
        for item in self.program.items:
            if not isinstance(item, Kernel) or not isinstance(item.params, Quantize):
                continue
            outputs = [reader.output for reader in self.readers.get(item.output, [])]
            if item.output in self.program.outputs or not outputs:
                continue
            if not all(output in self.within for output in outputs):
                continue
            of = steps[self.within[outputs[0]]]
            own = [name for each in of for name in each.nodes]
            nodes = tuple(dict.fromkeys((*own, *item.nodes) if len(outputs) > 1 else (*item.nodes, *own)))
            of[:] = [replace(each, nodes=nodes) for each in of]
            if isinstance(last := of[-1], Kernel):
                of[-1] = replace(last, parameters=last.parameters + item.parameters)

    def _step(self, item: Kernel) -> list[Kernel | View]:
        """The step that a product becomes, behind another shape of what it reads; nothing where there is
        none."""
        if not isinstance(item.params, Conv | Gemm) or item.params.activation is not None:
            return []
        match = self._product(item, item.params)
        if match is None:
            return []
        self._follow(item, match)
        last = match.chain[-1] if match.chain else item
        try:
            lowered = quantized(replace(item, output=last.output), *match.factors, match.behind)
        except Refused:
            return []
        (step,) = lowered.items
        assert isinstance(step, Kernel)
        self.constants.update(lowered.constants)
        self.specs.update(lowered.specs)
        self.taken.update(kernel.output for kernel in match.chain)
        self.claimed.update(match.nodes)
        self.within[item.output] = item.output
        names = [*match.nodes, *item.nodes, *(name for kernel in match.chain for name in kernel.nodes)]
        parameters = item.parameters + sum(kernel.parameters for kernel in match.chain)
        shaped = self.makers.get(item.inputs[0])
        name = match.factors[0].name
        if shaped is None or self._of_pass(item.inputs[0]) is not None:
            return [replace(step, nodes=tuple(dict.fromkeys(names)), parameters=parameters)]
        nodes = tuple(dict.fromkeys((*shaped.nodes, *names)))
        self.taken.add(shaped.output)
        self.within[shaped.output] = item.output
        last_step = replace(step, nodes=nodes, parameters=parameters)
        if isinstance(shaped, View):
            of = self._of_pass(shaped.source)
            assert of is not None
            self.specs[name] = TensorSpec(self.specs[shaped.output].shape, of[0].dtype)
            return [View(of[0].name, name, nodes), last_step]
        of, ends = self._of_pass(shaped.inputs[0]), self._held(shaped)
        assert of is not None
        assert ends is not None
        self.specs[name] = TensorSpec(self.specs[shaped.output].shape, of[0].dtype)
        size = math.prod(self.specs[shaped.output].shape)
        return [self._brought(of, size, ends, nodes, name), last_step]

    # ------------------------------------------------------------------------------------ between two scales

    def _in_bytes(self, end: Kernel) -> list[Kernel | View]:
        """What a QuantizeLinear by one scale and what stands before it become in bytes; nothing where that
        cannot be."""
        if not isinstance(end.params, Quantize) or end.params.to not in EIGHT_BITS:
            return []
        chain: list[Kernel | View] = [end]
        low, high = -math.inf, math.inf
        name = end.inputs[0]
        held: list[tuple[float, float]] = []
        while (maker := self.makers.get(name)) is not None and self._lone(maker):
            limits = _limits(maker.params) if isinstance(maker, Kernel) else None
            if limits is None or not isinstance(maker, Kernel):
                break
            held.append(limits)
            chain.append(maker)
            name = maker.inputs[0]
        for limits in reversed(held):  # the first comes first
            low, high = (min(max(bound, limits[0]), limits[1]) for bound in (low, high))
        behind = self._rounded(end, Behind(np.ones(1)), low, high)
        if behind is None:
            return []
        first: Kernel | View = chain[-1]
        if self._of_pass(name) is None:
            if maker is None or not self._lone(maker) or maker.output in self.taken:
                return []
            chain.append(maker)
            first = maker
        nodes = tuple(dict.fromkeys(n for each in reversed(chain) for n in each.nodes))
        made = self._moved(first, name, end, behind, nodes)
        if made:
            self.taken.update(each.output for each in chain if each is not end)
            self.within[first.output] = end.output
        return made

    def _lone(self, item: Kernel | View) -> bool:
        """Whether nothing but one other reads its output."""
        return self.uses[item.output] == 1 and item.output not in self.program.outputs

    def _moved(
        self, first: Kernel | View, name: str, end: Kernel, behind: Behind, nodes: tuple[str, ...]
    ) -> list[Kernel | View]:
        """first: that which reads what is dequantized; name: what the limits and the QuantizeLinear read."""
        made: list[Kernel | View] = []
        output, size = end.output, math.prod(self.specs[end.output].shape)
        if (whole := self._of_pass(name)) is not None and 0 < float(whole[1][0]) < math.inf:
            return [self._brought(whole, size, behind, nodes, output)]
        names = (first.source,) if isinstance(first, View) else first.inputs
        given = [self._of_pass(each) for each in names]
        wholes = [each for each in given if each is not None]
        if len(wholes) != len(given) or not all(0 < float(scale[0]) < math.inf for _, scale in wholes):
            return []
        p = None if isinstance(first, View) else first.params
        if isinstance(p, Concat) and p.dtype == "float32":
            parts = []
            for place, (of, width) in enumerate(zip(wholes, p.widths, strict=True)):
                part = of[0].name
                if not self._alike(of, behind):
                    part = free_name(output, f":{place}", self.specs)
                    self.specs[part] = TensorSpec(self.specs[names[place]].shape, behind.to)
                    made.append(self._brought(of, p.outer * width, behind, nodes, part))
                parts.append(part)
            return [*made, Kernel(replace(p, dtype=behind.to), tuple(parts), output, nodes)]
        if isinstance(p, Binary) and p.kind in ("add", "sub") and p.activation is None:
            if any(self.specs[each].shape != self.specs[output].shape for each in names):
                return []
            return [self._added_up(wholes, p.kind == "sub", size, behind, nodes, output)]
        if isinstance(p, Pool) and p.kind == "average":
            return self._averaged(p, wholes[0], behind, nodes, output)
        maximum = isinstance(p, Pool) and p.kind == "max" and p.activation is None and p.dtype == "float32"
        if not isinstance(first, View) and not maximum:
            return []
        ((one, scale),) = wholes
        alike = self._alike((one, scale), behind)
        between = output if alike else free_name(output, ":bytes", self.specs)
        self.specs[between] = TensorSpec(self.specs[first.output].shape, one.dtype)
        if isinstance(first, View):
            made.append(View(one.name, between, nodes))
        else:
            assert isinstance(p, Pool)
            made.append(Kernel(replace(p, dtype=one.dtype), (one.name,), between, nodes))
        if not alike:
            made.append(self._brought((replace(one, name=between), scale), size, behind, nodes, output))
        return made

    def _averaged(
        self, p: Pool, of: tuple[Whole, np.ndarray], behind: Behind, nodes: tuple[str, ...], output: str
    ) -> list[Kernel | View]:
        """A product by weights that are 1: of a matrix where a window is the whole image, else a convolution
        of each channel; nothing where windows are of different sizes."""
        (whole, scale), area = of, p.kh * p.kw
        padded = (p.h + p.pad_top + p.pad_bottom, p.w + p.pad_left + p.pad_right)
        reached = (
            (p.out_h - 1) * p.stride_h + (p.kh - 1) * p.dilation_h + 1,
            (p.out_w - 1) * p.stride_w + (p.kw - 1) * p.dilation_w + 1,
        )
        cut = any(reach > size for reach, size in zip(reached, padded, strict=True))
        if cut or (padded != (p.h, p.w) and not p.count_include_pad):
            return []
        if p.activation is not None or p.dtype != "float32":
            return []
        made: list[Kernel | View] = []
        name = whole.name
        product: Conv | Gemm
        if (p.kh, p.kw) == (p.h, p.w) == padded:
            name = free_name(output, ":rows", self.specs)
            product = Gemm(p.n * p.c, 1, area, trans_b=True)
            made.append(View(whole.name, name, nodes))
            self.specs[name] = TensorSpec((p.n * p.c, area), whole.dtype)
            ones = np.ones((1, area), np.int8)
        else:
            shared = {key: getattr(p, key) for key in _WINDOW}
            product = Conv(m=p.c, group=p.c, **shared)
            ones = np.ones((p.c, 1, p.kh, p.kw), np.int8)
        weight = Whole(free_name(output, ":ones", self.specs), "int8", None, ones)
        self.constants[weight.name], self.specs[weight.name] = ones, TensorSpec(ones.shape, "int8")
        bare = Kernel(product, (name, weight.name), output, nodes)
        try:
            lowered = quantized(
                bare,
                replace(whole, name=name, value=None),
                weight,
                replace(behind, scale=scale.astype(np.float64) / area),
            )
        except Refused:
            return []
        self.constants.update(lowered.constants)
        self.specs.update(lowered.specs)
        return [*made, *lowered.items]

    def _alike(self, of: tuple[Whole, np.ndarray], behind: Behind) -> bool:
        """Whether its bytes are those that are wanted."""
        whole, scale = of
        wanted = (behind.to, behind.out_zero, *within(behind.to))
        found = (whole.dtype, _zero_of(whole), behind.low, behind.high)
        return wanted == found and float(scale.reshape(-1)[0]) == behind.out_scale

    def _brought(
        self, of: tuple[Whole, np.ndarray], size: int, behind: Behind, nodes: tuple[str, ...], output: str
    ) -> Kernel | View:
        """Bytes by another scale."""
        if self._alike(of, behind):
            return View(of[0].name, output, nodes)
        nothing = (replace(of[0], zero=None), np.zeros(1))
        return self._added_up([of, nothing], False, size, behind, nodes, output)

    def _added_up(
        self, wholes: Sequence[tuple[Whole, np.ndarray]], minus: bool, size: int, behind: Behind,
        nodes: tuple[str, ...], output: str,
    ) -> Kernel:  # fmt: skip
        (a, a_scale), (b, b_scale) = wholes
        scales = [float(scale.reshape(-1)[0]) for scale in (a_scale, b_scale)]
        params = QAdd(
            size,
            a_scale=scales[0],
            a_zero=_zero_of(a),
            b_scale=-scales[1] if minus else scales[1],
            b_zero=_zero_of(b),
            out_scale=behind.out_scale,
            out_zero=behind.out_zero,
            low=behind.low,
            high=behind.high,
            dtype=a.dtype,
            other=b.dtype,
            to=behind.to,
        )
        return Kernel(params, (a.name, b.name), output, nodes)

    # ---------------------------------------------------------------------------------------------- products

    def _product(self, item: Kernel, params: Conv | Gemm) -> _Found | None:
        """The factors and the bias of a product whose factors are dequantized."""
        x = self._of_pass(item.inputs[0]) or self._shaped(item.inputs[0]) or self._clamped(item.inputs[0])
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

    def _shaped(self, name: str) -> tuple[Whole, np.ndarray] | None:
        """As _of_pass, of what has another shape since then."""
        maker = self.makers.get(name)
        if not isinstance(maker, View) or not self._lone(maker):
            return None
        of = self._of_pass(maker.source)
        return None if of is None else (replace(of[0], name=f"{name}:bytes"), of[1])

    def _clamped(self, name: str) -> tuple[Whole, np.ndarray] | None:
        """As _of_pass, of what is held between two numbers that are steps of its scale."""
        maker = self.makers.get(name)
        if not isinstance(maker, Kernel) or not self._lone(maker) or self._held(maker) is None:
            return None
        of = self._of_pass(maker.inputs[0])
        assert of is not None
        return replace(of[0], name=f"{name}:bytes"), of[1]

    def _held(self, item: Kernel) -> Behind | None:
        """What a function that only holds what it is given between two numbers makes of the bytes of that."""
        limits, of = _limits(item.params), self._of_pass(item.inputs[0])
        if limits is None or of is None:
            return None
        whole, step = of[0], float(of[1].reshape(-1)[0])
        if not 0 < step < math.inf or isinstance(whole.value, np.ndarray):
            return None
        ends, least_and_most = [], within(whole.dtype)
        for bound, end, side in zip(limits, least_and_most, (1, -1), strict=True):
            place = bound / step + _zero_of(whole)
            if (place - end) * side <= 0:  # beyond what there is
                ends.append(end)
            elif place == np.rint(place) and (least_and_most[1 - (side < 0)] - place) * side >= 0:
                ends.append(int(place))
            else:
                return None
        one = np.ones(1)
        return Behind(one, None, None, whole.dtype, step, _zero_of(whole), ends[0], ends[1])

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


# What a pool and a convolution are told alike.
_WINDOW = (
    *("n", "c", "h", "w", "kh", "kw", "out_h", "out_w", "stride_h", "stride_w", "dilation_h", "dilation_w"),
    *("pad_top", "pad_left", "pad_bottom", "pad_right"),
)


def _limits(params: object) -> tuple[float, float] | None:
    """Between which numbers a function of one element holds what it is given, where that is all it does."""
    if not isinstance(params, Unary):
        return None
    if params.kind == "relu":
        return 0.0, math.inf
    return (params.alpha, params.beta) if params.kind == "clip" and params.alpha <= params.beta else None


def _zero_of(whole: Whole) -> int:
    return int(whole.zero.reshape(-1)[0]) if isinstance(whole.zero, np.ndarray) else 0


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
