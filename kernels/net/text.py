"""What the compiler is told of a net in one kernel, its launch, and its weights as the kernel reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernels import packing, registry
from kernels.launch import Stage
from kernels.net.layers import Layer
from kernels.net.plan import conv_floats
from kernels.net.records import Buffer, Room, Shared, Tile, Way
from kernels.nvrtc import Define
from kernels.occupancy import ceil
from kernels.ops import Params, code
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.pool import Pool
from kernels.ops.softmax import Softmax
from kernels.ops.unary import Unary

FUNCTION = "net"
# Fragments of a product's weights that a warp has on their way, by where they are.
_AHEAD_OF_SHARED, _AHEAD_OF_GLOBAL = 2, 8

FILE = registry.ROOT / "cuda" / "net" / "one_kernel.cu"

Weights = tuple[np.ndarray, np.ndarray | None]  # of a step, and its bias


@dataclass(frozen=True)
class OneKernel:
    """A run of steps as one kernel: what it is compiled with, its launch (arguments: input, weights, output,
    images as an int), and how its weights are made."""

    way: Way
    layers: tuple[Layer, ...]
    room: Room
    defines: dict[str, Define]
    stage: Stage

    def rung(self) -> registry.Rung:
        """Its file, for the compiler."""
        return registry.code(FILE, FUNCTION)

    def stamped(self) -> dict[str, Define]:
        """What it is compiled with to keep clock stamps, as `stamps_shape` says."""
        return {**self.defines, "STAMPS": int(np.prod(self.stamps_shape))}

    @property
    def stamps_shape(self) -> tuple[int, int]:
        """Of the kernel's `stamps`: a row a block. In it the cycles before the first layer, those of each
        layer, and when the block began and ended, in nanoseconds."""
        return self.stage.grid[0], len(self.layers) + 3

    def packed(self, given: Sequence[Weights | None]) -> np.ndarray:
        """The weights as the kernel reads them. given: those of each of the run's steps."""
        return np.concatenate(_parts(self.layers, self.room, self.way, given))


