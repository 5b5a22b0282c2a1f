"""Transpositions that undo each other: what stands between them is computed without either.

    Conv → Transpose → Add of a constant → Tanh → Transpose back     as Conv → Add → Tanh
    Transpose → Transpose back                                       as a view
    Transpose → Reshape → product with constants                     as a product with turned constants

Exporters of frameworks that keep images as (n, h, w, c) write a convolution so. Only functions of one element
and sums, products … with constants stand between, each read by the next alone; a cast to the same type is
passed by. Nothing is done where a tensor between would be left after `fuse`: it would have another order of
axes than the model's.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np

from engine.graph.plan import TensorSpec
from engine.ops import Kernel, View
from engine.ops.binary import binary_params
from engine.ops.transpose import merge_axes
from engine.passes.fuse import fuse
from engine.passes.trace import Program, free_name
from kernels.ops import Params
from kernels.ops.binary import Binary
from kernels.ops.gemm import Gemm
from kernels.ops.transpose import Transpose
from kernels.ops.unary import Unary

_INNER = ":turned"  # behind the name of a tensor that `fuse` makes vanish
_MOST_AXES = 5  # of tensors with more the order of axes is not looked for


def turned(program: Program) -> Program:
    """The program without pairs of transpositions, and those before a product. Comes before `fuse`."""
    kept: set[str] = set()
    # Looked for anew each time: what undoes one may be undone by the next itself.
    while (chain := next((c for c in _chains(program) if c.first.output not in kept), None)) is not None:
        found = _without(program, chain)
        if found is not None and not any(item.output.endswith(_INNER) for item in fuse(found).items):
            program = found
        else:
            kept.add(chain.first.output)
    for turn in [item for item in program.items if _is_turn(item)]:
        program = _by_turned_rows(program, turn) or program
    return program


@dataclass(frozen=True)
class _Chain:
    """between: what reads the first one's output, one after the other, to the last, which undoes it."""

    first: Kernel
    between: tuple[Kernel | View, ...]
    last: Kernel


def _is_turn(item: Kernel | View) -> TypeGuard[Kernel]:
    return isinstance(item, Kernel) and isinstance(item.params, Transpose)


def _only_readers(program: Program) -> dict[str, Kernel | View]:
    """What reads a tensor, of those that one item reads once, and that are not given out."""
    uses = Counter(program.outputs)
    readers: dict[str, Kernel | View] = {}
    for item in program.items:
        read = (item.source,) if isinstance(item, View) else item.inputs
        uses.update(read)
        readers.update((name, item) for name in read)
    return {name: item for name, item in readers.items() if uses[name] == 1}


def _chains(program: Program) -> Iterator[_Chain]:
    readers = _only_readers(program)
    for first in program.items:
        if not _is_turn(first):
            continue
        between: list[Kernel | View] = []
        name = first.output
        while (reader := readers.get(name)) is not None:
            if isinstance(reader, Kernel) and _undoes(reader, first, program):
                yield _Chain(first, tuple(between), reader)
                break
            if not _keeps_order(reader, name, program):
                break
            between.append(reader)
            name = reader.output


def _undoes(item: Kernel, first: Kernel, program: Program) -> bool:
    """Both have as few axes as can be, so that the one is the other's inverse only where it is written so."""
    back, there = item.params, first.params
    if not isinstance(back, Transpose) or not isinstance(there, Transpose):
        return False
    inverse = tuple(int(axis) for axis in np.argsort(there.perm))
    alike = program.specs[item.output] == program.specs[first.inputs[0]]
    return alike and (back.shape, back.perm) == (there.output_shape, inverse)


def _keeps_order(item: Kernel | View, name: str, program: Program) -> bool:
    """Whether an element of what it gives is of the element of `name` in the same place alone."""
    if program.specs[item.output] != program.specs[name]:
        return False
    if isinstance(item, View) or isinstance(item.params, Unary):
        return True
    others = [other for other in item.inputs if other != name]
    return isinstance(item.params, Binary) and len(others) == 1 and others[0] in program.constants


