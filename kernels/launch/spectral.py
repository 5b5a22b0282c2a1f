"""The launch shapes of convolutions that need scratch memory, a few images at a time, and of products by
cuBLAS.

A large batch goes through the scratch memory in parts: a stage of the launch is then a convolution of some
images only. `conv_im2col` writes the patches of the image into memory first. Winograd's and Fourier's
convolutions multiply transforms in three kernels: `conv` transforms tiles of the image, (product, channel,
tile); `conv_products` multiplies at each place of the transform, (maps × channels) · (channels × tiles);
`conv_outputs` transforms the sums, (product, map, tile), back. The weights' transforms are packed once."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from typing import Concatenate, ParamSpec

import numpy as np

from kernels.errors import KernelError
from kernels.estimates.tiles import LARGE_CONV_TILES
from kernels.header import Define
from kernels.launch import products
from kernels.launch.core import MAX_X, MAX_YZ, Launch, Matrix, Pack, Product, Stage, define, shape
from kernels.occupancy import ceil
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.registry import Rung

_PATCH_THREADS = 256  # of a block that writes patches or finishes sums
_TAPS = 8  # of one pixel that a thread writes


@shape
def conv_im2col(params: Conv, rung: Rung) -> Launch:
    """For some images at a time (see images_at_once) `conv` writes their patches (group, tap, pixel of those
    images), each row on a multiple of 16 bytes. `conv_product` multiplies, a block for each tile out of
    LARGE_CONV_TILES: grid = (pixel tiles, channel tiles of a group, groups). Weights are read VECTOR_W at
    once."""
    p, taps = params, params.c // params.group * params.kh * params.kw
    images = images_at_once(p, rung, p.group * taps * p.out_h * p.out_w)
    most = images * p.out_h * p.out_w
    tile, _ = products.fit(LARGE_CONV_TILES, p.m // p.group, most, taps, p.group)
    stages: list[Stage | Product] = []
    for part, input_offset, output_offset in parts(p, images):
        grid = (ceil(part.n * p.out_h * p.out_w, tile.n), ceil(p.m // p.group, tile.m), p.group)
        stages.append(_patches(part, input_offset))
        stages.append(
            Stage(
                "conv_product",
                grid,
                (tile.threads, 1, 1),
                scalars=part.scalars(),
                output_offset=output_offset,
            )
        )
    return Launch(
        (0, 1, 1),
        (_PATCH_THREADS, 1, 1),
        p.scalars(),
        defines=tile.defines | {"VECTOR_W": 1 if taps % 4 else 4},
        workspace_nbytes=4 * p.group * taps * row(most),
        then=tuple(stages),
    )


@shape
def conv_im2col_cublas(params: Conv, rung: Rung) -> Launch:
    """As conv_im2col, the product by cuBLAS, all groups in one call: the sums (group, channel, pixel of those
    images) follow the patches in the scratch memory, and `conv_finish`, a thread an output, adds the bias,
    activates and puts them where they belong."""
    p, taps = params, params.c // params.group * params.kh * params.kw
    area, maps = p.out_h * p.out_w, p.m // p.group
    images = images_at_once(p, rung, (p.group * taps + p.m) * area)
    stages: list[Stage | Product] = []
    for part, input_offset, output_offset in parts(p, images):
        lead = row(part.n * area)
        stages.append(_patches(part, input_offset))
        stages.append(
            Product(
                maps,
                part.n * area,
                taps,
                a=Matrix("input 1", taps, stride=maps * taps),
                b=Matrix("workspace", lead, stride=taps * lead),
                c=Matrix("workspace", lead, offset=p.group * taps * lead, stride=maps * lead),
                batch=p.group,
            )
        )
        stages.append(
            Stage(
                "conv_finish",
                (ceil(part.n * area, _PATCH_THREADS), min(p.m, MAX_YZ), 1),
                (_PATCH_THREADS, 1, 1),
                scalars=part.scalars(),
                output_offset=output_offset,
            )
        )
    return Launch(
        (0, 1, 1),
        (_PATCH_THREADS, 1, 1),
        p.scalars(),
        workspace_nbytes=4 * (p.group * taps + p.m) * row(images * area),
        then=tuple(stages),
    )


@shape
def gemm_cublas(params: Gemm, rung: Rung) -> Launch:
    """cuBLAS writes alpha · a · b into y; then, where there is a bias or an activation, the kernel finishes
    each element, a thread several where there are more than a grid of 2³¹ − 1 threads."""
    p, block = params, define(rung, "BLOCK", 256)
    product = Product(
        p.m,
        p.n,
        p.k,
        a=Matrix("input 0", p.m if p.trans_a else p.k, stride=p.stride_a, transposed=p.trans_a),
        b=Matrix("input 1", p.k if p.trans_b else p.n, stride=p.stride_b, transposed=p.trans_b),
        c=Matrix("output", p.n, stride=p.m * p.n),
        batch=p.batch,
        alpha=p.alpha,
    )
    to_finish = p.bias or p.activation is not None
    grid = min(ceil(p.outputs, block), MAX_X // block) if to_finish else 0
    return Launch((grid, 1, 1), (block, 1, 1), p.scalars(), before=(product,))


# --- some images at a time ---


def images_at_once(p: Conv, rung: Rung, floats_an_image: int) -> int:
    """How many images go through the scratch memory together: about as many as SCRATCH_MIB holds, at least
    one, in parts of about the same size. Raises KernelError where one alone has more elements than 32 bits
    count."""
    if max(floats_an_image, p.c * p.h * p.w, p.m * p.out_h * p.out_w) > MAX_X:
        raise KernelError(f"{rung.label} counts what it makes of an image in 32 bits; {p} has more")
    most = min(MAX_X, (define(rung, "SCRATCH_MIB") << 20) // 4)
    images = max(1, min(p.n, most // floats_an_image))
    return ceil(p.n, ceil(p.n, images))


def parts(p: Conv, images: int) -> Iterator[tuple[Conv, int, int]]:
    """The convolution of `images` images at a time (the last may have fewer), with the offsets of its input
    and output in elements."""
    for first in range(0, p.n, images):
        part = replace(p, n=min(images, p.n - first))
        yield part, first * p.c * p.h * p.w, first * p.m * p.out_h * p.out_w


def row(elements: int) -> int:
    """Elements from one row in scratch memory to the next: each row begins on a multiple of 32 bytes, a
    sector of memory."""
    return ceil(elements, 8) * 8


def _patches(part: Conv, input_offset: int) -> Stage:
    """The kernel `conv`, which writes the patches of these images: a thread a pixel and TAPS taps."""
    grid = (
        ceil(part.n * part.out_h * part.out_w, _PATCH_THREADS),
        ceil(part.c * part.kh * part.kw, _TAPS),
        1,
    )
    scalars = part.scalars()
    return Stage(part.op, grid, (_PATCH_THREADS, 1, 1), scalars=scalars, input_offset=input_offset)


_THREADS = 256  # of a block that transforms with a thread a tile

# Lengths of a Fourier transform, and the tiles that a block transforms together: their spectra take 37 KB.
_TILES = {8: 64, 16: 32, 32: 8}
_LEAST_COLUMNS = 64  # a product of fewer takes as long
_MOST_WEIGHTS_NBYTES = 256 << 20
_TOGETHER = 1 << 14  # kernels that are transformed at once, in float64
# Of transforms, which every session of a model and each batch size would make again: all of an AlexNet's, by
# two lengths of each.
_KEPT_NBYTES = 768 << 20


@shape
def conv_winograd(params: Conv, rung: Rung) -> Launch:
    """F(2×2, 3×3): 16 products, a tile 2 × 2 outputs; a thread transforms a tile of a channel or map."""
    p = params
    tiles = ceil(p.out_h, 2) * ceil(p.out_w, 2)
    return _three(p, rung, 16, tiles, (_THREADS, _THREADS), {}, Pack(winograd_weights, (p.group,)))


@shape
def conv_fft(params: Conv, rung: Rung) -> Launch:
    """Transforms of LENGTH × LENGTH elements, which give SPAN_H × SPAN_W outputs: three products a
    frequency, LENGTH · (LENGTH / 2 + 1) frequencies. A block transforms TILES tiles of a channel or map, a
    thread two rows of one and a column of its spectrum. The length is that of the fewest multiplications."""
    p = params
    lengths = [length for length in _TILES if length >= max(p.kh, p.kw)]
    filters = p.weights // (p.kh * p.kw)
    fit = [length for length in lengths if 4 * filters * _places(length) <= _MOST_WEIGHTS_NBYTES]
    if not lengths:
        raise KernelError(f"{rung.label} transforms up to {max(_TILES)} elements; {p} has a larger window")
    length = min(
        fit or lengths[:1],
        key=lambda length: _places(length) * max(_LEAST_COLUMNS, p.n * _tiles(p, length)),
    )
    block = _TILES[length] * (length // 2 + 1)
    spans = {"SPAN_H": length - p.kh + 1, "SPAN_W": length - p.kw + 1}
    return _three(
        p,
        rung,
        _places(length),
        _tiles(p, length),
        (block, _TILES[length]),
        {"LENGTH": length, "TILES": _TILES[length], **spans},
        Pack(fft_weights, (p.group, length)),
    )


P = ParamSpec("P")
_transforms: OrderedDict[tuple[object, ...], np.ndarray] = OrderedDict()


def _kept(function: Callable[Concatenate[np.ndarray, P], np.ndarray]) -> Callable[..., np.ndarray]:
    """By the weights' content: the last that were asked for, not to be written to."""

    @wraps(function)
    def known(weight: np.ndarray, *args: P.args, **kwargs: P.kwargs) -> np.ndarray:
        content = hashlib.blake2b(np.ascontiguousarray(weight).tobytes(), digest_size=16).digest()
        key = (function, weight.shape, weight.dtype.str, content, args, *sorted(kwargs.items()))
        transform = _transforms.get(key)
        if transform is None:
            transform = function(weight, *args, **kwargs)
            transform.flags.writeable = False
            _transforms[key] = transform
        _transforms.move_to_end(key)
        while len(_transforms) > 1 and sum(array.nbytes for array in _transforms.values()) > _KEPT_NBYTES:
            _transforms.popitem(last=False)
        return transform

    return known


