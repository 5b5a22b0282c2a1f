"""Functions of one element that exporters write as several nodes, as the one that they are.

    x · sigmoid(a x)                            swish (SiLU where a is 1, "quick" gelu where it is 1.702)
    x · hard_sigmoid(x, 1/6, 1/2)               hard_swish
    x · clip(x + 3, 0, 6) / 6                   hard_swish
    x · tanh(softplus(x))                       mish
    x · (1 + erf(x / √2)) / 2, in any order     gelu
    x · (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2, x³ = x · x² or a power, in any order: gelu by tanh

A tensor that the graph gives out, or that something else reads, is never fused away.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine.ops import Kernel, View
from engine.passes.trace import Program
from kernels.ops.binary import Binary
from kernels.ops.unary import Unary

_CLOSE = 1e-5  # constants are written with few digits, or in half precision
_HALF, _ROOT_HALF = 0.5, math.sqrt(0.5)
_ROOT_OF_PI, _CUBIC = math.sqrt(2 / math.pi), 0.044715  # of gelu by tanh


def gated(program: Program) -> Program:
    """The program with such a function as one kernel, where its last node stood. Comes before `fuse`."""
    matcher = _Matcher(program)
    items: list[Kernel | View] = []
    gone: set[str] = set()
    for item in program.items:
        match = matcher.match(item) if isinstance(item, Kernel) else None
        if isinstance(item, Kernel) and match is not None:
            within = [matcher.makers[name] for name in match.within]
            gone.update(match.within)
            nodes = [node for kernel in within for node in kernel.nodes] + list(item.nodes)
            item = replace(
                item,
                params=Unary(kind=match.kind, size=item.params.outputs, alpha=match.alpha),
                inputs=(match.x,),
                nodes=tuple(dict.fromkeys(sorted(nodes, key=matcher.order.__getitem__))),
                parameters=item.parameters + sum(kernel.parameters for kernel in within),
            )
        items.append(item)
    return replace(program, items=tuple(item for item in items if item.output not in gone))


@dataclass(frozen=True)
class _Found:
    """kind of x; within: the tensors that are no longer made."""

    kind: str
    x: str
    within: tuple[str, ...]
    alpha: float = 0.0


class _Matcher:
    def __init__(self, program: Program) -> None:
        kernels = [item for item in program.items if isinstance(item, Kernel)]
        self.makers = {kernel.output: kernel for kernel in kernels}
        self.order = {node: place for place, kernel in enumerate(kernels) for node in kernel.nodes}
        self._constants = program.constants
        self._uses = Counter(program.outputs)
        for item in program.items:
            self._uses.update((item.source,) if isinstance(item, View) else item.inputs)

    def match(self, item: Kernel) -> _Found | None:
        return next(self._matches(item), None)

    def _matches(self, item: Kernel) -> Iterator[_Found]:
        for x, gate in self._product(item):
            yield from self._gates(x, gate)
            # Half of either factor.
            if (whole := self._by_number(x, _HALF)) and (match := self._of_normal(gate, whole)):
                yield _Found(match[0], whole, (x, *match[1]))
            if (whole := self._by_number(gate, _HALF)) and (match := self._of_normal(whole, x)):
                yield _Found(match[0], x, (gate, *match[1]))
        for factor in (_HALF, 1 / 6):
            inner = self._scaled(item, factor)
            if inner is None or inner not in self.makers or self._uses[inner] != 1:
                continue
            for x, gate in self._product(self.makers[inner]):
                if factor == _HALF and (match := self._of_normal(gate, x)):
                    yield _Found(match[0], x, (*match[1], inner))
                shifted = self._of(gate, "clip", 0.0, 6.0) if factor != _HALF else None
                if shifted is not None and self._plus(shifted, 3.0) == x:
                    yield _Found("hard_swish", x, (shifted, gate, inner))

    def _gates(self, x: str, gate: str) -> Iterator[_Found]:
        within = self._of(gate, "sigmoid")
        if within == x:
            yield _Found("swish", x, (gate,), alpha=1.0)
        elif within is not None and (sloped := self._once(within)) is not None:
            other, slope = self._multiplied(sloped)
            if other == x:
                yield _Found("swish", x, (within, gate), alpha=slope)
        if self._of(gate, "hard_sigmoid", 1 / 6, _HALF) == x:
            yield _Found("hard_swish", x, (gate,))
        soft = self._of(gate, "tanh")
        if soft is not None and self._of(soft, "softplus") == x:
            yield _Found("mish", x, (soft, gate))

    def _of_normal(self, name: str, x: str) -> tuple[str, tuple[str, ...]] | None:
        """Where it is 1 + erf(x / √2), or what comes near it by tanh: which gelu that makes, and the tensors
        that it is made of."""
        inside = self._plus(name, 1.0)
        if inside is None:
            return None
        scaled = self._of(inside, "erf")
        if scaled is not None and self._by_number(scaled, _ROOT_HALF) == x:
            return "gelu", (scaled, inside, name)
        argument = self._of(inside, "tanh")
        parts = self._cubic(argument, x) if argument is not None else None
        return None if parts is None else ("gelu_tanh", (*parts, inside, name))

    def _cubic(self, name: str, x: str) -> tuple[str, ...] | None:
        """The tensors of √(2/π) · (x + 0.044715 x³), or of √(2/π) · x · (1 + 0.044715 x²)."""
        total = self._by_number(name, _ROOT_OF_PI)
        if total is not None and (adding := self._once(total)) is not None:
            for one, other in self._pairs(adding, "add"):
                cube = self._by_number(other, _CUBIC) if one == x else None
                if cube is not None and (parts := self._power_of_three(cube, x)) is not None:
                    return (*parts, other, total, name)
        if (kernel := self._once(name)) is not None:
            for one, other in self._product(kernel):
                term = self._plus(other, 1.0) if self._by_number(one, _ROOT_OF_PI) == x else None
                square = self._by_number(term, _CUBIC) if term is not None else None
                if term is not None and square is not None and self._is_square(square, x):
                    return (square, term, other, one, name)
        return None

    def _power_of_three(self, name: str, x: str) -> tuple[str, ...] | None:
        """The tensors of x³."""
        if self._of(name, "pow", 3.0) == x:
            return (name,)
        if (kernel := self._once(name)) is not None:
            for one, other in self._product(kernel):
                if one == x and self._is_square(other, x):
                    return (other, name)
        return None

    def _is_square(self, name: str, x: str) -> bool:
        kernel = self._once(name)
        return kernel is not None and (x, x) in self._product(kernel)

    # --- single kernels ---

    def _once(self, name: str) -> Kernel | None:
        """What makes a tensor that one reader has."""
        return self.makers.get(name) if self._uses[name] == 1 else None

    def _of(self, name: str, kind: str, alpha: float = 0.0, beta: float = 0.0) -> str | None:
        """What the function `kind` of a tensor is, if that is what makes it, for one reader."""
        kernel = self._once(name)
        p = kernel.params if kernel else None
        if kernel is None or not isinstance(p, Unary) or p.kind != kind or p.dtype != "float32":
            return None
        return kernel.inputs[0] if _close(p.alpha, alpha) and _close(p.beta, beta) else None

    def _product(self, kernel: Kernel) -> Iterator[tuple[str, str]]:
        """The factors, either way, of a product of two tensors of one shape."""
        return self._pairs(kernel, "mul")

    def _pairs(self, kernel: Kernel, kind: str) -> Iterator[tuple[str, str]]:
        """The operands, either way, of an operation on two tensors of one shape."""
        p = kernel.params
        dense = isinstance(p, Binary) and len(p.shape) == 1 and p.strides_a == p.strides_b == (1,)
        if isinstance(p, Binary) and dense and p.kind == kind and _plain(p):
            a, b = kernel.inputs
            yield a, b
            yield b, a

    def _scaled(self, kernel: Kernel, factor: float) -> str | None:
        """What is multiplied by this number, or divided by its reciprocal."""
        for kind, value in (("mul", factor), ("div", 1 / factor)):
            if scaled := self._with_number(kernel, kind, value):
                return scaled
        return None

    def _by_number(self, name: str, factor: float) -> str | None:
        kernel = self._once(name)
        return self._scaled(kernel, factor) if kernel else None

    def _plus(self, name: str, value: float) -> str | None:
        kernel = self._once(name)
        return self._with_number(kernel, "add", value) if kernel else None

    def _with_number(self, kernel: Kernel, kind: str, value: float) -> str | None:
        """The other operand of an operation with this number, whose shape the result has."""
        other, number = self._number(kernel, kind)
        return other if other and _close(number, value) else None

    def _multiplied(self, kernel: Kernel) -> tuple[str, float]:
        """What is multiplied by a number, or divided by one, and the factor; "" where nothing is."""
        other, number = self._number(kernel, "mul")
        if other:
            return other, number
        other, number = self._number(kernel, "div")
        return (other, 1 / number) if other and number else ("", 0.0)

    def _number(self, kernel: Kernel, kind: str) -> tuple[str, float]:
        """The operand of an operation with a number, whose shape the result has, and that number; "" where
        there is none."""
        p = kernel.params
        if isinstance(p, Binary) and p.kind == kind and _plain(p):
            for place in (1,) if kind == "div" else (1, 0):
                number = self._constants.get(kernel.inputs[place])
                if number is not None and number.size == 1 and p.input_shapes[1 - place] == p.shape:
                    return kernel.inputs[1 - place], float(number.reshape(-1)[0])
        return "", 0.0


def _plain(p: Binary) -> bool:
    return p.dtype == "float32" and p.activation is None


def _close(value: float, to: float) -> bool:
    return abs(value - to) <= _CLOSE * max(1.0, abs(to))