def one_kernel(layers: Sequence[Layer], way: Way, room: Room, batch: int, multiprocessors: int) -> OneKernel:
    """These layers in this way."""
    groups = ceil(batch, way.images)
    # Two blocks find room beside each other anywhere, more of them not on every part of a device.
    teams = min(groups, max(1, multiprocessors * way.blocks // way.ranks) if way.ranks <= 2 else groups)
    assert way.ranks > 2 or not way.sent, "a team has one group"
    last = layers[-1]
    given = "Given<{}, {}, {}>".format(*last.gives)
    # Of the buffers, those that the first block alone reads are told to it alone, by others or by itself.
    told = [
        "EVERYBODYS" if i < room.solo else "FIRST_S" if i == room.solo else "MINE" for i in range(len(layers))
    ]
    maps = [_maps(buffer, to, i) for i, (buffer, to) in enumerate(zip(room.buffers, told, strict=True))]
    streamed = _streamed(room)
    calls = []
    for i, layer in enumerate(layers):
        out = maps[i + 1] if i + 1 < len(layers) else given
        calls.append(_call(i, layer, maps[i], out, room, way, streamed.get(i)))
    held = next((i for i in room.products if room.products[i].at is not None), len(layers))
    steps = []
    for i, call in enumerate(calls[1:], 1):
        alone = i >= room.solo
        if i > 1:
            steps.append(f"{_meeting(i, room, way)}; STAMP({i})")
        if i == held:  # everybody's share of these weights has to have come
            steps.append("if (fresh) wait_for_held()")
        steps.append(f"if (rank == 0) {call}" if alone else call)
    rows, top = _rows_read(layers[0], room, way)
    defines: dict[str, Define] = {
        "RANKS": way.ranks,
        "IMAGES": way.images,
        "THREADS": way.threads,
        "BLOCKS": way.blocks,
        "BORDERED": room.bordered,
        "INPUTS": int(np.prod(layers[0].takes)),
        "OUTPUTS": last.size,
        "FETCH": "fetch<{}, {}, {}, {}, {}>".format(maps[0], *layers[0].takes, rows),
        "TOP": top,
        "ROUND": _round(room.buffers[0], way.images),
        "COMMON": f"fetch_weights<COMMON_ONES>(memory + {room.weights}, weights, {room.common})",
        "HELD": "; ".join(_held(room, way.ranks)) or "(void)0",
        "HELD_FIRST": int(held == 0),
        "FIRST": calls[0],
        "BEHIND_FIRST": _meeting(1, room, way) if len(layers) > 1 else "(void)0",
        "SENT": int(way.sent),
        "EXPECT": _expected(layers, room, way) if way.sent else "(void)0",
        "THE_REST": "; ".join(steps) or "(void)0",
        "STEPS_IN_ALL": len(layers),
    }
    stage = Stage(FUNCTION, (teams * way.ranks, 1, 1), (way.threads, 1, 1), room.nbytes)
    return OneKernel(way, tuple(layers), room, defines, stage)


def _maps(b: Buffer, told: str, i: int) -> str:
    lies = _list((b.at, *b.extent, b.plane, b.row, b.top, b.left, b.apart, int(b.rounded)))
    return f"Maps<{lies}, {told}, {i}>"


def _meeting(i: int, room: Room, way: Way) -> str:
    """What a block does before layer i, so that all that it reads is there."""
    if i > room.solo:
        return "__syncthreads()"
    if not way.sent:
        return "wait_for_team()"
    return f"{'if (rank == 0) ' if i == room.solo else ''}wait_for_signal({i})"


def _expected(layers: Sequence[Layer], room: Room, way: Way) -> str:
    """What says how many bytes the layers behind the first are told by other blocks."""
    told = range(1, min(room.solo + 1, len(layers)))
    calls = [f"expect_signal({i}, {4 * way.images * layers[i - 1].size})" for i in told]
    return "; ".join("if (rank == 0) " * (i == room.solo) + call for i, call in zip(told, calls, strict=True))


def _rows_read(first: Layer, room: Room, way: Way) -> tuple[int, str]:
    """How many of an image's rows a block of the team reads, and the first of them, by its rank: of a
    convolution on tensor cores those that its share of the tasks begins to end with."""
    p, height = first.params, first.takes[1]
    if not (isinstance(p, Conv) and way.ranks > 1 and room.tiles[0][0].tensor and p.group == 1):
        return height, "0"
    tile, pool = room.tiles[0][0], first.pool
    out_h, out_w = (pool.out_h * pool.kh, pool.out_w * pool.kw) if pool else (p.out_h, p.out_w)
    of_row = ceil(out_w, 2) * (way.images // 8)
    each = ceil(ceil(out_h, tile.down) * of_row, way.ranks)
    cells = ceil(each - 1, of_row) + 1  # rows of cells that a share touches, wherever it begins
    step = tile.down * p.stride_h
    rows = (cells * tile.down - 1) * p.stride_h + (p.kh - 1) * p.dilation_h + 1
    return (rows, f"(rank * {each} / {of_row} * {step} - {p.pad_top})") if rows < height else (height, "0")


def _round(first: Buffer, images: int) -> str:
    """What makes TF32 of the images that came in."""
    if not first.rounded:
        return "(void)0"
    return f"round_images<{first.at}, {first.floats * images}>(memory)"


def _call(i: int, layer: Layer, into: str, out: str, room: Room, way: Way, streamed: int | None) -> str:
    p = layer.params
    plain, team = "memory, y, left, rank", way.ranks if i < room.solo else 1
    if isinstance(p, Conv):
        tile, at = room.tiles[i]
        pool = layer.pool
        if tile.tensor:
            return _convolve_tensor(p, pool, tile, at, into, out, plain)
        out_h, out_w = (pool.out_h * pool.kh, pool.out_w * pool.kw) if pool else (p.out_h, p.out_w)
        told = [at, p.c // p.group, p.m // p.group, p.group, p.kh, p.kw, p.stride_h, p.stride_w]
        told += [p.dilation_h, p.dilation_w, out_h, out_w, tile.down, tile.across, tile.many, tile.stride]
        told += [tile.shares, code("POOL", pool.kind) if pool else -1, _activation(p)]
        told += [_activation(pool) if pool else 0]
        return f"convolve<{into}, {out}, {_list(told)}>({plain})"
    if isinstance(p, Pool):
        told = [p.c, p.h, p.w, p.kh, p.kw, p.stride_h, p.stride_w, p.dilation_h, p.dilation_w]
        told += [p.pad_top, p.pad_left, p.pad_bottom, p.pad_right, p.out_h, p.out_w]
        told += [code("POOL", p.kind), int(p.count_include_pad), _activation(p)]
        return f"pool<{into}, {out}, {_list(told)}>({plain})"
    if isinstance(p, Gemm):
        lies = room.products[i]
        where = f"memory + {lies.at}" if lies.at is not None else f"weights + {streamed}"
        if lies.at is None and lies.team > 1:
            where += f" + rank * {lies.nfloats}"
        if lies.tensor:
            ahead = _AHEAD_OF_SHARED if lies.at is not None else _AHEAD_OF_GLOBAL
            told = [p.k, p.n, lies.bias, lies.parts, lies.slices, _activation(p), lies.team, ahead]
            told.append(int(lies.half))
            return f"multiply_tensor<{into}, {out}, {_list(told)}>({plain}, {where})"
        if way.images > 1:
            told = [p.k, p.n, lies.lead, lies.bias, lies.parts, lies.slices, _activation(p)]
            return f"multiply_images<{into}, {out}, {_list(told)}>({plain}, {where})"
        told = [p.k, p.n, lies.lead, lies.bias, _activation(p), lies.team]
        return f"multiply_rows<{into}, {out}, {_list(told)}>({plain}, {where})"
    if isinstance(p, Softmax):
        return f"softmax<{into}, {out}, {p.axis}, {int(p.log)}, {team}>({plain})"
    assert isinstance(p, Unary)
    kind = 0 if p.kind == "identity" else code("ACTIVATION", p.kind)
    return f"each<{into}, {out}, {p.size}, {kind}, {team}>({plain})"


def _convolve_tensor(p: Conv, pool: Pool | None, tile: Tile, at: int, into: str, out: str, plain: str) -> str:
    out_h, out_w = (pool.out_h * pool.kh, pool.out_w * pool.kw) if pool else (p.out_h, p.out_w)
    told = [at, p.c // p.group, p.m // p.group, p.group, p.kh, p.kw, p.stride_h, p.stride_w]
    told += [p.dilation_h, p.dilation_w, out_h, out_w, tile.down]
    told += [code("POOL", pool.kind) if pool else -1, _activation(p), _activation(pool) if pool else 0]
    return f"convolve_tensor<{into}, {out}, {_list(told)}>({plain})"


def _activation(p: Params) -> int:
    return code("ACTIVATION", getattr(p, "activation", None))


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


# --- weights: those of convolutions and all biases, then each product's, a block after the other ---


def _streamed(room: Room) -> dict[int, int]:
    """Where each product's weights begin in global memory."""
    places, end = {}, room.common
    for i, lies in room.products.items():
        places[i] = end
        end += lies.team * lies.nfloats
    return places


def _held(room: Room, ranks: int) -> list[str]:
    """What copies a block's own rows of the products that have room."""
    calls, end = [], room.common
    for lies in room.products.values():
        each = lies.nfloats
        if lies.at is not None:
            rank = f" + rank * {each}" if lies.team > 1 else ""
            only = "if (rank == 0) " if lies.team < ranks else ""
            copy = f"fetch_weights<HELD_ONES>(memory + {lies.at}, weights + {end}{rank}, {each})"
            calls.append(only + copy)
        end += lies.team * each
    return calls


def _parts(
    layers: Sequence[Layer], room: Room, way: Way, given: Sequence[Weights | None]
) -> list[np.ndarray]:
    common = np.zeros(room.common, np.float32)
    products = []
    for i, layer in enumerate(layers):
        found, p = given[layer.step], layer.params
        if found is None:
            continue
        weight, bias = found
        if isinstance(p, Conv):
            tile, at = room.tiles[i]
            if tile.tensor:
                places = _table(p, room.buffers[i], way.images)
                laid = np.concatenate([_conv_fragments(weight, p), places.view(np.float32)])
            else:
                laid = _conv(weight, p, tile)
            begin = at - room.weights
            common[begin : begin + laid.size] = laid
            if bias is not None:
                common[begin + laid.size :][: p.m] = bias.reshape(-1)
        elif isinstance(p, Gemm):
            lies = room.products[i]
            if bias is not None:
                begin = lies.bias - room.weights
                common[begin : begin + p.n] = np.broadcast_to(bias.reshape(-1) * np.float32(p.beta), (p.n,))
            rows = weight.reshape(p.n, p.k) if p.trans_b else weight.reshape(p.k, p.n).T
            if lies.tensor:
                laid = _half_fragments(rows, lies) if lies.half else _fragments(rows, lies)
            else:
                laid = _rows(rows, lies) if way.images == 1 else _columns(rows, lies)
            products.append(laid.reshape(-1))
    return [common, *products]


def _conv(weight: np.ndarray, p: Conv, tile: Tile) -> np.ndarray:
    """(m, channels, kh, kw) → (group, part, channel, kh, kw, `stride` maps), zeros for those that are not."""
    outputs, taps = p.m // p.group, (p.c // p.group) * p.kh * p.kw
    parts = ceil(outputs, tile.many)
    maps = np.zeros((p.group, parts * tile.many, taps), np.float32)
    maps[:, :outputs] = weight.reshape(p.group, outputs, taps)
    laid = np.zeros((p.group, parts, taps, tile.stride), np.float32)
    laid[..., : tile.many] = maps.reshape(p.group, parts, tile.many, taps).swapaxes(2, 3)
    assert laid.size == conv_floats(p, tile)
    return laid.reshape(-1)


def _conv_fragments(weight: np.ndarray, p: Conv) -> np.ndarray:
    """(m, channels, kh, kw) → (group, eight taps, eight maps, lane, 2) in TF32: lane l has taps l % 4 and
    l % 4 + 4 of map l // 4."""
    outputs, taps = p.m // p.group, (p.c // p.group) * p.kh * p.kw
    filled = np.zeros((p.group, ceil(outputs, 8) * 8, ceil(taps, 8) * 8), np.float32)
    filled[:, :outputs, :taps] = packing.tf32(weight.reshape(p.group, outputs, taps))
    lanes = filled.reshape(p.group, -1, 8, ceil(taps, 8), 2, 4)  # tile, map, slab, near or far, step
    return np.ascontiguousarray(lanes.transpose(0, 3, 1, 2, 5, 4)).reshape(-1)


def _table(p: Conv, buffer: Buffer, images: int) -> np.ndarray:
    """Where each tap lies from its window's corner on, in bytes, as (eight taps, step, 2): lane l has the
    taps l % 4 and l % 4 + 4; behind the last the first, whose weights are zeros."""
    channel, row, column = np.indices((p.c // p.group, p.kh, p.kw)).reshape(3, -1)
    places = channel * buffer.plane + row * p.dilation_h * buffer.row + column * p.dilation_w
    found = np.zeros(ceil(places.size, 8) * 8, np.int32)
    found[: places.size] = places * images * 4
    return np.ascontiguousarray(found.reshape(-1, 2, 4).swapaxes(1, 2)).reshape(-1)


def _fragments(rows: np.ndarray, lies: Shared) -> np.ndarray:
    """(n, k) → (sixteen outputs, eight steps, lane, 4) in TF32, as many for each block: lane l has of outputs
    l // 4 and that + 8 the steps l % 4, then of both l % 4 + 4."""
    n, k = rows.shape
    filled = np.zeros((lies.team * lies.rows // ceil(k, 8) * 16, ceil(k, 8) * 8), np.float32)
    filled[:n, :k] = packing.tf32(np.ascontiguousarray(rows))
    lanes = filled.reshape(-1, 2, 8, ceil(k, 8), 2, 4)  # tile, near or far output, output, slab, half, step
    return np.ascontiguousarray(lanes.transpose(0, 3, 2, 5, 4, 1)).reshape(-1)


def _half_fragments(rows: np.ndarray, lies: Shared) -> np.ndarray:
    """(n, k) → (sixteen outputs, sixteen steps, lane, 4 × 2) in float16, two a float: lane l has of outputs
    l // 4 and that + 8 the steps l % 4 and that + 4, then of both the same, + 8."""
    n, k = rows.shape
    filled = np.zeros((lies.team * lies.rows // ceil(k, 16) * 16, ceil(k, 16) * 16), np.float16)
    filled[:n, :k] = packing.half(rows)
    lanes = filled.reshape(
        -1, 2, 8, ceil(k, 16), 2, 2, 4
    )  # tile, near or far, output, slab, half, pair, step
    return np.ascontiguousarray(lanes.transpose(0, 3, 2, 6, 4, 1, 5)).reshape(-1).view(np.float32)


def _rows(rows: np.ndarray, lies: Shared) -> np.ndarray:
    """(n, k) → (rank, local, lead): a block has every team-th row."""
    laid = np.zeros((lies.rows, lies.team, lies.lead), np.float32)
    laid.reshape(-1, lies.lead)[: len(rows), : rows.shape[1]] = rows
    return laid.swapaxes(0, 1)


def _columns(rows: np.ndarray, lies: Shared) -> np.ndarray:
    """(n, k) → (rank, k, lead): a block has `lead` outputs that follow each other."""
    n, k = rows.shape
    laid = np.zeros((lies.team, lies.nfloats), np.float32)
    whole = np.zeros((lies.team * lies.lead, k), np.float32)
    whole[:n] = rows
    laid[:, : k * lies.lead] = whole.reshape(lies.team, lies.lead, k).swapaxes(1, 2).reshape(lies.team, -1)
    return laid
