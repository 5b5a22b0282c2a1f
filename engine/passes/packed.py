"""Three products of one tensor, which an attention reads as its queries, keys and values, as one product.

    x · Wq + bq, x · Wk + bk, x · Wv + bv → Attention   becomes   x · [Wq Wk Wv] + [bq bk bv] → Attention

Three small products take almost three times as long as one with all their columns. Weights and biases have
to be constants, and nobody else may read what the products give.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from engine.graph.plan import TensorSpec
from engine.ops import Kernel, View
from engine.passes.trace import Program, free_name
from kernels.ops.attention import Attention
from kernels.ops.gemm import Gemm

Packs = Callable[[Kernel, Sequence[Kernel]], bool]
"""(an attention, its three products) → whether these become one on this device."""


def packed(program: Program, packs: Packs) -> Program:
    """The program with every such three products as one, where the first of them stood. Comes behind
    `fuse`."""
    for item in program.items:
        if isinstance(item, Kernel) and isinstance(item.params, Attention):
            program = _packed(program, item, packs) or program
    return program


def _packed(program: Program, attention: Kernel, packs: Packs) -> Program | None:
    p = attention.params
    assert isinstance(p, Attention)
    if p.packed or not all(p.swapped[:3]) or p.queries != p.keys or p.dtype != "float32":
        return None
    makers = {item.output: item for item in program.items}
    uses = Counter(program.outputs)
    for item in program.items:
        uses.update((item.source,) if isinstance(item, View) else item.inputs)
    products: list[Kernel] = []
    gone: set[str] = set()
    for name in attention.inputs[:3]:
        while isinstance(view := makers.get(name), View) and uses[name] == 1:
            gone.add(name)
            name = view.source
        made = makers.get(name)
        if not isinstance(made, Kernel) or uses[name] != 1:
            return None
        products.append(made)
        gone.add(name)
    columns = (p.heads * p.depth, p.kv_heads * p.depth, p.kv_heads * p.depth_v)
    if not _alike(program, products, p.batch * p.queries, columns) or not packs(attention, products):
        return None
    return _with_one(program, attention, products, gone)


def _alike(program: Program, products: Sequence[Kernel], rows: int, columns: Sequence[int]) -> bool:
    """Whether these are products of one tensor that differ in their columns alone."""
    first = products[0].params
    if not isinstance(first, Gemm) or len({made.output for made in products}) < len(products):
        return False
    plain = not first.trans_a and first.batch == 1 and first.activation is None and first.dtype == "float32"
    if not plain or first.m != rows or (first.bias and (first.bias_stride_m, first.bias_stride_n) != (0, 1)):
        return False
    for made, wide in zip(products, columns, strict=True):
        if made.inputs[0] != products[0].inputs[0] or made.params != replace(first, n=wide):
            return False
        constants = [program.constants.get(name) for name in made.inputs[1:]]
        sizes = (first.k * wide, wide)
        if any(a is None or a.size != size for a, size in zip(constants, sizes, strict=False)):
            return False
    return True


def _with_one(program: Program, attention: Kernel, products: Sequence[Kernel], gone: set[str]) -> Program:
    p, first = attention.params, products[0].params
    assert isinstance(p, Attention)
    assert isinstance(first, Gemm)
    specs, constants = dict(program.specs), dict(program.constants)

    def constant(part: str, value: np.ndarray) -> str:
        name = free_name(attention.output, part, specs)
        specs[name], constants[name] = TensorSpec(value.shape, "float32"), value
        return name

    def together(place: int, shape: Callable[[int], tuple[int, ...]], axis: int) -> np.ndarray:
        each = [(made.params, program.constants[made.inputs[place]]) for made in products]
        return np.concatenate([a.reshape(shape(of.n)) for of, a in each if isinstance(of, Gemm)], axis=axis)

    if first.trans_b:
        weights = together(1, lambda n: (n, first.k), 0)
    else:
        weights = together(1, lambda n: (first.k, n), 1)
    inputs = [products[0].inputs[0], constant(":weights", weights)]
    if first.bias:
        inputs.append(constant(":biases", together(2, lambda n: (n,), 0)))
    output = free_name(attention.output, ":packed", specs)
    specs[output] = TensorSpec((p.batch, p.queries, p.width), "float32")
    one = Kernel(
        replace(first, n=p.width),
        tuple(inputs),
        output,
        tuple(dict.fromkeys(node for made in products for node in made.nodes)),
        sum(made.parameters for made in products),
    )
    reading = replace(attention, params=replace(p, packed=True), inputs=(output, *attention.inputs[3:]))
    items: list[Kernel | View] = []
    for item in program.items:
        if item.output in gone:
            if one not in items and item in products:
                items.append(one)
        else:
            items.append(reading if item is attention else item)
    return replace(program, items=tuple(items), specs=specs, constants=constants)
