# op = "conv"
# rung = 12
# name = "map_vectors"
# idea = "Small images: 16 maps, not 16 pixels, are a vector, so that none of its lanes is empty."
# compiled = true
# packs = true
# needs = {kernel = 1, stride = 1, group = 1, pad = 0}
# prefers = {require = ["out_h * out_w <= 100", "out_h * out_w > 8", "m >= 48"]}
"""A product of tiles of registers (kernels.cpu.tiles) whose rows are pixels: up to 8 of them, times 48 maps
whose weights lie side by side for each channel. The image is read where it lies. The answer has a pixel's
maps side by side, and is turned (kernels.cpu.turned) as it is copied to its place. While the pixels of a
block of maps are gone through, the weights of the next one are asked for. Threads divide images and maps.
"""

from functools import partial

import numpy as np

from kernels.cpu import simd
from kernels.cpu.common import packed_late, sequence
from kernels.cpu.compiled import Call, compiled, tiles
from kernels.cpu.loops import IN_TILE, KINDS, activate, tile_rows, tile_vectors
from kernels.cpu.simd import LANES

WIDE = 3 * LANES  # maps of a block
PARTS = 8  # at least: else threads would wait for the last


@compiled
def step(a, low, high, scratch):
    maps, depth, pixels, slices, blocks, after = a[1], a[2], a[3], a[4], a[5], a[6]
    x, weights, bias, y = simd.floats(a[8]), simd.floats(a[9]), simd.floats(a[10]), simd.floats(a[11])
    offsets, places, lanes = simd.integers(a[12]), simd.integers(a[13]), simd.integers(a[14])
    if a[0] == 1:
        low, high = low * slices, high * slices
    for part in range(low, high):
        image, start = part // slices, part % slices
        seen = simd.shifted(x, image * depth * pixels)
        for block in range(start * blocks // slices, (start + 1) * blocks // slices):
            m = block * WIDE
            own = min(WIDE, maps - m)
            vectors = (own + LANES - 1) // LANES
            r = 0
            while r < pixels:
                rows = tile_rows(pixels - r)
                v = 0
                while v < vectors:
                    many = tile_vectors(rows, vectors - v)
                    simd.tile(
                        a[15], rows, many, simd.shifted(seen, r), 1, pixels,
                        simd.shifted(weights, m * depth + v * LANES),
                        simd.shifted(offsets, (vectors - 1) * depth), places, depth,
                        simd.shifted(scratch, r * WIDE + v * LANES), WIDE, places, lanes,
                        simd.shifted(bias, m + v * LANES), 0, after,
                        simd.shifted(weights, (m + WIDE + r) * depth),
                    )  # fmt: skip
                    v += many
                r += rows
            to = simd.shifted(y, (image * maps + m) * pixels)
            simd.turned(scratch, WIDE, pixels, own, to, pixels)
            activate(a[7], to, own * pixels)


def workspace(p):
    return 4 * p.out_h * p.out_w * WIDE


def _packed(p, weights):
    of = weights.reshape(p.m, p.c)
    packed = np.zeros(-(-p.m // LANES) * LANES * p.c, np.float32)
    for first in range(0, p.m, WIDE):
        block = of[first : first + WIDE]
        wide = -(-len(block) // LANES) * LANES
        packed[first * p.c :][: p.c * wide].reshape(p.c, wide)[:, : len(block)] = block.T
    return packed.reshape(1, 1, 1, 1, -1)


def _bias(p, bias):
    """Of whole blocks of maps."""
    return np.pad(bias, (0, -p.m % WIDE))


def pack(p, inputs):
    weights = None if inputs[1] is None else _packed(p, inputs[1])
    return [inputs[0], weights, *(of if of is None else _bias(p, of) for of in inputs[2:])]


def bind(p, inputs, output, workspace):
    shape = (1, 1, 1, 1, -(-p.m // LANES) * LANES * p.c)
    weights, late = packed_late(inputs[1], shape, np.float32, partial(_packed, p))
    blocks = -(-p.m // WIDE)
    bias = inputs[2] if p.bias else np.zeros(blocks * WIDE, np.float32)
    bias, bias_late = packed_late(bias, (blocks * WIDE,), np.float32, partial(_bias, p))
    slices = max(1, min(-(-PARTS // p.n), blocks))
    arguments = [
        p.m, p.c, p.out_h * p.out_w, slices, blocks, IN_TILE.get(p.activation, simd.PLAIN),
        0 if p.activation in IN_TILE else KINDS[p.activation], inputs[0], weights, bias, output,
        np.concatenate([np.arange(p.c) * LANES * v for v in (1, 2, 3)]), np.arange(8) * LANES,
        np.full(8, LANES), tiles(),
    ]  # fmt: skip
    call = Call(step, arguments, workspace, p.n, p.n * slices, weights.nbytes)
    return sequence([*late, *bias_late, call])
