"""Pools and what stands before them: an activation goes behind the maximum, a normalisation or a convolution
into one step.

    Tanh | Sigmoid → MaxPool        as a pool that ends in the activation: of its outputs alone
    LRN → MaxPool | AveragePool     as one step: what lies between is never written
    Conv → MaxPool | AveragePool    as one step too, the convolution with its bias and activation

None of it changes what comes out. Both functions never fall, so that the largest of what they give is what
they give for the largest, NaN included. Only a window that holds no pixel would tell the difference: nothing
is moved behind one that has such. (Relu stays where it is: on its way out of a product it costs nothing.)
A tensor that the graph gives out, or that something else reads, is never fused away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from engine.ops import Kernel, View
from engine.passes.trace import Program
from kernels.ops.conv import Conv
from kernels.ops.conv_pool import ConvPool
from kernels.ops.lrn import Lrn
from kernels.ops.lrn_pool import LrnPool
from kernels.ops.pool import Pool
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
    return replace(program, items=tuple(item for item in items if item.output not in gone))


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
