"""The launch shapes of convolutions that write the patches of the image into memory first, and of products
that cuBLAS computes.

A large batch goes through the scratch memory a few images at a time: then a stage of the launch is a
convolution of only those images.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernels.errors import KernelError
from kernels.estimates.tiles import LARGE_CONV_TILES
from kernels.launch import products
from kernels.launch.core import MAX_X, MAX_YZ, Launch, Matrix, Product, Stage, define, shape
from kernels.occupancy import ceil
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.registry import Rung

_THREADS = 256  # of a block that writes patches or finishes sums
_TAPS = 8  # of one pixel that a thread writes


@shape
def conv_im2col(params: Conv, rung: Rung) -> Launch:
    """Some images at a time (see images_at_once) `conv` writes their patches, (group, tap, pixel of those
    images), each row beginning on 16 bytes; `conv_product` multiplies, a block a tile out of
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
        (_THREADS, 1, 1),
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
                (ceil(part.n * area, _THREADS), min(p.m, MAX_YZ), 1),
                (_THREADS, 1, 1),
                scalars=part.scalars(),
                output_offset=output_offset,
            )
        )
    return Launch(
        (0, 1, 1),
        (_THREADS, 1, 1),
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
    one, as evenly as can be. Raises KernelError where one alone is more than kernels count in 32 bits."""
    if max(floats_an_image, p.c * p.h * p.w, p.m * p.out_h * p.out_w) > MAX_X:
        raise KernelError(f"{rung.label} counts what it makes of an image in 32 bits; {p} has more")
    most = min(MAX_X, (define(rung, "SCRATCH_MIB") << 20) // 4)
    images = max(1, min(p.n, most // floats_an_image))
    return ceil(p.n, ceil(p.n, images))


def parts(p: Conv, images: int) -> Iterator[tuple[Conv, int, int]]:
    """The convolution of `images` at a time (the last may have fewer), and how many elements of input and
    output lie in front of each."""
    for first in range(0, p.n, images):
        part = replace(p, n=min(images, p.n - first))
        yield part, first * p.c * p.h * p.w, first * p.m * p.out_h * p.out_w


def row(elements: int) -> int:
    """Elements from one row in scratch memory to the next, so that each begins on a sector of memory, 32
    bytes."""
    return ceil(elements, 8) * 8


def _patches(part: Conv, input_offset: int) -> Stage:
    """The kernel `conv`, which writes the patches of these images: a thread a pixel and TAPS taps."""
    grid = (ceil(part.n * part.out_h * part.out_w, _THREADS), ceil(part.c * part.kh * part.kw, _TAPS), 1)
    scalars = part.scalars()
    return Stage(part.op, grid, (_THREADS, 1, 1), scalars=scalars, input_offset=input_offset)
