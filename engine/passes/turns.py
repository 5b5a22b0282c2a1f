"""Transpositions that undo each other: what stands between them is computed without either.

    Conv → Transpose → Add of a constant → Tanh → Transpose back     as Conv → Add → Tanh
    Transpose → Transpose back                                       as a view

Exporters of frameworks that keep images as (n, h, w, c) write a convolution so. Only functions of one element
and sums, products … with constants stand between, each read by the next alone; a cast to the same type is
passed by. Nothing is done where a tensor between would be left after `fuse`: it would have another order of
axes than the model's.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from engine.graph.plan import TensorSpec
from engine.ops import Kernel, View
from engine.ops.binary import binary_params
from engine.ops.transpose import merge_axes
from engine.passes.fuse import fuse
from engine.passes.trace import Program
from kernels.ops.binary import Binary
from kernels.ops.transpose import Transpose
from kernels.ops.unary import Unary

_INNER = ":turned"  # behind the name of a tensor that `fuse` makes vanish
_MOST_AXES = 5  # of tensors with more the order of axes is not looked for


def turned(program: Program) -> Program:
    """The program without pairs of transpositions. Comes before `fuse`."""
    for chain in list(_chains(program)):
        found = _without(program, chain)
        if found is not None and not any(item.output.endswith(_INNER) for item in fuse(found).items):
            program = found
    return program


@dataclass(frozen=True)
class _Chain:
    """between: what reads the first one's output, one after the other, to the last, which undoes it."""

    first: Kernel
    between: tuple[Kernel | View, ...]
    last: Kernel


def _chains(program: Program) -> Iterator[_Chain]:
    uses = Counter(program.outputs)
    readers: dict[str, Kernel | View] = {}
    for item in program.items:
        read = (item.source,) if isinstance(item, View) else item.inputs
        uses.update(read)
        readers.update((name, item) for name in read)
    for first in program.items:
        if not isinstance(first, Kernel) or not isinstance(first.params, Transpose):
            continue
        between: list[Kernel | View] = []
        name = first.output
        while uses[name] == 1 and (reader := readers.get(name)) is not None:
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
        target = output if last else f"{item.output}{_INNER}"
        nodes += item.nodes
        kernel = replace(item, output=target, nodes=nodes)
        if isinstance(item.params, Binary):
            sides = _sides(item, chain, program, constants, specs)
            if sides is None:
                return None
            params = binary_params(
                item.params.kind, *(shape for _, shape in sides), specs[x].shape, item.params.dtype
            )
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
        own = f"{item.output}:constant"
        constants[own] = np.ascontiguousarray(wide.transpose(np.argsort(perm)))
        specs[own] = TensorSpec(constants[own].shape, program.specs[name].dtype)
        sides.append((own, specs[own].shape))
    return sides
