"""The launch shape of convolutions whose image and weights both fit into a block's shared memory."""

from __future__ import annotations

import numpy as np

from kernels.errors import UnsupportedError
from kernels.launch.core import MAX_X, Launch, Pack, ceil, shape
from kernels.launch.direct import shapes
from kernels.nvrtc import Define
from kernels.params import Conv
from kernels.registry import Rung
from kernels.scalars import SCALARS

_FOUR = 4  # maps a thread: as many weights as one load from shared memory brings
_SHARED_FLOATS = (48 << 10) // 4  # of a block, without asking the device for more
_BLOCKS = 264  # two on every multiprocessor of a large device
_WARPS = 132 * 8  # with fewer on such a device, a thread takes a single row
_DOWN = 4  # rows a thread otherwise
_MOST_BLOCKS = 8 * 132  # beyond which a block takes several images
_THREADS = 512
_FEWEST_ROWS = 4  # of y a block: with less, most of what it reads is the border between bands


@shape
def conv_whole_image(params: Conv, rung: Rung) -> Launch:
    """Blocks of THREADS threads an image, MAPS maps of a group and BAND rows of y; a thread computes DOWN
    outputs, one below the other, in four maps. Few images are shared among more blocks, a few maps and rows
    each, and SHARES threads share the channels of a sum. grid = (images, groups · parts of the maps, bands);
    the weights are packed as (group, part, taps, MAPS)."""
    channels, outputs = params.c // params.group, params.m // params.group
    taps, columns = channels * params.kh * params.kw, _columns(params)
    maps, band = ceil(outputs, _FOUR) * _FOUR, params.out_h

    def blocks() -> int:
        return params.n * params.group * ceil(outputs, maps) * ceil(params.out_h, band)

    while maps > _FOUR and blocks() < _BLOCKS:
        maps = _halved(maps)

    def work(down: int) -> int:
        return ceil(band, down) * params.out_w * (maps // _FOUR)

    few = blocks() * ceil(work(_DOWN), 32) < _WARPS
    while few and band > _FEWEST_ROWS and blocks() < _BLOCKS // 2:
        band = max(_FEWEST_ROWS, ceil(band, 2))
    down = 1 if few else min(params.out_h, _DOWN)

    def floats() -> int:
        return channels * _rows(params, band, down) * columns + taps * maps

    while maps > _FOUR and floats() > _SHARED_FLOATS:
        maps = _halved(maps)
    shares = min(channels, max(1, _THREADS // work(down))) if few else 1
    while shares > 1 and floats() + shares * work(down) * _FOUR > _SHARED_FLOATS:
        shares -= 1
    shares = ceil(channels, ceil(channels, shares))  # no more than have a channel
    if floats() > _SHARED_FLOATS:
        raise UnsupportedError(
            f"{rung.label} keeps an image and the weights of {_FOUR} maps in 48 KB of shared memory, and "
            f"here they take {4 * floats() >> 10} KB"
        )
    threads = min(_THREADS, ceil(work(down) * shares, 32) * 32)
    defines: dict[str, Define] = {
        "BAND": band,
        "ROWS": _rows(params, band, down),
        "COLUMNS": columns,
        "THREADS": threads,
        "DOWN": down,
        "MAPS": maps,
        "SHARES": shares,
    }
    parts, bands = ceil(outputs, maps), ceil(params.out_h, band)
    return Launch(
        (min(params.n, _MOST_BLOCKS, MAX_X), params.group * parts, bands),
        (threads, 1, 1),
        SCALARS["conv"](params),
        defines=shapes(params) | defines,
        packed={1: Pack(pack, (params.group, maps))},
    )


def pack(weight: np.ndarray, group: int, maps: int) -> np.ndarray:
    """Weights (m, taps…) as (group, part, taps, maps): zeros stand for maps beyond a group's last."""
    per_group = weight.reshape(group, weight.shape[0] // group, -1)
    parts = ceil(per_group.shape[1], maps)
    padded = np.zeros((group, parts * maps, per_group.shape[2]), weight.dtype)
    padded[:, : per_group.shape[1]] = per_group
    return padded.reshape(group, parts, maps, -1).transpose(0, 1, 3, 2)


def _halved(maps: int) -> int:
    return ceil(maps // 2, _FOUR) * _FOUR


def _rows(p: Conv, band: int, down: int) -> int:
    """Of the padded image, as far down as the last thread of a band looks."""
    return (ceil(band, down) * down - 1) * p.stride_h + (p.kh - 1) * p.dilation_h + 1


def _columns(p: Conv) -> int:
    return (p.out_w - 1) * p.stride_w + (p.kw - 1) * p.dilation_w + 1
