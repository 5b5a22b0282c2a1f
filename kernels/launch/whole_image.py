"""The launch shape of convolutions whose image and weights both fit into a block's shared memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.errors import UnsupportedError
from kernels.launch.core import MAX_X, Launch, Pack, ceil, shape
from kernels.launch.direct import shapes
from kernels.nvrtc import Define
from kernels.params import Conv
from kernels.registry import Rung
from kernels.scalars import SCALARS

_FOUR = 4  # maps a thread: as many weights as one load from shared memory brings
_SHARED_NBYTES = 48 << 10  # of a block, without asking the device for more
_BLOCKS = 264  # two on every multiprocessor of a large device
_WARPS = 132 * 8  # with fewer on such a device, a thread takes a single row
_DOWN = 4  # rows a thread otherwise
_MOST_BLOCKS = 8 * 132  # beyond which a block takes several images
_THREADS = 512
_FEWEST_ROWS = 4  # of y a block: with less, most of what it reads is the border between bands


class Share(NamedTuple):
    """What a block of conv_whole_image does of an image: `maps` maps of a group, `band` rows of y, `down`
    outputs a thread, one below the other; `shares` threads share the channels of a sum."""

    maps: int
    band: int
    down: int
    shares: int
    threads: int


@shape
def conv_whole_image(params: Conv, rung: Rung) -> Launch:
    """Blocks of THREADS threads an image, MAPS maps of a group and BAND rows of y; a thread computes DOWN
    outputs, one below the other, in four maps. Few images are shared among more blocks, a few maps and rows
    each, and SHARES threads share the channels of a sum. grid = (images, groups · parts of the maps, bands);
    the weights are packed as (group, part, taps, MAPS)."""
    share = fit(params)
    if nbytes(params, share) > _SHARED_NBYTES:
        raise UnsupportedError(
            f"{rung.label} keeps an image and the weights of {_FOUR} maps in 48 KB of shared memory, and "
            f"here they take {nbytes(params, share) >> 10} KB"
        )
    defines: dict[str, Define] = {
        "BAND": share.band,
        "ROWS": _rows(params, share.band, share.down),
        "COLUMNS": _columns(params),
        "THREADS": share.threads,
        "DOWN": share.down,
        "MAPS": share.maps,
        "SHARES": share.shares,
    }
    parts, bands = ceil(params.m // params.group, share.maps), ceil(params.out_h, share.band)
    return Launch(
        (min(params.n, _MOST_BLOCKS, MAX_X), params.group * parts, bands),
        (share.threads, 1, 1),
        SCALARS["conv"](params),
        defines=shapes(params) | defines,
        packed={1: Pack(pack, (params.group, share.maps))},
    )


def fit(params: Conv) -> Share:
    """As many blocks and threads as fill a large device, and no more shared memory than a block has, unless
    four maps alone take more."""
    channels, outputs = params.c // params.group, params.m // params.group
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
    while maps > _FOUR and nbytes(params, Share(maps, band, down, 1, 0)) > _SHARED_NBYTES:
        maps = _halved(maps)
    shares = min(channels, max(1, _THREADS // work(down))) if few else 1
    while shares > 1 and nbytes(params, Share(maps, band, down, shares, 0)) > _SHARED_NBYTES:
        shares -= 1
    shares = ceil(channels, ceil(channels, shares))  # no more than have a channel
    return Share(maps, band, down, shares, min(_THREADS, ceil(work(down) * shares, 32) * 32))


def nbytes(p: Conv, share: Share) -> int:
    """Shared memory of a block: the image, the weights, and what is shared of the sums."""
    channels = p.c // p.group
    floats = channels * _rows(p, share.band, share.down) * _columns(p) + channels * p.kh * p.kw * share.maps
    if share.shares > 1:
        floats += share.shares * ceil(share.band, share.down) * p.out_w * share.maps
    return 4 * floats


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