@_kept
def winograd_weights(weight: np.ndarray, group: int) -> np.ndarray:
    """G w Gᵀ of weights (m, c / group, 3, 3) as (16, group, m / group, c / group)."""
    g = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
    m, channels = weight.shape[-4:-2]
    return _transformed(np.kron(g, g), weight).reshape(16, group, m // group, channels)


@_kept
def fft_weights(weight: np.ndarray, group: int, length: int) -> np.ndarray:
    """The conjugate spectrum u + iv of weights (m, c / group, kh, kw) over length², as (3, length,
    length / 2 + 1, group, m / group, c / group): u, v − u, u + v. Of a value a + ib the product is then
    k₁ − k₃ + i (k₁ + k₂), out of k₁ = u (a + b), k₂ = (v − u) a, k₃ = (u + v) b."""
    m, channels, kh, kw = weight.shape[-4:]
    i, j, a, b = np.ogrid[:length, : length // 2 + 1, :kh, :kw]
    angle = 2 * np.pi / length * ((i * a + j * b) % length)
    u, v = np.cos(angle) / length**2, np.sin(angle) / length**2
    places = (3, length, length // 2 + 1)
    matrix = np.stack([u, v - u, u + v]).reshape(-1, kh * kw)
    return _transformed(matrix, weight).reshape(*places, group, m // group, channels)


def _transformed(matrix: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """float32 (place, kernel): a linear transform of weights, of which `matrix` has the row of each place
    over a kernel's taps. One product: a kernel is far smaller than its transform, and comes out in the order
    that is wanted."""
    taps = weight.reshape(-1, matrix.shape[1])
    transform = np.empty((len(matrix), len(taps)), np.float32)
    for start in range(0, len(taps), _TOGETHER):
        transform[:, start : start + _TOGETHER] = matrix @ taps[start : start + _TOGETHER].T.astype(
            np.float64
        )
    return transform


# --- helpers ---


def _three(
    p: Conv,
    rung: Rung,
    count: int,
    tiles: int,
    transforming: tuple[int, int],
    defines: dict[str, Define],
    pack: Pack,
) -> Launch:
    """The three kernels of `count` products, `tiles` tiles an image. transforming: threads of a block that
    transforms, and the tiles that it takes."""
    threads, together = transforming
    images = images_at_once(p, rung, count * (p.c + p.m) * tiles)
    channels, maps = p.c // p.group, p.m // p.group
    tile, _ = products.fit(LARGE_CONV_TILES, maps, images * tiles, channels, count * p.group)
    stages: list[Stage | Product] = []
    for part, input_offset, output_offset in parts(p, images):
        scalars, columns = part.scalars(), part.n * tiles
        across, block = ceil(columns, together), (threads, 1, 1)
        stages += [
            Stage("conv", (across, p.c, 1), block, scalars=scalars, input_offset=input_offset),
            Stage(
                "conv_products",
                (ceil(columns, tile.n), ceil(maps, tile.m), count * p.group),
                (tile.threads, 1, 1),
                scalars=scalars,
            ),
            Stage("conv_outputs", (across, p.m, 1), block, scalars=scalars, output_offset=output_offset),
        ]
    return Launch(
        (0, 1, 1),
        (threads, 1, 1),
        p.scalars(),
        defines=tile.defines | defines | {"VECTOR_W": 1 if channels % 4 else 4},
        workspace_nbytes=4 * count * (p.c + p.m) * row(images * tiles),
        then=tuple(stages),
        packed={1: pack},
    )


def _places(length: int) -> int:
    """Products of a Fourier transform of length²: three of real numbers a frequency."""
    return 3 * length * (length // 2 + 1)


def _tiles(p: Conv, length: int) -> int:
    """Tiles of an image."""
    return ceil(p.out_h, length - p.kh + 1) * ceil(p.out_w, length - p.kw + 1)
