"""The small shapes that a rung is tried on."""

from __future__ import annotations

from kernels import launch
from kernels.ops import Params, Shape
from kernels.registry import Rung


def small_shapes(rung: Rung, params: Params, quick: bool = False) -> tuple[Shape, ...]:
    """The shapes of this rung's operator that it does not refuse. quick: three that say most."""
    found: dict[Params, Shape] = {}
    for shape in params.small_shapes():
        if shape.params not in found and _taken(rung, shape.params):
            found[shape.params] = shape
    shapes = tuple(found.values())
    if quick:
        kept = [shape for shape in shapes if shape.tag in ("own", "all", "batch")]
        return tuple(kept) or shapes[:3]
    return shapes


def _taken(rung: Rung, params: Params) -> bool:
    if rung.refusal(params) is not None:
        return False
    return rung.device != "cuda" or launch.refusal(params, rung) is None
