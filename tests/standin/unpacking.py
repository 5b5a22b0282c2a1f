"""Weights as a rung has them laid out, brought back to ONNX's order: kernels.launch's packs turned round.

What is needed of the layout beyond the weights' own shape is what the kernel is compiled with.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels import packing
from kernels.occupancy import ceil
from kernels.ops import code
from kernels.ops.conv import Conv
from kernels.ops.conv_pool import ConvPool
from kernels.ops.gemm import Gemm
from kernels.ops.qconv import QConv
from kernels.ops.qgemm import QGemm
from kernels.precision import narrow
from tests.standin.code import Module

Packed = Conv | ConvPool | Gemm | QConv | QGemm


@dataclass(frozen=True)
class _Layout:
    """shape, dtype: as it lies. back: from such an array to float32 in ONNX's order, whatever its shape."""

    shape: tuple[int, ...]
    dtype: np.dtype | type
    back: Callable[[np.ndarray], np.ndarray]


def nbytes(module: Module, params: Packed) -> int:
    """How many bytes the weights of these parameters take."""
    layout = LAYOUTS[module.launch](module, params)
    return math.prod(layout.shape) * np.dtype(layout.dtype).itemsize


def unpacked(module: Module, params: Packed, held: np.ndarray) -> np.ndarray:
    """held: the bytes as they lie."""
    layout = LAYOUTS[module.launch](module, params)
    shape = params.input_shapes[1]
    return layout.back(held.view(layout.dtype).reshape(layout.shape)).reshape(shape).astype(np.float32)


def _whole_image(module: Module, p: Conv | ConvPool) -> _Layout:
    return _parts(p, module.define("MAPS"))


def _row_strips(module: Module, p: Conv) -> _Layout:
    return _parts(p, 8 * module.define("GROUPS"))


def _parts(p: Conv | ConvPool, maps: int) -> _Layout:
    """So many maps of a group a part, tap by tap."""
    group = p.group
    filters, taps = p.m // group, p.c // group * p.kh * p.kw
    parts = ceil(filters, maps)

    def back(packed: np.ndarray) -> np.ndarray:
        return packed.swapaxes(2, 3).reshape(group, parts * maps, taps)[:, :filters]

    return _Layout((group, parts, taps, maps), np.float32, back)


