"""Pools and what stands before them: an activation goes behind the maximum, a normalisation or a convolution
into one step.

    Tanh | Sigmoid → MaxPool        as a pool that ends in the activation: of its outputs alone
    LRN → MaxPool | AveragePool     as one step: what lies between is never written
    Conv → MaxPool | AveragePool    as one step too, the convolution with its bias and activation
    DequantizeLinear → LRN → MaxPool → QuantizeLinear, each by one scale    as one step between bytes

None of it changes what comes out. Both functions never fall, so that the largest of what they give is what
they give for the largest, NaN included. Only a window that holds no pixel would tell the difference: nothing
is moved behind one that has such. (Relu stays where it is: on its way out of a product it costs nothing.)
A tensor that the graph gives out, or that something else reads, is never fused away.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from engine.ops import Kernel, View
from engine.passes.trace import Program
from kernels.ops._quantized import EIGHT_BITS
from kernels.ops.conv import Conv
from kernels.ops.conv_pool import ConvPool
from kernels.ops.lrn import Lrn
from kernels.ops.lrn_pool import LrnPool
from kernels.ops.pool import Pool
from kernels.ops.quantize import Quantize
from kernels.ops.unary import Unary

# Windows that are looked at one by one; no pool that is worth a thought has more beyond the image's edge.
_MOST_WINDOWS = 10_000
NEVER_FALLING = ("tanh", "sigmoid")

Joins = Callable[[Kernel, bool], bool]
"""(what the two make together, an LrnPool or ConvPool; whether its weights are constants) → whether they are
to be one step."""


def postpone(program: Program) -> Program:
    """The program with activations moved behind the maximum that reads them. Comes before `fuse`, which
    would make them part of the convolution."""
    uses, makers = _uses(program), _makers(program)
    gone: set[str] = set()
    items: list[Kernel | View] = []
    for item in program.items:
        maker = makers.get(item.inputs[0]) if isinstance(item, Kernel) else None
        if isinstance(item, Kernel) and maker is not None and uses[maker.output] == 1:
            postponed = _postponed(maker, item)
            if postponed is not None:
                gone.add(maker.output)
                item = replace(
                    item,
                    params=postponed,
                    inputs=maker.inputs,
                    nodes=item.nodes + maker.nodes,
                    parameters=item.parameters + maker.parameters,
                )
        items.append(item)
    return replace(program, items=tuple(item for item in items if item.output not in gone))


def join(program: Program, joins: Joins) -> Program:
    """The program with normalisations and convolutions and the pools that read them as one kernel each, where
    `joins` says so. Comes after `fuse`."""
    uses, makers = _uses(program), _makers(program)
    gone: set[str] = set()
    items: list[Kernel | View] = []
    for item in program.items:
        maker = makers.get(item.inputs[0]) if isinstance(item, Kernel) else None
        if isinstance(item, Kernel) and maker is not None and uses[maker.output] == 1:
            joint = _joined(maker, item)
            if joint is not None and joins(
                joint, all(name in program.constants for name in joint.inputs[1:])
            ):
                gone.add(maker.output)
                item = joint
        items.append(item)
    return _in_bytes(replace(program, items=tuple(item for item in items if item.output not in gone)), joins)


def _in_bytes(program: Program, joins: Joins) -> Program:
    """With normalisations and their pools that stand between numbers of eight bits as one step from those to
    those, where `joins` says so."""
    uses, makers = _uses(program), _makers(program)
    made: dict[str, Kernel] = {}
    gone: set[str] = set()
    for item in program.items:
        if not isinstance(item, Kernel) or not isinstance(item.params, Quantize):
            continue
        pool = makers.get(item.inputs[0])
        before = makers.get(pool.inputs[0]) if pool is not None else None
        if pool is None or before is None or uses[pool.output] != 1 or uses[before.output] != 1:
            continue
        joint = _between_bytes(before, pool, item, program.constants)
        if joint is not None and joins(joint, True):
            made[item.output] = joint
            gone |= {before.output, pool.output}
    if not made:
        return program
    items = (made.get(item.output, item) for item in program.items if item.output not in gone)
    return replace(program, items=tuple(items))


def _between_bytes(
    before: Kernel, pool: Kernel, behind: Kernel, constants: Mapping[str, np.ndarray]
) -> Kernel | None:
    """The three in one, or None where they cannot be."""
    first, second, third = before.params, pool.params, behind.params
    if not (isinstance(first, Quantize) and isinstance(second, LrnPool) and isinstance(third, Quantize)):
        return None
    read, written = (first.dtype, first.to), (third.dtype, third.to)
    if read[0] not in EIGHT_BITS or read[1] != "float32" or first.channels * third.channels != 1:
        return None
    if written[0] != "float32" or written[1] not in EIGHT_BITS or second.dtype != "float32":
        return None
    told = [constants.get(name) for name in (*before.inputs[1:], *behind.inputs[1:])]
    if any(value is None for value in told):
        return None
    x_scale, x_zero, out_scale, out_zero = (
        float(value.reshape(-1)[0]) for value in told if value is not None
    )
    if not (0 < x_scale < math.inf and 0 < out_scale < math.inf):
        return None
    params = replace(
        second,
        dtype=read[0],
        to=written[1],
        x_scale=x_scale,
        x_zero=int(x_zero),
        out_scale=out_scale,
        out_zero=int(out_zero),
    )
    nodes = tuple(dict.fromkeys((*before.nodes, *pool.nodes, *behind.nodes)))
    parameters = before.parameters + pool.parameters + behind.parameters
    return Kernel(params, before.inputs[:1], behind.output, nodes, parameters)


def _postponed(before: Kernel, after: Kernel) -> Pool | None:
    """`after` with the activation that it may do in place of `before`, or None."""
    unary, pool = before.params, after.params
    if not isinstance(unary, Unary) or unary.kind not in NEVER_FALLING:
        return None
    if not isinstance(pool, Pool) or pool.kind != "max" or pool.activation is not None:
        return None
    if pool.dtype != unary.dtype or pool.out_h * pool.out_w >= pool.h * pool.w:
        return None
    rows = _sees(pool.out_h, pool.stride_h, pool.pad_top, pool.kh, pool.dilation_h, pool.h)
    columns = _sees(pool.out_w, pool.stride_w, pool.pad_left, pool.kw, pool.dilation_w, pool.w)
    return replace(pool, activation=unary.kind) if rows and columns else None


def _sees(out: int, stride: int, pad: int, kernel: int, dilation: int, size: int) -> bool:
    """Whether every window along an axis holds a pixel of the image."""
    if (out - 1) * stride - pad >= size:
        return False
    early = min(out, -(-pad // stride))  # windows that begin before the image
    if early > _MOST_WINDOWS:
        return False
    for pixel in range(pad, pad - early * stride, -stride):
        first = -(-pixel // dilation)  # of its pixels, the first that is not before the image
        if first >= kernel or first * dilation - pixel >= size:
            return False
    return True


def _joined(before: Kernel, after: Kernel) -> Kernel | None:
    """Both in one, or None where there is no kernel for that."""
    first, pool = before.params, after.params
    if not isinstance(pool, Pool) or pool.dtype != first.dtype:
        return None
    params: LrnPool | ConvPool
    if isinstance(first, Conv):
        params = ConvPool(first, pool)
    elif isinstance(first, Lrn) and pool.activation is None:
        params = LrnPool.of(first, pool)
    else:
        return None
    nodes, parameters = before.nodes + after.nodes, before.parameters + after.parameters
    return Kernel(params, before.inputs, after.output, nodes, parameters)


def _uses(program: Program) -> Counter[str]:
    """How often each tensor is read, or given out."""
    uses = Counter(program.outputs)
    for item in program.items:
        uses.update((item.source,) if isinstance(item, View) else item.inputs)
    return uses


def _makers(program: Program) -> dict[str, Kernel]:
    return {item.output: item for item in program.items if isinstance(item, Kernel)}
