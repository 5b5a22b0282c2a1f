"""How a net in one kernel is shared out: images in a group, threads, blocks that form a team, outputs of a
thread; and where everything lies in shared memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from kernels.net import tensor
from kernels.net.layers import MOST_SUMS, Layer
from kernels.net.records import (
    AS_FLOATS,
    AS_NEIGHBOURS,
    AS_TF32,
    FRAGMENT,
    Buffer,
    Room,
    Shared,
    Tile,
    Way,
    fours,
)
from kernels.occupancy import WARP, ceil
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.pool import Pool

SHARED_NBYTES = {
    (7, 5): 64 << 10,
    (8, 0): 163 << 10,
    (8, 7): 163 << 10,
    (9, 0): 227 << 10,
    (10, 0): 227 << 10,
}
LEAST_SHARED_NBYTES = 99 << 10  # of a block, on the others since 8.6
TOGETHER_NBYTES = 1 << 10  # kept by the system, a block
MOST_WEIGHTS_NBYTES = 1 << 20  # each block reads all of them for every group of images
_GROUPS = (4, 8, 12, 16, 20, 24)  # images
_LITTLE = 2048  # products of a layer that one block does alone
_LITTLE_ON_TENSOR_CORES = 16384
_MANY_THREADS = 256
_TEAM_OF_FEW = 4  # blocks: smaller teams take group after group, and then none is to wait for another


def room(layers: Sequence[Layer], way: Way, nbytes: int) -> Room | None:
    """The places of everything within `nbytes` of shared memory; None where it does not fit."""
    fitted = {i: tile(layer, way) for i, layer in enumerate(layers) if isinstance(layer.params, Conv)}
    if any(tile is None for tile in fitted.values()):
        return None
    tiles = {i: tile for i, tile in fitted.items() if tile is not None}
    shapes = [_buffer(layers, i, tiles.get(i), way) for i in range(len(layers))]
    # The first is filled anew while the others are in use; borders are never written to. The rest take turns.
    end, placed = 0, dict[int, int]()
    for i, shape in enumerate(shapes):
        if shape.bordered:
            placed[i] = end
            end += fours(shape.floats * way.images)
    bordered = end
    if 0 not in placed:
        placed[0] = end
        end += fours(shapes[0].floats * way.images)
    staged = end if shapes[0].kind > AS_TF32 else None
    if staged is not None:
        end += fours(math.prod(shapes[0].extent) * way.images)
    free = [i for i in range(len(shapes)) if i not in placed]
    turns = [
        max((fours(shapes[i].floats * way.images) for i in free if i % 2 == odd), default=0) for odd in (0, 1)
    ]
    arenas = end, end + turns[0]
    for i in free:
        placed[i] = arenas[i % 2]
    end += sum(turns)
    # Parts of sums lie behind what the product gives, where there is room, or what it reads.
    solo = _solo(layers, way)
    gemms = {i: layer.params for i, layer in enumerate(layers) if isinstance(layer.params, Gemm)}
    teams = {i: way.ranks if i < solo else 1 for i in gemms}
    slices = {i: _slices(p, way, teams[i]) for i, p in gemms.items()}
    parts: dict[int, int] = {}
    beside = 0
    for i, count in slices.items():
        if count == 1:
            continue
        wanted = count * way.images * _outputs(gemms[i], way, teams[i])
        for near in (i + 1, i):
            own = fours(shapes[near].floats * way.images) if near in free else 0
            if near <= len(shapes) and own + wanted <= turns[near % 2]:
                parts[i] = arenas[near % 2] + own
                break
        else:
            parts[i], beside = end, max(beside, fours(wanted))
    shared = [tensor.shared_floats(layers[i], tile, way) for i, tile in tiles.items() if tile.tensor]
    scratch, end = end, end + max(beside, *map(fours, shared), 0)
    weights = end
    convolutions: dict[int, tuple[Tile, int]] = {}
    biases: dict[int, int] = {}
    for i, layer in enumerate(layers):
        if isinstance(layer.params, Conv):
            convolutions[i] = tiles[i], end
            end += fours(conv_floats(layer.params, tiles[i]) + layer.params.m + table(layer.params, tiles[i]))
        elif isinstance(layer.params, Gemm):
            biases[i] = end
            end += fours(layer.params.n)
    common = end - weights
    if 4 * end > nbytes:
        return None
    products: dict[int, Shared] = {}
    for i, p in gemms.items():
        alone = way.images == 1 and not way.tensor
        team = teams[i]
        local = _outputs(p, way, team)
        lead, rows = (fours(p.k), local) if alone else (local, p.k)
        if way.tensor:
            lead, rows = FRAGMENT, local // 16 * ceil(p.k, way.deep)
        fits = 4 * (end + fours(rows * lead)) <= nbytes
        products[i] = Shared(
            end if fits else None,
            biases[i],
            lead,
            rows,
            slices[i],
            parts.get(i, 0),
            team,
            way.tensor,
            way.half,
        )
        end += products[i].nfloats if fits else 0
    buffers = tuple(Buffer(**{**vars(shape), "at": placed[i]}) for i, shape in enumerate(shapes))
    return Room(buffers, bordered, weights, common, convolutions, products, solo, end, staged, scratch)


def ways(
    layers: Sequence[Layer],
    batch: int,
    capability: tuple[int, int],
    multiprocessors: int,
    tensor: bool = False,
    half: str = "",
) -> tuple[Way, ...]:
    """The ways worth trying; none where nothing fits. tensor: TF32 is precise enough; half: this type of
    16 bits is, too ("": none)."""
    if weights_nbytes(layers) > MOST_WEIGHTS_NBYTES:
        return ()
    choices = _of_teams(batch, multiprocessors) if capability >= (9, 0) else []
    if batch <= 2 * multiprocessors:
        choices += [Way(1, 1, 512, most=6), Way(1, 1, 512)]

    def waits(images: int) -> float:
        """How long a multiprocessor is at it, in images; weights are read once a group, as long as about
        two of them take."""
        return ceil(ceil(batch, images), multiprocessors) * (images + 2.0)

    if batch > multiprocessors:
        best = sorted((i for i in _GROUPS if _fits(layers, Way(1, i, 512, 1, 6), capability)), key=waits)[:2]
        choices += [Way(1, images, 512, 1, 8, beside=2) for images in best]
        for images in best[:1]:
            choices += [Way(1, images, 512, 1, 8), Way(1, images, 512, 1, 4, beside=4)]
        choices += [Way(1, 8, 256, 2, 6), Way(1, 8, 256, 2, 8, beside=2)]
    if tensor:
        choices += _of_one_image(batch, capability, multiprocessors)
    if tensor and capability >= (9, 0):
        # So many images are the columns of an instruction; a team reads its products' weights once.
        choices += [
            Way(ranks, 8, threads, tensor=True, sent=True)
            for ranks in (8, 4)
            for threads in (256, 512)
            if ceil(batch, 8) * ranks <= multiprocessors * 512 // threads
        ]
        if batch > multiprocessors:
            choices += [Way(2, 8, 512, tensor=True), Way(2, 16, 512, tensor=True)]
            choices.append(Way(2, 8, 256, 2, tensor=True))
    if tensor and capability >= (8, 0) and batch > multiprocessors // 4:
        choices += [Way(1, 8, 256, 2, tensor=True), Way(1, 8, 512, tensor=True), Way(1, 16, 512, tensor=True)]
    choices = [replace(way, half=half if way.tensor else "") for way in choices]
    return tuple(way for way in choices if _fits(layers, way, capability))


def _of_teams(batch: int, multiprocessors: int) -> list[Way]:
    """Ways for few images, without tensor cores."""
    each = [ranks for ranks in (8, 4) if batch * ranks <= multiprocessors]
    choices = [Way(ranks, 1, threads, sent=True) for ranks in each for threads in (128, 256)]
    choices += [Way(ranks, 1, 128) for ranks in each]
    if multiprocessors // 4 < batch <= multiprocessors:
        choices += [Way(2, 2, 512), Way(4, 4, 512)]
        choices += [Way(many, many, threads, sent=True) for many in (4, 8) for threads in (256, 512)]
    return choices


def _of_one_image(batch: int, capability: tuple[int, int], multiprocessors: int) -> list[Way]:
    """Ways on tensor cores whose columns are pixels of one image."""
    choices: list[Way] = []
    if capability >= (9, 0):
        choices += [
            Way(ranks, 1, threads, tensor=True, sent=True)
            for ranks in (8, 4)
            for threads in (128, 256)
            if batch * ranks <= multiprocessors
        ]
    if capability >= (8, 0) and batch <= multiprocessors:
        choices += [Way(1, 1, 256, tensor=True), Way(1, 1, 512, tensor=True)]
    elif capability >= (8, 0) and batch <= 2 * multiprocessors:
        choices.append(Way(1, 1, 256, 2, tensor=True))
    return choices


def _fits(layers: Sequence[Layer], way: Way, capability: tuple[int, int]) -> bool:
    return room(layers, way, block_nbytes(capability, way)) is not None


def block_nbytes(capability: tuple[int, int], way: Way) -> int:
    """Shared memory that a block may use."""
    most = SHARED_NBYTES.get(capability, LEAST_SHARED_NBYTES if capability >= (8, 0) else 48 << 10)
    return most if way.blocks == 1 else (most + TOGETHER_NBYTES) // way.blocks // 128 * 128 - TOGETHER_NBYTES


def weights_nbytes(layers: Sequence[Layer]) -> int:
    """Bytes of the weights of all layers, as in the model."""
    return sum(4 * getattr(layer.params, "weights", 0) for layer in layers)


def conv_floats(p: Conv, tile: Tile) -> int:
    """Floats of a convolution's packed weights."""
    if tile.tensor:
        return tensor.floats(p, tile)
    parts = ceil(p.m // p.group, tile.many)
    return p.group * parts * (p.c // p.group) * p.kh * p.kw * tile.stride


def table(p: Conv, tile: Tile) -> int:
    """Words of the table that says where each step of a convolution's sum lies."""
    return tensor.slabs(p, tile) * tensor.WORDS if tile.tensor else 0


def _buffer(layers: Sequence[Layer], i: int, tile: Tile | None, way: Way) -> Buffer:
    """The buffer that layer i reads."""
    p = layers[i].params
    if not isinstance(p, Conv) or tile is None:
        extent = layers[i].takes
        if i and extent[1:] == (1, 1):
            extent = layers[i - 1].gives
        kind = (AS_NEIGHBOURS if way.halves else AS_TF32) if way.tensor and isinstance(p, Gemm) else AS_FLOATS
        return Buffer(extent, extent[1], extent[2], extent[1] * extent[2], kind=kind)
    cells = ceil(p.out_h, tile.down), ceil(p.out_w, tile.across)
    pooled = layers[i].pool
    if pooled is not None:
        cells = pooled.out_h, pooled.out_w
    read = [
        (cell * each - 1) * stride + (kernel - 1) * dilation + 1
        for cell, each, stride, kernel, dilation in (
            (cells[0], tile.down, p.stride_h, p.kh, p.dilation_h),
            (cells[1], tile.across, p.stride_w, p.kw, p.dilation_w),
        )
    ]
    apart = 1 if tile.tensor else tile.across * p.stride_w
    rows, row = max(read[0], p.pad_top + p.h), ceil(max(read[1], p.pad_left + p.w), apart) * apart
    plane = rows * row
    if tile.tensor:
        row, plane = tensor.strides(p, tile, rows, row)
    if tile.shares > 1:  # lanes that share a sum read channels from banks of their own
        plane += (WARP // tile.shares - plane) % WARP
    return Buffer((p.c, p.h, p.w), rows, row, plane, p.pad_top, p.pad_left, apart, tile.kind)


def _solo(layers: Sequence[Layer], way: Way) -> int:
    """The first layer from which on one block finishes sooner alone than a team could."""
    solo = len(layers)
    if way.ranks == 1 or (way.images > 1 and not (way.tensor and way.ranks >= _TEAM_OF_FEW)):
        return solo
    many = way.tensor and (way.images > 1 or way.threads >= _MANY_THREADS)
    little = _LITTLE_ON_TENSOR_CORES if many else _LITTLE
    while solo > 1 and not isinstance(layers[solo - 1].params, Conv | Pool):
        p = layers[solo - 1].params
        if isinstance(p, Gemm) and p.k * p.n > little:
            break
        solo -= 1
    return solo


def _outputs(p: Gemm, way: Way, team: int) -> int:
    """Outputs of a product that one block of the team computes; on tensor cores a multiple of sixteen."""
    return ceil(ceil(p.n, 16), team) * 16 if way.tensor else ceil(p.n, team)


def _slices(p: Gemm, way: Way, team: int) -> int:
    """How many warps share the sum of a product of several images."""
    if way.images == 1 and not way.tensor:
        return 1
    warps, outputs = way.threads // WARP, _outputs(p, way, team)
    if way.tensor:
        return max(1, min(warps // (outputs // 16), ceil(p.k, way.deep) // 4))
    return max(1, min(warps // ceil(outputs, WARP), p.k // 8))


# ---------------------------------------------------------------------------------------------------- tiles

# What a thread computes of a convolution of one kernel.


_MANY = (1, 2, 3, 4, 6, 8)
_SHARES = (1, 2, 4, 8)
_REGISTERS = 56  # of a thread beside its sums


def tile(layer: Layer, way: Way) -> Tile | None:
    """The tile that is likely to take least time."""
    p, pool = layer.params, layer.pool
    assert isinstance(p, Conv)
    if way.tensor and (on_tensor_cores := tensor.tile(layer, way)) is not None:
        return on_tensor_cores
    down, across = (pool.kh, pool.kw) if pool else (min(2, p.out_h), min(2, p.out_w))
    out_h, out_w = (pool.out_h, pool.out_w) if pool else (ceil(p.out_h, down), ceil(p.out_w, across))
    channels, outputs = p.c // p.group, p.m // p.group
    counts: tuple[int, ...] = _MANY
    if way.most:
        most = MOST_SUMS // (down * across * way.beside)
        allowed = [m for m in _MANY if m <= min(way.most, most)]
        counts = (min(allowed, key=lambda m: (ceil(outputs, m) * m, -m)),) if allowed else ()
    best: tuple[float, Tile] | None = None
    for many in counts:
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
