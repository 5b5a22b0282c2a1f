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
_MOST_BLOCKS = 8 * 132  # beyond which a block takes several images
_THREADS = 512


@shape
def conv_whole_image(params: Conv, rung: Rung) -> Launch:
    """Blocks of THREADS threads an image and MAPS maps of a group; a thread computes DOWN outputs, one below
    the other, in four maps. Few images are shared among more blocks, a few maps each. grid = (images,
    groups · parts of the maps); the weights are packed as (group, part, taps, MAPS)."""
    maps = ceil(params.m // params.group, _FOUR) * _FOUR
    taps = params.c // params.group * params.kh * params.kw
    while maps > _FOUR and params.n * params.group * ceil(params.m // params.group, maps) < _BLOCKS:
        maps = ceil(maps // 2, _FOUR) * _FOUR
    few = params.n * params.group * ceil(params.m // params.group, maps) < _BLOCKS
    down = min(params.out_h, 1 if few else 4)
    pixels = params.c // params.group * (rows := _rows(params, down)) * (columns := _columns(params))
    while maps > _FOUR and pixels + taps * maps > _SHARED_FLOATS:
        maps = ceil(maps // 2, _FOUR) * _FOUR
    if pixels + taps * maps > _SHARED_FLOATS:
        raise UnsupportedError(
            f"{rung.label} keeps an image and the weights of {_FOUR} maps in 48 KB of shared memory, and "
            f"here they take {4 * (pixels + taps * maps) >> 10} KB"
        )
    parts = ceil(params.m // params.group, maps)
    work = ceil(params.out_h, down) * params.out_w * (maps // _FOUR)
    threads = min(_THREADS, ceil(work, 32) * 32)
    defines: dict[str, Define] = {"ROWS": rows, "COLUMNS": columns, "THREADS": threads, "DOWN": down}
    return Launch(
        (min(params.n, _MOST_BLOCKS, MAX_X), params.group * parts, 1),
        (threads, 1, 1),
        SCALARS["conv"](params),
        defines=defines | shapes(params) | {"MAPS": maps},
        packed={1: Pack(pack, (params.group, maps))},
    )


def pack(weight: np.ndarray, group: int, maps: int) -> np.ndarray:
    """Weights (m, taps…) as (group, part, taps, maps): zeros stand for maps beyond a group's last."""
    per_group = weight.reshape(group, weight.shape[0] // group, -1)
    parts = ceil(per_group.shape[1], maps)
    padded = np.zeros((group, parts * maps, per_group.shape[2]), weight.dtype)
    padded[:, : per_group.shape[1]] = per_group
    return padded.reshape(group, parts, maps, -1).transpose(0, 1, 3, 2)


def _rows(p: Conv, down: int) -> int:
    """Of the padded image, as far down as the last thread looks."""
    return (ceil(p.out_h, down) * down - 1) * p.stride_h + (p.kh - 1) * p.dilation_h + 1


def _columns(p: Conv) -> int:
    return (p.out_w - 1) * p.stride_w + (p.kw - 1) * p.dilation_w + 1
