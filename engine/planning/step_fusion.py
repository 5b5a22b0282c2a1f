"""Where two consecutive operators become one step (kernels.ops: LrnPool, ConvPool).

In tf32 and fp16 a convolution has rungs of its own, but it and its pool together have none. A step may
compute more precisely than asked: so there, too, they become one step in fp32, unless both ways were timed
and two steps are faster (`ways` says what has to be timed for that).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from engine.ops import Kernel
from engine.options import Options
from engine.passes import Joins, Packs
from engine.planning import choices
from kernels import launch, registry
from kernels.ops import GELUS, Params
from kernels.ops.conv import Conv
from kernels.ops.conv_pool import ConvPool
from kernels.ops.lrn import Lrn
from kernels.ops.lrn_pool import LrnPool
from kernels.ops.pool import Pool
from kernels.precision import FP32

# Products that a sum of a joined convolution may have. So long ones were timed (300, in ece408-2conv); longer
# ones are what tiles are for, and nobody has looked which is faster.
_LONGEST = 320
FLOAT = "float32"
_PLAIN = 1  # the number of a ladder's plain kernel, which computes again for every window that holds a pixel


def behind(device: str) -> Collection[str]:
    """What products do on the way out on this device, beside what all their kernels do. On the CPU a step of
    its own divides the elements among the threads."""
    return GELUS if device == "cuda" else ()


def packed(device: str, options: Options) -> Packs | None:
    """Which three products of an attention become one: on a GPU all, unless rungs are named for them that
    differ, or a user's for the attention, which knows its inputs as ONNX has them. None: none."""

    def packs(attention: Kernel, products: Sequence[Kernel]) -> bool:
        named = [tuple(options.rungs[n] for n in made.nodes if n in options.rungs) for made in products]
        wanted = [options.rungs[n] for n in attention.nodes if n in options.rungs]
        rungs = registry.rungs(device, attention.params.op, options.kernel_dirs) if wanted else ()
        own = any(rung.user and wanted[0] in (rung.name, str(rung.number)) for rung in rungs)
        return not own and not any(named[1:])

    return packs if device == "cuda" else None


def always(made: Kernel, weights_known: bool) -> bool:
    """Wherever two operators can be one step."""
    return True


def never(made: Kernel, weights_known: bool) -> bool:
    """Nowhere."""
    return False


def better_fused(device: str, options: Options, precision: str) -> Joins:
    """One step for two operators where that is faster on this device: if the best kernel for both takes them
    (a lesser one would be slower than two kernels), and two kernels, each in the precision asked for, were
    not timed to be faster. A rung that is named for one of the nodes keeps them apart, unless it is one for
    both."""
    return _joins(device, options, precision, lambda p: not _faster_apart(device, p, precision, options))


def ways(device: str, options: Options, precision: str) -> tuple[Joins, ...]:
    """`better_fused` with every open question answered by yes, and by no: the steps of these plans have to be
    timed before it can decide. One way where nothing is open in this precision."""
    if device != "cuda" or precision == FP32:
        return (better_fused(device, options, precision),)
    return tuple(_joins(device, options, precision, partial(_settled, yes)) for yes in (True, False))


def _settled(yes: bool, p: LrnPool | ConvPool) -> bool:
    return yes


def _joins(
    device: str, options: Options, precision: str, settled: Callable[[LrnPool | ConvPool], bool]
) -> Joins:
    """settled: whether two operators, of which single ones have rungs of the precision, are better as one
    step."""

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
        if not _taken(device, p, precision, weights_known):
            return False
        if p.dtype != FLOAT:  # exact in any precision, and without what is moved between the steps
            return True
        return not _coarser_apart(device, p, precision, weights_known) or settled(p)

    return joins


def fused_on(devices: Collection[str]) -> Joins:
    """Two operators count as one on all of these devices if one of the devices has one step for both: the
    same at every batch size."""

    def joins(made: Kernel, weights_known: bool) -> bool:
        p = _params(made)
        if isinstance(p, LrnPool):
            # Between bytes a device that works it out in float32 steps rounds some ties the other way: beside
            # such a one its steps are looked at apart.
            return p.dtype == FLOAT or "cpu" not in devices
        return "cuda" in devices and _taken("cuda", p.of_images(1), FP32, weights_known)

    return joins


def _taken(device: str, p: LrnPool | ConvPool, precision: str, weights_known: bool) -> bool:
    """Whether the best kernel for both takes them."""
    if isinstance(p, ConvPool) and (p.c // p.group * p.kh * p.kw > _LONGEST or p.conv.depthwise):
        return False  # single channels have rungs of their own
    able = registry.candidates(device, p.op, precision, weights_known)
    # Between bytes it is another kernel's work, if there is one.
    best = next((rung for rung in able if p.dtype in rung.needs.get("dtype", p.usual_dtypes)), None)
    if best is None or (device == "cuda" and best.number == _PLAIN):
        return False
    return best.refusal(p) is None and (device != "cuda" or launch.refusal(p, best) is None)


def _coarser_apart(device: str, p: LrnPool | ConvPool, precision: str, weights_known: bool) -> bool:
    """Whether one of the two operators has rungs of this precision, and both together have none."""

    def has(op: str) -> bool:
        rungs = registry.candidates(device, op, precision, weights_known)
        return any(rung.precision == precision for rung in rungs)

    return not has(p.op) and any(map(has, (Conv.op if isinstance(p, ConvPool) else Lrn.op, Pool.op)))


def _faster_apart(device: str, p: LrnPool | ConvPool, precision: str, options: Options) -> bool:
    """Whether all three were timed, and the two single kernels take less time. (Their weights are constants:
    else no rung for both would have been taken.)"""
    if not options.tuned or not isinstance(p, ConvPool):
        return False

    def timed(params: Params) -> float | None:
        rungs = choices.candidates(device, params, precision, True)
        return choices.time_ns(device, params, precision, rungs, options.threads)

    both, conv, pool = timed(p), timed(p.conv), timed(p.pool)
    return both is not None and conv is not None and pool is not None and conv + pool < both


def _params(made: Kernel) -> LrnPool | ConvPool:
    if not isinstance(made.params, LrnPool | ConvPool):
        raise TypeError(f"{made.params} is not two operators in one")
    return made.params
