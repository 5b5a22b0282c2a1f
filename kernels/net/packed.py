"""A net's weights as its one kernel reads them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernels.net import tensor
from kernels.net.layers import Layer
from kernels.net.plan import conv_floats
from kernels.net.records import Room, Shared, Tile, Way
from kernels.occupancy import ceil
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm

Weights = tuple[np.ndarray, np.ndarray | None]  # of a step, and its bias


def parts(layers: Sequence[Layer], room: Room, way: Way, given: Sequence[Weights | None]) -> list[np.ndarray]:
    """First those of convolutions and all biases, then each product's, a block after the other. given: those
    of each of the run's steps."""
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
                places = tensor.table(p, tile, room.buffers[i], way.images)
                laid = np.concatenate([tensor.fragments(weight, p, tile), places.view(np.float32)])
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
                laid = _fragments(rows, lies)
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


def _fragments(rows: np.ndarray, lies: Shared) -> np.ndarray:
    """(n, k) → as `tensor.as_lanes` has them, as many for each block."""
    n, k = rows.shape
    deep = 16 if lies.half else 8
    filled = np.zeros((lies.team * lies.rows // ceil(k, deep) * 16, ceil(k, deep) * deep), np.float32)
    filled[:n, :k] = rows
    return tensor.as_lanes(filled, lies.half)


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
