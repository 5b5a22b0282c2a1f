"""The text and launch of a net in one kernel, and its weights as the kernel reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernels import precision, registry
from kernels.header import Define
from kernels.launch import Stage
from kernels.net import tensor
from kernels.net.layers import Layer
from kernels.net.plan import conv_floats
from kernels.net.records import AS_FLOATS, AS_TF32, Buffer, Room, Shared, Tile, Way
from kernels.occupancy import WARP, ceil
from kernels.ops import Params, code
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.pool import Pool
from kernels.ops.softmax import Softmax
from kernels.ops.unary import Unary

FUNCTION = "net"
# Fragments of a product's weights that a warp has on their way, by where they are.
_AHEAD_OF_SHARED, _AHEAD_FOR_ONE, _AHEAD_OF_GLOBAL = 2, 4, 8

FILE = registry.ROOT / "cuda" / "net" / "one_kernel.cu"


@dataclass(frozen=True)
class OneKernel:
    """Consecutive steps as one kernel: what it is compiled with, its launch (arguments: input, weights,
    output, number of images), and how its weights are packed."""

    way: Way
    layers: tuple[Layer, ...]
    room: Room
    defines: dict[str, Define]
    stage: Stage

    def rung(self) -> registry.Rung:
        """Its file, as the compiler takes it."""
        return registry.code(FILE, FUNCTION)

    def stamped(self) -> dict[str, Define]:
        """The defines of the build with clock stamps; see `stamps_shape`."""
        return {**self.defines, "STAMPS": int(np.prod(self.stamps_shape))}

    @property
    def stamps_shape(self) -> tuple[int, int]:
        """Shape of the kernel's `stamps`: a row for each block. In it: the cycles before the first layer,
        those of each layer, and when the block began and ended, in nanoseconds."""
        return self.stage.grid[0], len(self.layers) + 3

    def packed(self, given: Sequence[Weights | None]) -> np.ndarray:
        """The weights as the kernel reads them. given: weight and bias of each step."""
        return np.concatenate(self.parts(given))

    def parts(self, given: Sequence[Weights | None]) -> list[np.ndarray]:
        """The same in pieces: first what all blocks read, then each product's, in the order of the layers."""
        return weight_parts(self.layers, self.room, self.way, given)


