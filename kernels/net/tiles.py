"""What a thread computes of a convolution of one kernel."""

from __future__ import annotations

from kernels.net import tensor
from kernels.net.layers import MOST_SUMS, Layer
from kernels.net.records import Tile, Way
from kernels.occupancy import WARP, ceil
from kernels.ops.conv import Conv

_MANY = (1, 2, 3, 4, 6, 8)
_SHARES = (1, 2, 4, 8)
_REGISTERS = 56  # of a thread beside its sums


def tile(layer: Layer, way: Way) -> Tile | None:
    """The one that is likely to take least time."""
    p, pool = layer.params, layer.pool
    assert isinstance(p, Conv)
    if way.tensor and (found := tensor.tile(layer, way)) is not None:
        return found
    down, across = (pool.kh, pool.kw) if pool else (min(2, p.out_h), min(2, p.out_w))
    out_h, out_w = (pool.out_h, pool.out_w) if pool else (ceil(p.out_h, down), ceil(p.out_w, across))
    channels, outputs = p.c // p.group, p.m // p.group
    taken: tuple[int, ...] = _MANY
    if way.most:
        most = MOST_SUMS // (down * across * way.beside)
        allowed = [m for m in _MANY if m <= min(way.most, most)]
        taken = (min(allowed, key=lambda m: (ceil(outputs, m) * m, -m)),) if allowed else ()
    best: tuple[float, Tile] | None = None
    for many in taken:
        sums = way.beside * down * across * many
        if sums > MOST_SUMS or 65536 // (way.threads * way.blocks) < sums + _REGISTERS:
            continue
        every = way.threads * way.ranks
        alone = way.images // way.beside * out_h * out_w * ceil(outputs, many) * p.group
        few = [s for s in _SHARES if s == 1 or (s <= min(channels, 2 * many) and way.images == 1)]
        if way.most:  # as many as find a thread
            few = [max((s for s in few if alone * s <= every and s <= many), default=1)]
        for shares in few:
            items = alone * shares
            reach = (down - 1) * p.stride_h + (p.kh - 1) * p.dilation_h + 1
            read = reach * (p.kw + across - 1) + p.kh * p.kw * ceil(many, 4)
            each = ceil(channels, shares) * (read + p.kh * p.kw * sums) + 40
            if shares > 1:
                each += down * across * ceil(many * (shares - 1), shares) * 4
            rounds = ceil(items, every)
            warps = ceil(min(items, every), WARP * way.ranks)
            # Of a warp alone an instruction takes about two cycles; four warps start one each in a cycle.
            time = rounds * each * max(2.0, warps / 4)
            if best is None or time < best[0]:
                best = time, Tile(down, across, many, shares, beside=way.beside)
    return best[1] if best else None
