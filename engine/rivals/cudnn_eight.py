"""Products of int8, sums in int32, as steps of a pass. cuDNN knows no zero point: those are part of the bias,
and where an image has a frame of what is no zero it is written with its frame.

Tensors of int8 have their channels innermost, four of them a pixel or a multiple of sixteen.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from engine.ops import Kernel
from engine.ops._base import Refused
from engine.passes import Program
from engine.rivals.cublaslt import Matrix, Product
from engine.rivals.cudnn_library import Convolution, laid_out
from engine.rivals.cudnn_operators import HANDLERS
from engine.rivals.cudnn_pass import Held, Pass, Way, Work, at, both, bound
from kernels.ops import Params
from kernels.ops.pool import Pool
from kernels.ops.qconv import QConv
from kernels.ops.qgemm import QGemm
from kernels.ops.quantize import Quantize


def reads_eight(p: Params) -> bool:
    """Whether it reads int8 and has a way to."""
    return p.dtype == "int8" and isinstance(p, QConv | QGemm | Quantize | Pool)


def check(made: Program, kernel: Kernel) -> None:
    """Raise Refused for what of eight bits is not taken."""
    p = kernel.params
    if isinstance(p, Quantize) and (p.through != "int8" or p.channels != 1):
        raise Refused(f"it goes through {p.through} of {p.channels} scales, and int8 of one is taken")
    if isinstance(p, Pool) and p.dtype == "int8" and (p.kind != "max" or p.activation):
        raise Refused("of int8 the largest value alone is pooled")
    if not isinstance(p, QConv | QGemm):
        return
    if (p.dtype, p.weight_dtype) != ("int8", "int8") or p.to not in ("int8", "float32"):
        raise Refused(f"it multiplies {p.dtype} by {p.weight_dtype} to {p.to}, and int8 alone is taken")
    if any(name not in made.constants for name in kernel.inputs[1:]):
        raise Refused("its weights or scales are no constants")
    if np.any(made.constants[kernel.inputs[3]]):
        raise Refused("its weights have a zero point, which cuDNN does not know")
    if isinstance(p, QGemm) and (p.batch != 1 or p.gemm.stride_b):
        raise Refused("it multiplies several matrices, and one is taken")
    depth = p.conv.c // p.conv.group if isinstance(p, QConv) else 16
    if isinstance(p, QConv) and p.conv.group > 1 and (depth % 16 or p.conv.m // p.conv.group % 16):
        raise Refused(f"its {p.conv.group} groups of {p.conv.c} channels do not fill 16 bytes each")


def _eight(t: Pass, name: str) -> tuple[int, tuple[int, int, int]]:
    """The address of a tensor of int8, and its sizes."""
    it = t.tensor(name)
    if not it.eight:
        raise Refused(f"its input {name!r} is no tensor of int8")
    return it.eight, it.sizes


def _new_eight(t: Pass, name: str, n: int, c: int, pixels: int) -> int:
    address = t.gpu.take(n * pixels * _pitch(c))
    t.tensors[name] = Held(eight=address, sizes=(n, c, pixels))
    return address


def _quantize(t: Pass, kernel: Kernel, _: str) -> None:
    p = kernel.params
    assert isinstance(p, Quantize)
    scale, zero = (np.asarray(t.made.constants[name]).reshape(-1)[0] for name in kernel.inputs[1:])
    numbers = np.float32(scale), np.int32(zero)
    shape = t.made.specs[kernel.output].shape
    if p.dtype == "int8":
        x, (n, c, pixels) = _eight(t, kernel.inputs[0])
    else:
        n, c, pixels = (*shape[:2], math.prod(shape[2:])) if len(shape) > 1 else (1, *shape, 1)
        x = t.image(kernel.inputs[0], n, c, pixels)
    pitch, eight = t.pitch(c), _pitch(c)
    sizes = np.int32(c), np.int32(pitch), np.int32(eight)
    if p.dtype != "int8":
        output = kernel.output if p.to == "int8" else f"{kernel.output} in int8"
        y, items = _new_eight(t, output, n, c, pixels), n * pixels * (eight // 4)
        given = (at(x), at(y), np.int32(items), *sizes, *numbers)
        t.do(t.gpu.launch("to_eight", given, items))
        x = y
    if p.to == "int8":
        return
    y, items = t.new_image(kernel.output, n, c, pixels), n * pixels * (pitch // t.chunk)
    t.do(t.gpu.launch("of_eight", (at(x), at(y), np.int32(items), *sizes, *numbers), items))
    if p.dtype != "int8":
        t.gpu.give(t.tensors.pop(f"{kernel.output} in int8").eight)


def _sums(t: Pass, kernel: Kernel, p: QConv | QGemm, laid: np.ndarray) -> tuple[int, int, int]:
    """Addresses of what makes a sum of products the step's answer: bias in int32, factor and shift in
    float32, one of each a channel. laid: the weights, channels first. Zero points of x are part of the
    bias."""
    zero = int(np.asarray(t.made.constants[kernel.inputs[2]]).reshape(-1)[0])
    bias, scale, *shift = (np.asarray(t.made.constants[name]) for name in kernel.inputs[4:])
    sums = laid.astype(np.int64).reshape(len(laid), -1).sum(axis=1)[: p.channels]
    out = p.out_scale if p.to == "int8" else 1.0
    names = kernel.inputs[4], kernel.inputs[5]
    how = f"{kernel.output} of {out}"
    added = np.zeros(p.channels) if not shift else np.asarray(shift[0], np.float64) / out
    return (
        t.constant(names[0], bias.astype(np.int64) - zero * sums, how, "int32"),
        t.constant(names[1], np.asarray(scale, np.float64) / out, how, "float32"),
        t.constant(names[1], added, f"shift of {how}", "float32"),
    )


def _end_of_sums(t: Pass, p: QConv | QGemm, sums: int, ends: tuple[int, int, int], kernel: Kernel,
                 sizes: tuple[int, int, int]) -> Work:  # fmt: skip
    """What makes int32 sums the step's answer."""
    n, c, pixels = sizes
    eight = _pitch(c)
    places = map(at, (sums, *ends))
    if p.to == "int8":
        y, items = _new_eight(t, kernel.output, n, c, pixels), n * pixels * (eight // 4)
        limits = map(np.int32, (p.out_zero, p.low, p.high))
        given = (*places, at(y), np.int32(items), np.int32(c), np.int32(eight), *limits)
        return t.gpu.launch("sums_to_eight", given, items)
    y, items = t.new_image(kernel.output, n, c, pixels), n * pixels * (t.pitch(c) // t.chunk)
    given = (*places, at(y), np.int32(items), *map(np.int32, (c, t.pitch(c), eight)))
    return t.gpu.launch("sums_to_real", given, items)


def _qconv(t: Pass, kernel: Kernel, _: str) -> None:
    p = kernel.params
    assert isinstance(p, QConv)
    conv, zero = p.conv, int(np.asarray(t.made.constants[kernel.inputs[2]]).reshape(-1)[0])
    x, _sizes = _eight(t, kernel.inputs[0])
    c, m = _pitch(conv.c), _pitch(conv.m)
    weight = np.asarray(t.made.constants[kernel.inputs[1]])
    weight = weight.reshape(conv.m, conv.c // conv.group, conv.kh, conv.kw)
    laid = np.zeros((m, c // conv.group, conv.kh, conv.kw), np.int8)
    laid[: conv.m, : weight.shape[1]] = weight
    whole = replace(conv, c=c, m=m, bias=False, activation=None)
    frame = (conv.pad_top, conv.pad_left, conv.pad_bottom, conv.pad_right)
    framed = 0
    if zero and any(frame):  # cuDNN's frame is of zeros, and this one's zero is another number
        h, w = conv.h + frame[0] + frame[2], conv.w + frame[1] + frame[3]
        framed = t.gpu.take(conv.n * h * w * c)
        items = conv.n * h * w * (c // 4)
        numbers = map(np.int32, (c, conv.h, conv.w, h, w, frame[0], frame[1], zero))
        t.do(t.gpu.launch("framed", (at(x), at(framed), np.int32(items), *numbers), items))
        whole = replace(whole, h=h, w=w, pad_top=0, pad_left=0, pad_bottom=0, pad_right=0)
        x = framed
    w8 = t.constant(kernel.inputs[1], laid_out(laid, "int8", True), "filters of int8", "int8")
    ends = _sums(t, kernel, p, laid)
    pixels = conv.out_h * conv.out_w
    sums = t.gpu.take(4 * conv.n * pixels * m)
    asked = Convolution(whole, False, False, "int8", True, False)
    ways: list[Way] = []
    end = _end_of_sums(t, p, sums, ends, kernel, (conv.n, conv.m, pixels))
    y = t.tensors[kernel.output].eight
    for plan in t.convolutions.plans(asked, (x, w8, 0, 0, sums)):
        t.gpu.put(end)
        t.gpu.synchronize()
        elapsed = plan.elapsed_ns + t.gpu.time_ns(end)
        work = both(bound(plan, x, w8, 0, 0, sums), end)
        ways.append(Way(elapsed, f"{plan.words}, and a kernel that makes sums int8", work))
    if p.to == "int8" and (p.low, p.high) == (-128, 127):
        factor, shift = _folded(t, kernel, p, laid, m)
        finished = replace(asked, finished=True)
        for plan in t.convolutions.plans(finished, (x, w8, shift, factor, y)):
            work = bound(plan, x, w8, shift, factor, y)
            ways.append(Way(plan.elapsed_ns, f"{plan.words}, to int8", work))
    t.choose(kernel, ways, f"{conv.words} in int8")
    for address in {framed, sums} - {0}:
        t.gpu.give(address)


def _folded(t: Pass, kernel: Kernel, p: QConv, laid: np.ndarray, m: int) -> tuple[int, int]:
    """Factor and shift of a sum, bias and zero points in them, for what cuDNN ends a graph with."""
    zero = int(np.asarray(t.made.constants[kernel.inputs[2]]).reshape(-1)[0])
    bias, scale, *shift = (np.asarray(t.made.constants[name], np.float64) for name in kernel.inputs[4:])
    sums = laid.astype(np.int64).reshape(len(laid), -1).sum(axis=1)[: p.channels]
    rows = np.zeros((2, m))
    rows[0, : p.channels] = scale / p.out_scale
    rows[1, : p.channels] = (bias - zero * sums) * scale / p.out_scale + p.out_zero
    if shift:
        rows[1, : p.channels] += shift[0] / p.out_scale
    how = f"{kernel.output} folded of {m}"
    return (
        t.constant(kernel.inputs[5], rows[0], how, "float32"),
        t.constant(kernel.inputs[4], rows[1], how, "float32"),
    )


def _qgemm(t: Pass, kernel: Kernel, _: str) -> None:
    p = kernel.params
    assert isinstance(p, QGemm)
    gemm = p.gemm
    x, (n, c, pixels) = _eight(t, kernel.inputs[0])
    if n != gemm.m or c * pixels != gemm.k:
        raise Refused(f"its rows of {gemm.k} are no images of {c} channels")
    matrix = np.asarray(t.made.constants[kernel.inputs[1]])
    matrix = matrix.reshape((gemm.n, gemm.k) if gemm.trans_b else (gemm.k, gemm.n))
    rows = matrix if gemm.trans_b else matrix.T
    depth, columns = pixels * _pitch(c), _pitch(gemm.n)
    # Rows of pixels are read as they lie: the weights are put in that order, with zeros between.
    laid = np.zeros((columns, pixels, _pitch(c)), np.int8)
    laid[: gemm.n, :, :c] = rows.reshape(gemm.n, c, pixels).transpose(0, 2, 1)
    w8 = t.constant(kernel.inputs[1], laid.reshape(columns, depth), "rows of int8", "int8")
    ends = _sums(t, kernel, p, laid)
    sums = t.gpu.take(4 * gemm.m * columns)
    first, second = Matrix(gemm.m, depth), Matrix(columns, depth, transposed=True)
    asked = Product(first, second, gemm.m, columns, 1, 1.0, False, False, "int8", False)
    work, words = t.products.run(asked, x, w8, 0, sums)
    t.do(both(work, _end_of_sums(t, p, sums, ends, kernel, (gemm.m, gemm.n, 1))))
    t.told(kernel, words)
    t.gpu.give(sums)


def _largest(t: Pass, kernel: Kernel, _: str) -> None:
    p = kernel.params
    assert isinstance(p, Pool)
    x, _sizes = _eight(t, kernel.inputs[0])
    pixels, pitch = p.out_h * p.out_w, _pitch(p.c)
    y, items = _new_eight(t, kernel.output, p.n, p.c, pixels), p.n * pixels * (pitch // 4)
    numbers = (
        pitch, p.h, p.w, p.out_h, p.out_w, p.kh, p.kw, p.stride_h, p.stride_w, p.pad_top, p.pad_left,
        p.dilation_h, p.dilation_w,
    )  # fmt: skip
    given = (at(x), at(y), np.int32(items), *map(np.int32, numbers))
    t.do(t.gpu.launch("largest_of_eight", given, items))


def _pitch(channels: int) -> int:
    """Channels of a pixel of int8: a word where they are few, else whole vectors."""
    return 4 if channels <= 4 else -(-channels // 16) * 16


_of_floats = HANDLERS[Pool]


def _pool(t: Pass, kernel: Kernel, other: str) -> None:
    handler = _largest if kernel.params.dtype == "int8" else _of_floats
    handler(t, kernel, other)


HANDLERS.update({Quantize: _quantize, QConv: _qconv, QGemm: _qgemm, Pool: _pool})