def one_kernel(layers: Sequence[Layer], way: Way, room: Room, batch: int, multiprocessors: int) -> OneKernel:
    """The kernel of these layers in this way."""
    groups = ceil(batch, way.images)
    # Two blocks find room beside each other anywhere, more of them not on every part of a device.
    teams = min(groups, max(1, multiprocessors * way.blocks // way.ranks) if way.ranks <= 2 else groups)
    assert way.ranks > 2 or not way.sent, "a team has one group"
    last = layers[-1]
    output_type = "Given<{}, {}, {}>".format(*last.gives)
    # Of the buffers, those that the first block alone reads are told to it alone, by others or by itself.
    readers = [
        "EVERYBODYS" if i < room.solo else "FIRST_S" if i == room.solo else "MINE" for i in range(len(layers))
    ]
    maps = [_maps(buffer, to, i) for i, (buffer, to) in enumerate(zip(room.buffers, readers, strict=True))]
    streamed = _offsets_in_memory(room)
    calls = []
    for i, layer in enumerate(layers):
        out = maps[i + 1] if i + 1 < len(layers) else output_type
        calls.append(_call(i, layer, maps[i], out, room, way, streamed.get(i)))
    first_held = next((i for i in room.products if room.products[i].at is not None), len(layers))
    steps = []
    for i, call in enumerate(calls[1:], 1):
        alone = i >= room.solo
        if i > 1:
            steps.append(f"{_wait_before(i, room, way)}; STAMP({i})")
        if i == first_held:  # everybody's share of these weights has to have come
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
        "FETCH": "fetch<{}, {}, {}, {}, {}>".format(_input_map(room, maps[0]), *layers[0].takes, rows),
        "TOP": top,
        "ROUND": _round(room, way.images),
        "EARLY": int(room.staged is not None),
        "COMMON": f"fetch_weights<COMMON_ONES>(memory + {room.weights}, weights, {room.common})",
        "HELD": "; ".join(_copies_of_weights(room, way.ranks)) or "(void)0",
        "HELD_FIRST": int(first_held == 0),
        "FIRST": calls[0],
        "BEHIND_FIRST": _wait_before(1, room, way) if len(layers) > 1 else "(void)0",
        "SENT": int(way.sent),
        "EXPECT": _expected(layers, room, way) if way.sent else "(void)0",
        "THE_REST": "; ".join(steps) or "(void)0",
        "STEPS_IN_ALL": len(layers),
        **precision.defines(way.half),
    }
    stage = Stage(FUNCTION, (teams * way.ranks, 1, 1), (way.threads, 1, 1), room.nbytes)
    return OneKernel(way, tuple(layers), room, defines, stage)


def _maps(b: Buffer, told: str, i: int) -> str:
    lies = _list((b.at, *b.extent, b.plane, b.row, b.top, b.left, b.apart, b.kind))
    return f"Maps<{lies}, {told}, {i}>"


def _wait_before(i: int, room: Room, way: Way) -> str:
    """The statement with which a block waits, before layer i, for all that it reads."""
    if i > room.solo:
        return "__syncthreads()"
    if not way.sent:
        return "wait_for_team()"
    return f"{'if (rank == 0) ' if i == room.solo else ''}wait_for_signal({i})"


def _expected(layers: Sequence[Layer], room: Room, way: Way) -> str:
    """The statements that announce how many bytes other blocks send for the layers after the first."""
    indices = range(1, min(room.solo + 1, len(layers)))
    calls = [f"expect_signal({i}, {4 * way.images * layers[i - 1].size})" for i in indices]
    return "; ".join(
        "if (rank == 0) " * (i == room.solo) + call for i, call in zip(indices, calls, strict=True)
    )


def _input_map(room: Room, first: str) -> str:
    """Where images are copied to: where the first layer reads them, or in front of that, as floats."""
    if room.staged is None:
        return first
    channels, height, width = room.buffers[0].extent
    plain = Buffer((channels, height, width), height, width, height * width, kind=AS_FLOATS, at=room.staged)
    return _maps(plain, "MINE", 0)


def _rows_read(first: Layer, room: Room, way: Way) -> tuple[int, str]:
    """How many rows of an image a block of the team reads, and the first of them, as an expression of its
    rank. On tensor cores these are the rows under its share of the tasks."""
    p, height = first.params, first.takes[1]
    if not (isinstance(p, Conv) and way.ranks > 1 and room.tiles[0][0].tensor):
        return height, "0"
    if p.group * tensor.parts(p, room.tiles[0][0]) > 1:
        return height, "0"
    tile = room.tiles[0][0]
    high, wide = tensor.cells_of(first, tile)
    each = ceil(ceil(high * wide * way.images, 8), way.ranks) * 8  # cells of images
    cells = ceil(each, way.images) + (each % way.images != 0)
    touched = ceil(cells - 1, wide) + 1  # rows of cells, wherever a share begins
    step = tile.down * p.stride_h
    rows = (touched * tile.down - 1) * p.stride_h + (p.kh - 1) * p.dilation_h + 1
    top = f"(rank * {each} / {way.images} / {wide} * {step} - {p.pad_top})"
    return (rows, top) if rows < height else (height, "0")


def _round(room: Room, images: int) -> str:
    """The statement that converts the images to TF32 or 16 bits."""
    first = room.buffers[0]
    if room.staged is not None:
        return f"halve_images<{room.staged}, {_maps(first, 'MINE', 0)}>(memory)"
    return (
        f"round_images<{first.at}, {first.floats * images}>(memory)" if first.kind == AS_TF32 else "(void)0"
    )


def _call(i: int, layer: Layer, into: str, out: str, room: Room, way: Way, streamed: int | None) -> str:
    p = layer.params
    plain, team = "memory, y, left, rank", way.ranks if i < room.solo else 1
    if isinstance(p, Conv):
        tile, at = room.tiles[i]
        if tile.tensor:
            return _convolve_tensor(layer, tile, into, out, i, room, plain)
        numbers = [
            *_window(layer, at),
            tile.down,
            tile.across,
            tile.many,
            tile.stride,
            tile.shares,
            tile.beside,
        ]
        numbers += _pool_and_activations(p, layer.pool)
        return f"convolve<{into}, {out}, {_list(numbers)}>({plain})"
    if isinstance(p, Pool):
        numbers = [p.c, p.h, p.w, p.kh, p.kw, p.stride_h, p.stride_w, p.dilation_h, p.dilation_w]
        numbers += [p.pad_top, p.pad_left, p.pad_bottom, p.pad_right, p.out_h, p.out_w]
        numbers += [code("POOL", p.kind), int(p.count_include_pad), _activation(p)]
        return f"pool<{into}, {out}, {_list(numbers)}>({plain})"
    if isinstance(p, Gemm):
        lies = room.products[i]
        where = f"memory + {lies.at}" if lies.at is not None else f"weights + {streamed}"
        if lies.at is None and lies.team > 1:
            where += f" + rank * {lies.nfloats}"
        if lies.tensor:
            near = _AHEAD_OF_SHARED if way.images > 1 else _AHEAD_FOR_ONE
            ahead = near if lies.at is not None else _AHEAD_OF_GLOBAL
            numbers = [p.k, p.n, lies.bias, lies.parts, lies.slices, _activation(p), lies.team, ahead]
            numbers.append(int(bool(lies.half)))
            return f"multiply_tensor<{into}, {out}, {_list(numbers)}>({plain}, {where})"
        if way.images > 1:
            each = 2 if way.beside > 1 and lies.lead > WARP else 1
            numbers = [p.k, p.n, lies.lead, lies.bias, lies.parts, lies.slices, each, _activation(p)]
            return f"multiply_images<{into}, {out}, {_list(numbers)}>({plain}, {where})"
        numbers = [p.k, p.n, lies.lead, lies.bias, _activation(p), lies.team]
        return f"multiply_rows<{into}, {out}, {_list(numbers)}>({plain}, {where})"
    if isinstance(p, Softmax):
        return f"softmax<{into}, {out}, {p.axis}, {int(p.log)}, {team}>({plain})"
    assert isinstance(p, Unary)
    kind = 0 if p.kind == "identity" else code("ACTIVATION", p.kind)
    return f"each<{into}, {out}, {p.size}, {kind}, {team}>({plain})"


def _convolve_tensor(layer: Layer, tile: Tile, into: str, out: str, i: int, room: Room, plain: str) -> str:
    p, pool = layer.params, layer.pool
    assert isinstance(p, Conv)
    numbers = [*_window(layer, room.tiles[i][1]), tile.down, tile.across, tile.many, *tile.joined]
    numbers += [
        tensor.slabs(p, tile),
        tensor.weights_in_registers(p, tile),
        tile.slices,
        room.parts,
        *_pool_and_activations(p, pool),
    ]
    return f"convolve_tensor<{into}, {out}, {_list(numbers)}>({plain})"


def _window(layer: Layer, at: int) -> list[int]:
    """The template arguments of a convolution whose weights lie at `at`."""
    p, pool = layer.params, layer.pool
    assert isinstance(p, Conv)
    out_h, out_w = (pool.out_h * pool.kh, pool.out_w * pool.kw) if pool else (p.out_h, p.out_w)
    numbers = [at, p.c // p.group, p.m // p.group, p.group, p.kh, p.kw, p.stride_h, p.stride_w]
    return [*numbers, p.dilation_h, p.dilation_w, out_h, out_w]


def _pool_and_activations(p: Conv, pool: Pool | None) -> list[int]:
    """Template arguments: pool and activations after a convolution's sums."""
    return [code("POOL", pool.kind) if pool else -1, _activation(p), _activation(pool) if pool else 0]


def _activation(p: Params) -> int:
    return code("ACTIVATION", getattr(p, "activation", None))


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _offsets_in_memory(room: Room) -> dict[int, int]:
    """Where the weights of each product begin in global memory."""
    places, end = {}, room.common
    for i, lies in room.products.items():
        places[i] = end
        end += lies.team * lies.nfloats
    return places


def _copies_of_weights(room: Room, ranks: int) -> list[str]:
    """The statements that copy a block's rows of those products that fit into shared memory."""
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


Weights = tuple[np.ndarray, np.ndarray | None]  # of a step, and its bias


def weight_parts(
    layers: Sequence[Layer], room: Room, way: Way, given: Sequence[Weights | None]
) -> list[np.ndarray]:
    """First the weights of convolutions and all biases, then those of each product, block by block. given:
    weight and bias of each step."""
    common = np.zeros(room.common, np.float32)
    products = []
    for i, layer in enumerate(layers):
        of_step, p = given[layer.step], layer.params
        if of_step is None:
            continue
        weight, bias = of_step
        if isinstance(p, Conv):
            tile, at = room.tiles[i]
            if tile.tensor:
                places = tensor.table(p, tile, room.buffers[i], way.images)
                filters = tensor.fragments(weight, p, tile, way.half)
                laid = np.concatenate([filters, places.view(np.float32)])
            else:
                laid = _conv_weights(weight, p, tile)
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
                laid = _fragments(rows, lies)
            else:
                laid = _rows(rows, lies) if way.images == 1 else _columns(rows, lies)
            products.append(laid.reshape(-1))
    return [common, *products]


def _conv_weights(weight: np.ndarray, p: Conv, tile: Tile) -> np.ndarray:
    """(m, channels, kh, kw) → (group, part, channel, kh, kw, `stride` maps), with zeros for maps that do not
    exist."""
    outputs, taps = p.m // p.group, (p.c // p.group) * p.kh * p.kw
    parts = ceil(outputs, tile.many)
    maps = np.zeros((p.group, parts * tile.many, taps), np.float32)
    maps[:, :outputs] = weight.reshape(p.group, outputs, taps)
    laid = np.zeros((p.group, parts, taps, tile.stride), np.float32)
    laid[..., : tile.many] = maps.reshape(p.group, parts, tile.many, taps).swapaxes(2, 3)
    assert laid.size == conv_floats(p, tile)
    return laid.reshape(-1)


def _fragments(rows: np.ndarray, lies: Shared) -> np.ndarray:
    """(n, k) → as `tensor.as_lanes`, the same number for each block."""
    n, k = rows.shape
    deep = 16 if lies.half else 8
    filled = np.zeros((lies.team * lies.rows // ceil(k, deep) * 16, ceil(k, deep) * deep), np.float32)
    filled[:n, :k] = rows
    return tensor.as_lanes(filled, lies.half)


def _rows(rows: np.ndarray, lies: Shared) -> np.ndarray:
    """(n, k) → (rank, local, lead): block `rank` of a team gets every team-th row."""
    laid = np.zeros((lies.rows, lies.team, lies.lead), np.float32)
    laid.reshape(-1, lies.lead)[: len(rows), : rows.shape[1]] = rows
    return laid.swapaxes(0, 1)


def _columns(rows: np.ndarray, lies: Shared) -> np.ndarray:
    """(n, k) → (rank, k, lead): a block gets `lead` consecutive outputs."""
    n, k = rows.shape
    laid = np.zeros((lies.team, lies.nfloats), np.float32)
    whole = np.zeros((lies.team * lies.lead, k), np.float32)
    whole[:n] = rows
    laid[:, : k * lies.lead] = whole.reshape(lies.team, lies.lead, k).swapaxes(1, 2).reshape(lies.team, -1)
    return laid
