"""Attention as exporters write it, as the one step that it is.

    q kᵀ → scale → mask → Softmax → · v

The scale is a number by which the product is multiplied or divided, or by which q and kᵀ were before it. The
mask is added, or takes the place of scores by a constant condition (Where with −∞, or with a number so low
that no weight is left of it). Behind Softmax there may be a Where that makes NaN 0. Transpositions of q, k
and v that bring heads in front, and that of y which brings them back, vanish: kernels read and write both
ways.

A tensor that the graph gives out, or that something else reads, is never fused away.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from engine.graph.plan import TensorSpec
from engine.ops import Kernel, View
from engine.ops.transpose import merge_axes
from engine.passes.trace import Program, free_name
from kernels.ops.attention import Attention
from kernels.ops.binary import Binary
from kernels.ops.compare import Compare
from kernels.ops.gemm import Gemm
from kernels.ops.softmax import Softmax
from kernels.ops.transpose import Transpose
from kernels.ops.unary import Unary
from kernels.ops.where import Where

_SWAPPED, _COLUMNS, _BOTH = (0, 2, 1, 3), (0, 1, 3, 2), (0, 2, 3, 1)
_NOTHING = -1e9  # from here down exp(score − largest) is 0, whatever float32 a score may sensibly be


def fuse_attention(program: Program) -> Program:
    """The program with each such pattern as one kernel, where its last node stood. Comes before `fuse`."""
    if not any(isinstance(item, Kernel) and isinstance(item.params, Softmax) for item in program.items):
        return program
    return _Matcher(program).program()


@dataclass
class _Found:
    """What is known so far. within: the outputs of what is taken in, in the order in which it was found."""

    within: list[str] = field(default_factory=list)
    scale: float = 1.0
    guarded: bool = False
    mask: str = ""
    lead: tuple[int, ...] = ()  # of the scores where the mask is added


class _Matcher:
    def __init__(self, program: Program) -> None:
        self.whole = program
        self.specs, self.constants = dict(program.specs), dict(program.constants)
        self.makers = {item.output: item for item in program.items}
        self.uses = Counter(program.outputs)
        self.readers: dict[str, Kernel | View] = {}  # the last that reads it
        for item in program.items:
            for name in (item.source,) if isinstance(item, View) else item.inputs:
                self.uses[name] += 1
                self.readers[name] = item
        nodes = dict.fromkeys(node for item in program.items for node in item.nodes)
        self.order = {node: place for place, node in enumerate(nodes)}

    def program(self) -> Program:
        replacements: dict[str, Kernel] = {}  # by the output of what it stands in the place of
        gone: set[str] = set()
        for item in self.whole.items:
            if isinstance(item, Kernel) and isinstance(item.params, Gemm):
                match = self._attention(item)
                if match is not None:
                    kernel, within = match
                    gone.update(within)
                    replacements[kernel.output] = kernel
        items = (replacements.get(item.output, item) for item in self.whole.items if item.output not in gone)
        return replace(self.whole, items=tuple(items), specs=self.specs, constants=self.constants)

    def _attention(self, last: Kernel) -> tuple[Kernel, list[str]] | None:
        """The kernel, and what vanishes: what its last part makes is not among it."""
        match = _Found()
        weights = self._weights(last, match)
        if weights is None:
            return None
        product = self._product(weights, match)
        if product is None:
            return None
        *lead, queries, keys = self._shape(product.output)
        value = last.inputs[1]
        if not (_is_plain(last.params, math.prod(lead)) and _is_plain(product.params, math.prod(lead))):
            return None
        q, columns = product.inputs
        depth, depth_v = self._shape(q)[-1], self._shape(value)[-1]
        batch, heads = self._images(match.lead or tuple(lead))
        by_head = {
            q: (batch, heads, queries, depth),
            columns: (batch, heads, depth, keys),
            value: (batch, heads, keys, depth_v),
        }
        if any(math.prod(self._shape(name)) != math.prod(shape) for name, shape in by_head.items()):
            return None
        mask = self._mask_shape(match.mask, (batch, heads, queries, keys)) if match.mask else ()
        if mask is None:
            return None
        q = self._unscaled(q, match)
        q, q_swapped = self._unturned(q, (batch, queries, heads, depth), match)
        q = self._unscaled(q, match)
        key = self._keys(self._unscaled(columns, match), (batch, heads, keys, depth), match)
        if key is None:
            return None
        k, k_swapped = key
        v, v_swapped = self._unturned(value, (batch, keys, heads, depth_v), match)
        output, reader = last.output, self.readers.get(last.output)
        match.within += [product.output]
        y_swapped = (
            self.uses[output] == 1
            and isinstance(reader, Kernel)
            and _turns(reader.params, (batch, heads, queries, depth_v), _SWAPPED)
        )
        parts = [last, *(self.makers[name] for name in match.within)]
        if y_swapped and reader is not None:
            parts.append(reader)
            match.within.append(output)
            output = reader.output
        params = Attention(
            *(batch, heads, queries, keys, depth, depth_v, heads),
            scale=match.scale,
            guarded=match.guarded,
            mask=mask,
            swapped=(q_swapped, k_swapped, v_swapped, y_swapped),
        )
        nodes = {node for part in parts for node in part.nodes}
        kernel = Kernel(
            params,
            (q, k, v, *((match.mask,) if mask else ())),
            output,
            tuple(sorted(nodes, key=self.order.__getitem__)),
            sum(part.parameters for part in parts if isinstance(part, Kernel)),
        )
        return kernel, match.within

    # --- from the last product up to the first ---

    def _weights(self, last: Kernel, found: _Found) -> Kernel | None:
        """The softmax."""
        name = self._same(last.inputs[0], found)
        kernel = self._kernel(name)
        if kernel is not None and isinstance(kernel.params, Where) and self.uses[name] == 1:
            name = self._without_nan(kernel, found)
            kernel = self._kernel(name)
        elif self.uses[name] != 1:
            return None
        if kernel is None or not isinstance(kernel.params, Softmax):
            return None
        p, shape = kernel.params, self._shape(name)
        if p.log or p.inner != 1 or len(shape) < 2 or p.axis != shape[-1] or p.dtype != "float32":
            return None
        found.within.append(name)
        return kernel

    def _without_nan(self, where: Kernel, found: _Found) -> str:
        """What Where(IsNaN(x), 0, x) is made of; "" of any other."""
        nothing, zero, x = where.inputs
        known = self.constants.get(zero)
        is_nothing = self._kernel(nothing)
        if known is None or known.any() or is_nothing is None or self.uses[nothing] != 1 or self.uses[x] != 3:
            return ""
        itself = self._kernel(is_nothing.inputs[0])
        if not isinstance(is_nothing.params, Unary) or is_nothing.params.kind != "not" or itself is None:
            return ""
        if not isinstance(itself.params, Compare) or itself.params.kind != "equal":
            return ""
        if itself.inputs != (x, x) or self.uses[itself.output] != 1:
            return ""
        found.within += [where.output, nothing, itself.output]
        found.guarded = True
        return x

    def _product(self, softmax: Kernel, found: _Found) -> Kernel | None:
        """The product of q and kᵀ, with what stands between it and the softmax."""
        name = self._same(softmax.inputs[0], found)
        while self.uses[name] == 1:
            kernel = self._kernel(name)
            if kernel is None:
                return None
            if isinstance(kernel.params, Gemm):
                return kernel
            inner = self._number(kernel)
            if inner is not None:
                name, factor = inner
                found.scale *= factor
            else:
                masked = None if found.mask or found.scale != 1 else self._masked(kernel)
                if masked is None:
                    return None
                name, found.mask = masked
                found.lead = self._shape(kernel.output)[:-2]
            found.within.append(kernel.output)
            name = self._same(name, found)
        return None

    def _masked(self, kernel: Kernel) -> tuple[str, str] | None:
        """(scores, what is added to them)."""
        p, shape = kernel.params, self._shape(kernel.output)
        if isinstance(p, Binary) and p.kind == "add" and p.activation is None and p.dtype == "float32":
            for place in (0, 1):
                scores, mask = kernel.inputs[place], kernel.inputs[1 - place]
                if self._shape(scores) == shape and scores != mask and self.uses[scores] == 1:
                    maker = self._kernel(self._same(scores, _Found()))
                    if maker is not None and (isinstance(maker.params, Gemm) or self._number(maker)):
                        return scores, mask
        if isinstance(p, Where) and p.dtype == "float32":
            return self._replaced(kernel, shape)
        return None

    def _replaced(self, where: Kernel, shape: tuple[int, ...]) -> tuple[str, str] | None:
        """Scores of which some are −∞, or next to it, by a constant condition."""
        condition = self.constants.get(where.inputs[0])
        for place in (1, 2):
            scores, low = where.inputs[place], self.constants.get(where.inputs[3 - place])
            if condition is None or low is None or low.size != 1 or self._shape(scores) != shape:
                continue
            value = float(low.reshape(-1)[0])
            seen = condition if place == 1 else ~condition
            if value > _NOTHING or (value != -math.inf and not seen.any(axis=-1).all()):
                continue
            name = free_name(where.output, ":mask", self.specs)
            self.constants[name] = np.where(seen, 0, -np.inf).astype(np.float32)
            self.specs[name] = TensorSpec(seen.shape, "float32")
            return scores, name
        return None

    # --- what it reads ---

    def _unscaled(self, name: str, found: _Found) -> str:
        """Without numbers that it is multiplied by."""
        while (kernel := self._kernel(name)) is not None and self.uses[name] == 1:
            inner = self._number(kernel)
            if inner is None:
                break
            found.within.append(name)
            name = inner[0]
            found.scale *= inner[1]
        return name

    def _unturned(self, name: str, shape: tuple[int, ...], found: _Found) -> tuple[str, bool]:
        """What has its heads brought in front of `shape`, and whether anything has."""
        kernel = self._kernel(name)
        if kernel is None or self.uses[name] != 1 or not _turns(kernel.params, shape, _SWAPPED):
            return name, False
        found.within.append(name)
        return kernel.inputs[0], True

    def _keys(self, columns: str, shape: tuple[int, ...], found: _Found) -> tuple[str, bool] | None:
        """The keys whose columns these are; shape: theirs."""
        kernel = self._kernel(columns)
        if kernel is None or self.uses[columns] != 1:
            return None
        batch, heads, keys, depth = shape
        apart = (batch, keys, heads, depth)
        if _turns(kernel.params, apart, _BOTH):
            found.within.append(columns)
            return self._unscaled(kernel.inputs[0], found), True
        if _turns(kernel.params, shape, _COLUMNS):
            found.within.append(columns)
            return self._unturned(self._unscaled(kernel.inputs[0], found), apart, found)
        return None

    def _images(self, lead: tuple[int, ...]) -> tuple[int, int]:
        return math.prod(lead[:-1]), lead[-1] if lead else 1

    def _mask_shape(self, mask: str, scores: tuple[int, ...]) -> tuple[int, ...] | None:
        """With four axes; None where it does not fit the scores."""
        shape = self._shape(mask)
        whole = (1,) * (4 - len(shape)) + shape
        fits = len(whole) == 4 and all(one in (1, of) for one, of in zip(whole, scores, strict=True))
        return whole if fits and self.specs[mask].dtype == "float32" else None

    # --- single items ---

    def _shape(self, name: str) -> tuple[int, ...]:
        return self.specs[name].shape

    def _kernel(self, name: str) -> Kernel | None:
        item = self.makers.get(name)
        return item if isinstance(item, Kernel) else None

    def _same(self, name: str, found: _Found) -> str:
        """What this is a view of that has the same rows."""
        item = self.makers.get(name)
        while isinstance(item, View) and self.uses[name] == 1:
            if self._shape(item.source)[-2:] != self._shape(name)[-2:]:
                break
            found.within.append(name)
            name = item.source
            item = self.makers.get(name)
        return name

    def _number(self, kernel: Kernel) -> tuple[str, float] | None:
        """What is multiplied or divided by one number, and the factor."""
        p = kernel.params
        if not isinstance(p, Binary) or p.kind not in ("mul", "div") or p.activation is not None:
            return None
        for place in (1,) if p.kind == "div" else (1, 0):
            number, other = self.constants.get(kernel.inputs[place]), kernel.inputs[1 - place]
            if number is None or number.size != 1 or p.dtype != "float32":
                continue
            if self._shape(other) == self._shape(kernel.output) and other not in self.constants:
                value = float(number.reshape(-1)[0])
                if value and math.isfinite(value):
                    return other, value if p.kind == "mul" else 1 / value
        return None


def _is_plain(p: object, count: int) -> bool:
    """Whether it is so many products of matrices of their own, and nothing else."""
    if not isinstance(p, Gemm) or p.trans_a or p.trans_b or p.bias or p.activation is not None:
        return False
    own = p.batch == 1 or (p.stride_a > 0 and p.stride_b > 0)
    return p.batch == count and own and p.alpha == 1 and p.dtype == "float32"


def _turns(p: object, shape: tuple[int, ...], perm: tuple[int, ...]) -> bool:
    """Whether it is this transposition of a tensor of this shape."""
    return isinstance(p, Transpose) and (p.shape, p.perm) == merge_axes(shape, perm)