def _slabs(module: Module, group: int, wide: int, steps: int, precision: str = "") -> _Layout:
    """To (group, columns, steps)."""
    precision = precision or module.precision
    each, tile = packing.depth(precision), module.define("TILE_COLUMNS")
    count, padded = ceil(steps, each), ceil(wide, tile) * tile

    def back(packed: np.ndarray) -> np.ndarray:
        lanes = packed.reshape(group, count, padded // 16, 2, 8, 4, 2, 2, each // 16)
        slabs = lanes.transpose(0, 1, 2, 7, 4, 5, 3, 6, 8).reshape(packed.shape)
        return slabs.swapaxes(1, 2).reshape(group, padded, count * each)[:, :wide, :steps]

    return _Layout((group, count, padded, each), _element(precision), back)


def _element(precision: str) -> np.dtype:
    return np.dtype(narrow(precision) or "float32")


def _scaled(halves: _Layout, columns: int) -> _Layout:
    """float16 columns and, behind them all, what each is multiplied by."""

    def back(packed: np.ndarray) -> np.ndarray:
        values, scales = packed[: -4 * columns].view(np.float16), packed[-4 * columns :].view(np.float32)
        found = halves.back(values.reshape(halves.shape))
        return found.astype(np.float64) * scales[: found.shape[-2], None]

    return _Layout((2 * math.prod(halves.shape) + 4 * columns,), np.uint8, back)


def _conv_tensor(module: Module, p: Conv) -> _Layout:
    filters, channels, run = p.m // p.group, p.c // p.group, module.define("RUN")
    layout = _slabs(module, p.group, filters, channels * p.kh * p.kw)

    def back(packed: np.ndarray) -> np.ndarray:
        taps = layout.back(packed).reshape(p.group, filters, channels // run, p.kh * p.kw, run)
        return taps.swapaxes(3, 4)

    return _Layout(layout.shape, layout.dtype, back)


def _swizzled_slabs(module: Module, group: int, wide: int, steps: int) -> _Layout:
    """To (group, columns, steps)."""
    if "OPERANDS" in module.defines or "SCALED" in module.defines:
        return _split_slabs(module, group, wide, steps)
    each, tile = 2 * packing.depth(module.precision), module.define("TILE_COLUMNS")
    count, padded = ceil(steps, each), ceil(wide, tile) * tile

    def back(packed: np.ndarray) -> np.ndarray:
        chunks = packing.swizzled(packed.reshape(group, count, padded, 8, each // 8)).swapaxes(1, 2)
        return chunks.reshape(group, padded, count * each)[:, :wide, :steps]

    return _Layout((group, count, padded, each), _element(module.precision), back)


def _split_slabs(module: Module, group: int, wide: int, steps: int) -> _Layout:
    """To (group, columns, steps): of each number a float16 or two, and what brings a column's back."""
    operands = module.define("OPERANDS") if "OPERANDS" in module.defines else 1
    each, tile = 2 * packing.depth("fp16") // operands, module.define("TILE_COLUMNS")
    count, padded = ceil(steps, each), ceil(wide, tile) * tile

    def back(packed: np.ndarray) -> np.ndarray:
        values, scales = packed[: -4 * group * padded], packed[-4 * group * padded :]
        slabs = packing.swizzled(values.view(np.float16).reshape(group, count, padded, 8, -1))
        numbers = slabs.astype(np.float64).reshape(group, count, padded, operands, each).sum(axis=3)
        numbers = numbers.swapaxes(1, 2)
        found = numbers.reshape(group, padded, count * each) * scales.view(np.float32).reshape(
            group, padded, 1
        )
        return found[:, :wide, :steps]

    return _Layout((group * padded * (2 * operands * count * each + 4),), np.uint8, back)


def _conv_wgmma(module: Module, p: Conv) -> _Layout:
    return _conv_nhwc(module, p, _swizzled_slabs)


def _conv_nhwc(module: Module, p: Conv, slabs: Callable[..., _Layout] = _slabs) -> _Layout:
    filters, channels, fold = p.m // p.group, p.c // p.group, module.define("FOLD")
    high, wide, depth = ceil(p.kh, fold), ceil(p.kw, fold), channels * fold * fold
    each = module.define("EACH")
    chunks = ceil(depth, each) * each
    layout = slabs(module, p.group, filters, high * wide * chunks)

    def back(packed: np.ndarray) -> np.ndarray:
        taps = layout.back(packed).reshape(p.m, high, wide, chunks)[..., :depth]
        folded = taps.reshape(p.m, high, wide, channels, fold, fold).transpose(0, 3, 1, 4, 2, 5)
        return folded.reshape(p.m, channels, high * fold, wide * fold)[:, :, : p.kh, : p.kw]

    return _Layout(layout.shape, layout.dtype, back)


def _byte_slabs(module: Module, group: int, wide: int, steps: int) -> _Layout:
    """To (group, columns, steps): whole numbers, behind which lie their sums and a row of ones."""
    each = packing.WIDE_SLAB_NBYTES if "BLOCKS_AT_ONCE" in module.defines else packing.SLAB_NBYTES
    tile = module.define("TILE_COLUMNS")
    count, padded = ceil(steps, each), ceil(wide, tile) * tile
    size = group * count * padded * each
    signed = module.define("W_TYPE") == code("DTYPE", "int8")

    def back(packed: np.ndarray) -> np.ndarray:
        slabs = packed[:size].reshape(group, count, padded, each)
        if each == packing.WIDE_SLAB_NBYTES:
            slabs = packing.swizzled(slabs.reshape(group, count, padded, 8, 16)).reshape(slabs.shape)
        else:
            lanes = slabs.reshape(group, count, padded // 16, 2, 8, 4, 2, 2, each // 16)
            slabs = lanes.transpose(0, 1, 2, 7, 4, 5, 3, 6, 8).reshape(slabs.shape)
        found = slabs.swapaxes(1, 2).reshape(group, padded, count * each)[:, :wide, :steps]
        return np.ascontiguousarray(found).view(np.int8) if signed else found

    return _Layout((size + 4 * group * padded + count * each,), np.uint8, back)


def _qconv(module: Module, p: QConv) -> _Layout:
    return _conv_nhwc(module, p.product, _byte_slabs)


def _byte_rows(module: Module, p: QGemm) -> _Layout:
    product = p.product
    shape = (product.n, ceil(product.k, packing.CHUNK_NBYTES) * packing.CHUNK_NBYTES)
    to = p.weight_dtype
    return _Layout(shape, np.uint8, lambda rows: _turned(product, rows[:, : product.k].astype(to)))


def _qgemm(module: Module, p: QGemm) -> _Layout:
    layout = _byte_slabs(module, 1, p.product.n, p.product.k)
    return _Layout(layout.shape, layout.dtype, lambda packed: _turned(p.product, layout.back(packed)[0]))


def _conv_rows(module: Module, p: Conv) -> _Layout:
    deep, values = packing.row_depth(p.c, p.stride_w, module.precision)
    run = ceil(p.kw * deep, values)
    whole, tall = run // 4 * 4, ceil(p.kh, 4) * 4
    along = p.kh * whole * values
    layout = _swizzled_slabs(module, 1, p.m, along + (run - whole) * tall * values)

    def back(packed: np.ndarray) -> np.ndarray:
        steps = layout.back(packed).reshape(p.m, -1)
        words = np.zeros((p.m, p.kh, run, values))
        words[:, :, :whole] = steps[:, :along].reshape(p.m, p.kh, whole, values)
        left = steps[:, along:].reshape(p.m, run - whole, tall, values)
        words[:, :, whole:] = left[:, :, : p.kh].swapaxes(1, 2)
        rows = words.reshape(p.m, p.kh, -1)[..., : p.kw * deep].reshape(p.m, p.kh, p.kw, deep)
        return rows[..., : p.c].transpose(0, 3, 1, 2)

    return _Layout(layout.shape, layout.dtype, back)


def _conv_slices(module: Module, p: Conv) -> _Layout:
    """Of strips of 16 channels, by steps and taps, what the lanes of a warp take."""
    tile, split = 16 * module.define("STRIPS"), module.precision == "fp32-tc"
    filters, channels, taps = p.m // p.group, p.c // p.group, p.kh * p.kw
    values, wide = 1 if module.precision == "tf32" else 2, ceil(filters, tile) * tile
    steps = ceil(channels, 8 * values)
    lanes = (p.group, wide // 16, steps, taps, 2 if split else 1, 8, 4, 2, 2, values)

    def filters_of(words: np.ndarray) -> np.ndarray:
        numbers = words.astype(np.float64).reshape(lanes).sum(axis=4)
        found = numbers.transpose(0, 1, 7, 4, 2, 6, 5, 8, 3).reshape(p.group, wide, -1, taps)
        return found[:, :filters, :channels]

    def back(packed: np.ndarray) -> np.ndarray:
        if not split:
            return filters_of(packed)
        values_of, scales = packed[: -4 * p.group * wide], packed[-4 * p.group * wide :]
        scales = scales.view(np.float32).reshape(p.group, wide, 1, 1)[:, :filters]
        return filters_of(values_of.view(np.float16)) * scales

    if split:
        return _Layout((2 * math.prod(lanes) + 4 * p.group * wide,), np.uint8, back)
    return _Layout(lanes, _element(module.precision), back)


def _gemm_tensor(module: Module, p: Gemm) -> _Layout:
    layout = _slabs(module, 1, p.n, p.k)
    return _Layout(layout.shape, layout.dtype, lambda packed: _turned(p, layout.back(packed)[0]))


def _gemm_wgmma(module: Module, p: Gemm) -> _Layout:
    layout = _swizzled_slabs(module, 1, p.n, p.k)
    return _Layout(layout.shape, layout.dtype, lambda packed: _turned(p, layout.back(packed)[0]))


def _gemm_streamed(module: Module, p: Gemm) -> _Layout:
    if "SCALED" not in module.defines:
        return _gemm_tensor(module, p)
    layout = _slabs(module, 1, p.n, p.k, "fp16")
    layout = _longer_slabs(layout) if "BITS" in module.defines else _scaled(layout, layout.shape[2])
    return _Layout(layout.shape, layout.dtype, lambda packed: _turned(p, layout.back(packed)[0]))


def _longer_slabs(halves: _Layout) -> _Layout:
    """float16 slabs and the eight bits that follow, by slab and sixteen columns, then what brings back."""
    _, count, columns, each = halves.shape

    def back(packed: np.ndarray) -> np.ndarray:
        pieces, scales = (
            packed[: -4 * columns].reshape(count, -1, 3, 512),
            packed[-4 * columns :].view(np.float32),
        )
        values = pieces[:, :, :2].copy().view(np.float16).astype(np.float32).view(np.uint32)
        more = pieces[:, :, 2].reshape(count, -1, 32, 2, 8).swapaxes(2, 3).astype(np.uint32)
        numbers = (values.reshape(more.shape) | more << 5).view(np.float32)
        found = halves.back(numbers.reshape(halves.shape)).astype(np.float64)
        return found * scales[: found.shape[-2], None]

    return _Layout((count * columns * each * 3 + 4 * columns,), np.uint8, back)


def _half_rows(module: Module, p: Gemm) -> _Layout:
    each = packing.CHUNK_NBYTES // 2
    dtype = np.float16 if "SCALED" in module.defines else _element(module.precision)
    layout = _Layout((p.n, ceil(p.k, each) * each), dtype, lambda packed: packed[:, : p.k])
    if "BITS" in module.defines:
        layout = _longer_rows(p)
    elif "SCALED" in module.defines:
        layout = _scaled(layout, p.n)
    return _Layout(layout.shape, layout.dtype, lambda packed: _turned(p, layout.back(packed)))


def _longer_rows(p: Gemm) -> _Layout:
    """float16 columns and the eight bits that follow, by lanes of a warp, sixteen steps each."""
    count = ceil(p.k, 512)

    def back(packed: np.ndarray) -> np.ndarray:
        pieces, scales = packed[: -4 * p.n].reshape(p.n, count, 3, 512), packed[-4 * p.n :].view(np.float32)
        halves = pieces[:, :, :2].copy().view(np.float16).reshape(p.n, count, 2, 32, 8).swapaxes(2, 3)
        bits = halves.reshape(p.n, -1).astype(np.float32).view(np.uint32)
        numbers = (bits | pieces[:, :, 2].reshape(p.n, -1).astype(np.uint32) << 5).view(np.float32)
        return numbers[:, : p.k].astype(np.float64) * scales[:, None]

    return _Layout((p.n * (count * 1536 + 4),), np.uint8, back)


def _tiled_rows(module: Module, p: Gemm) -> _Layout:
    tile_n, tile_k = 8 * module.define("THREAD_N"), 4 * module.define("SLICES")
    padded = (ceil(p.n, tile_n) * tile_n, ceil(p.k, tile_k) * tile_k)
    return _Layout(padded, np.float32, lambda packed: _turned(p, packed[: p.n, : p.k]))


def _turned(p: Gemm, rows: np.ndarray) -> np.ndarray:
    """Rows (n, k) as b lies in ONNX."""
    return rows if p.trans_b else rows.T


def _winograd(module: Module, p: Conv) -> _Layout:
    channels = p.c // p.group

    def back(packed: np.ndarray) -> np.ndarray:
        g = np.linalg.pinv(np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]]))
        return np.einsum("ia,abmc,jb->mcij", g, packed.reshape(4, 4, p.m, channels), g)

    return _Layout((16, p.group, p.m // p.group, channels), np.float32, back)


def _fft(module: Module, p: Conv) -> _Layout:
    length, channels = module.define("LENGTH"), p.c // p.group
    places = (3, length, length // 2 + 1)

    def back(packed: np.ndarray) -> np.ndarray:
        u, less, _ = packed.astype(np.float64).reshape(*places, p.m, channels)
        spectrum = np.conj(u + 1j * (less + u)) * length**2
        taps = np.fft.irfft2(spectrum.transpose(2, 3, 0, 1), (length, length))
        return taps[:, :, : p.kh, : p.kw]

    return _Layout((*places, p.group, p.m // p.group, channels), np.float32, back)


# By the launch shape.
LAYOUTS: dict[str, Callable[[Module, Any], _Layout]] = {
    "conv_row_strips": _row_strips,
    "conv_float_slices": _whole_image,
    "conv_whole_image": _whole_image,
    "conv_pool_whole_image": _whole_image,
    "conv_tensor": _conv_tensor,
    "conv_nhwc_tensor": _conv_nhwc,
    "conv_nhwc_wgmma": _conv_wgmma,
    "conv_image_rows": _conv_rows,
    "conv_image_slices": _conv_slices,
    "conv_winograd": _winograd,
    "conv_fft": _fft,
    "gemm_tensor": _gemm_tensor,
    "gemm_wgmma": _gemm_wgmma,
    "gemm_half_columns": _half_rows,
    "gemm_streamed": _gemm_streamed,
    "gemm_sliced": _tiled_rows,
    "qconv_nhwc_tensor": _qconv,
    "qconv_nhwc_wgmma": _qconv,
    "qgemm_nhwc_tensor": _qgemm,
    "qgemm_nhwc_wgmma": _qgemm,
    "qgemm_early_columns": _byte_rows,
}
