"""Where two operators that follow each other are one step (kernels.ops: LrnPool, ConvPool)."""

from __future__ import annotations

from collections.abc import Collection

from engine.ops import Kernel
from engine.options import Options
from engine.passes import Joins
from kernels import launch, registry
from kernels.ops import PRECISIONS
from kernels.ops.conv import Conv
from kernels.ops.conv_pool import ConvPool
from kernels.ops.lrn import Lrn
from kernels.ops.lrn_pool import LrnPool
from kernels.ops.pool import Pool

# Products that a sum of a joined convolution may have. So long ones were timed (300, in ece408-2conv); longer
# ones are what tiles are for, and nobody has looked which is faster.
_LONGEST = 320
_PLAIN = 1  # the number of a ladder's plain kernel, which computes again for every window that holds a pixel


def better_fused(device: str, options: Options, precision: str) -> Joins:
    """Where a device is better off with one step for two: where the best kernel for both takes them, for a
    lesser one would be slower than the two apart. Not where one of the two has rungs of the precision asked
    for and both together have none. A rung named for one of the nodes keeps them apart, unless it is one for
    both."""

    def joins(made: Kernel, weights_known: bool) -> bool:
        p = _params(made)
        if not options.joins:
            return False
        named = {options.rungs[node] for node in made.nodes if node in options.rungs}
        if named:
            return named <= {rung.name for rung in registry.rungs(device, p.op, options.kernel_dirs)}
        if device == "cpu" and (p.n == 1 or isinstance(p, ConvPool)):
            # Its threads divide images, and apart the pool at least is divided; and a convolution is faster
            # over many images at once.
            return False
        return _taken(device, p, precision, weights_known)

    return joins


def fused_on(devices: Collection[str]) -> Joins:
    """Where two operators are looked at as one on all of these devices, because one of them has one step for
    both: the same at every batch size."""

    def joins(made: Kernel, weights_known: bool) -> bool:
        p = _params(made)
        if isinstance(p, LrnPool):
            return True
        return "cuda" in devices and _taken("cuda", p.of_images(1), PRECISIONS[0], weights_known)

    return joins


def _taken(device: str, p: LrnPool | ConvPool, precision: str, weights_known: bool) -> bool:
    """Whether the best kernel for both takes them."""
    if isinstance(p, ConvPool) and (p.c // p.group * p.kh * p.kw > _LONGEST or p.conv.depthwise):
        return False  # single channels have rungs of their own
    best = next(iter(registry.candidates(device, p.op, precision, weights_known)), None)
    if best is None or (device == "cuda" and best.number == _PLAIN):
        return False
    halves = (Conv.op if isinstance(p, ConvPool) else Lrn.op, Pool.op)
    finer = (rung for half in halves for rung in registry.candidates(device, half, precision, weights_known))
    if best.precision != precision and any(rung.precision == precision for rung in finer):
        return False
    return best.refusal(p) is None and (device != "cuda" or launch.refusal(p, best) is None)


def _params(made: Kernel) -> LrnPool | ConvPool:
    if not isinstance(made.params, LrnPool | ConvPool):
        raise TypeError(f"{made.params} is not two operators in one")
    return made.params