def _without(program: Program, chain: _Chain) -> Program | None:
    """The program with what stands between in the order of the first one's input; None where the order of its
    axes cannot be told."""
    x, output = chain.first.inputs[0], chain.last.output
    specs, constants = dict(program.specs), dict(program.constants)
    steps = [item for item in chain.between if isinstance(item, Kernel)]
    made: dict[str, Kernel | View] = {}  # by the output of what it stands for
    if not steps:
        every = (chain.first, *chain.between, chain.last)
        made[chain.last.output] = View(x, output, tuple(name for item in every for name in item.nodes))
    source, nodes = x, chain.first.nodes
    for item in chain.between:
        if isinstance(item, View):
            nodes += item.nodes
            continue
        last = item is steps[-1]
        target = output if last else free_name(item.output, _INNER, specs)
        nodes += item.nodes
        kernel = replace(item, output=target, nodes=nodes)
        if isinstance(item.params, Binary):
            sides = _sides(item, chain, program, constants, specs)
            if sides is None:
                return None
            (_, one), (_, other) = sides
            params = binary_params(item.params.kind, one, other, specs[x].shape, item.params.dtype)
            kernel = replace(kernel, params=params, inputs=tuple(name or source for name, _ in sides))
        else:
            kernel = replace(kernel, inputs=(source,))
        specs[target] = specs[x]
        made[item.output] = kernel
        source, nodes = target, ()
    if steps:
        whole = made[steps[-1].output]
        made[steps[-1].output] = replace(whole, nodes=whole.nodes + nodes + chain.last.nodes)
    gone = {item.output for item in (chain.first, *chain.between, chain.last)}
    items = [made.get(item.output, None if item.output in gone else item) for item in program.items]
    left = tuple(item for item in items if item is not None)
    return replace(program, items=left, specs=specs, constants=constants)


def _sides(
    item: Kernel,
    chain: _Chain,
    program: Program,
    constants: dict[str, np.ndarray],
    specs: dict[str, TensorSpec],
) -> list[tuple[str, tuple[int, ...]]] | None:
    """Name ("" for what the chain brings) and shape of both operands, the constant one in the new order."""
    shape = program.specs[chain.first.inputs[0]].shape
    there = chain.first.params
    assert isinstance(there, Transpose)
    if len(shape) > _MOST_AXES:
        return None
    out = program.specs[chain.first.output].shape
    fit = (
        perm
        for perm in itertools.permutations(range(len(shape)))
        if merge_axes(shape, perm) == (there.shape, there.perm) and tuple(shape[axis] for axis in perm) == out
    )
    perm = next(fit, None)
    if perm is None:
        return None
    sides = []
    for name in item.inputs:
        if name not in program.constants:
            sides.append(("", shape))
            continue
        value = program.constants[name]
        wide = value.reshape((1,) * (len(shape) - value.ndim) + value.shape)
        own = free_name(item.output, ":constant", specs)
        constants[own] = np.ascontiguousarray(wide.transpose(np.argsort(perm)))
        specs[own] = TensorSpec(constants[own].shape, program.specs[name].dtype)
        sides.append((own, specs[own].shape))
    return sides


def _by_turned_rows(program: Program, turn: Kernel) -> Program | None:
    """The program with what a transposition and views of it give read as it was before, by a product whose
    constant factor has its rows in that order. None where that is not what follows it."""
    readers = _only_readers(program)
    views: list[View] = []
    name = turn.output
    while isinstance(view := readers.get(name), View):
        views.append(view)
        name = view.output
    product = readers.get(name)
    if not views or not isinstance(product, Kernel) or not isinstance(product.params, Gemm):
        return None
    params, weight = product.params, program.constants.get(product.inputs[1])
    order = _order_of_a_row(turn.params, params)
    if weight is None or order is None or product.inputs[0] != name or params.trans_a or params.batch != 1:
        return None
    if weight.shape != ((params.n, params.k) if params.trans_b else (params.k, params.n)):
        return None
    rows = order.reshape(-1)
    turned_weight = np.empty_like(weight)
    if params.trans_b:
        turned_weight[:, rows] = weight
    else:
        turned_weight[rows] = weight
    spec = program.specs
    read, factor = (free_name(product.output, part, spec) for part in (":read", ":turned rows"))
    specs = {**spec, read: spec[name], factor: spec[product.inputs[1]]}
    before = turn.nodes + tuple(node for view in views for node in view.nodes)
    made: dict[str, Kernel | View] = {
        # Its nodes belong to the product's step.
        name: View(turn.inputs[0], read, before),
        product.output: replace(
            product, inputs=(read, factor, *product.inputs[2:]), nodes=product.nodes + before
        ),
    }
    gone = {turn.output, *(view.output for view in views)}
    items = [made.get(item.output, None if item.output in gone else item) for item in program.items]
    left = tuple(item for item in items if item is not None)
    return replace(program, items=left, specs=specs, constants={**program.constants, factor: turned_weight})


def _order_of_a_row(turn: Params, product: Gemm) -> np.ndarray | None:
    """Where each element of a row that the product reads was before it was turned; None where elements of
    several rows changed places."""
    assert isinstance(turn, Transpose)
    shape, perm = turn.shape, turn.perm
    if product.m > 1:  # the first axis is rows, or rows by what stays in place within each
        if perm[0] != 0 or shape[0] % product.m:
            return None
        shape = (shape[0] // product.m, *shape[1:])
    if math.prod(shape) != product.k:
        return None
    return np.arange(product.k).reshape(shape).transpose(perm)
