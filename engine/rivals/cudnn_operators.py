"""Each operator of floats as a step of a pass: cuDNN graphs for convolutions, cuBLASLt for products, a small
kernel for the rest (cudnn_steps.cu); what is not taken is refused with the reason."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from engine.ops import Kernel
from engine.ops._base import Refused, contiguous_strides
from engine.passes import Program
from engine.rivals import cudnn_library
from engine.rivals.cublaslt import Matrix, Product
from engine.rivals.cudnn_library import Convolution, Plan, laid_out
from engine.rivals.cudnn_pass import FEW, Pass, Way, Work, activation_number, all_of, at, both, bound
from kernels.ops import Params
from kernels.ops.binary import Binary
from kernels.ops.concat import Concat
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.lrn import Lrn
from kernels.ops.multiply_add import MultiplyAdd
from kernels.ops.pad import Pad
from kernels.ops.pool import POOL_KINDS, Pool
from kernels.ops.reduce import Reduce
from kernels.ops.softmax import Softmax
from kernels.ops.transpose import Transpose
from kernels.ops.unary import Unary

# The places of these names are the numbers that cudnn_steps.cu knows them by.
UNARY = ("identity", "relu", "tanh", "sigmoid", "clip", "leaky_relu", "hard_sigmoid", "hard_swish", "elu",
         "gelu", "gelu_tanh", "swish")  # fmt: skip
BINARY = ("add", "sub", "mul", "div", "pow", "max", "min")
REDUCE = ("mean", "sum", "max")
MOST_AXES = 6
MOST_GROUPS = 4  # which are also computed as one, and one by one
MOST_ITEMS = 2**31 - 1

Handler = Callable[[Pass, Kernel, str], None]
"""Puts a step down: the pass, the kernel, and of a convolution the tensor that is added to it ("": none)."""

HANDLERS: dict[type[Params], Handler] = {}


def _of(*records: type[Params]) -> Callable[[Handler], Handler]:
    def keep(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(records, handler))
        return handler

    return keep


def check(made: Program, kernel: Kernel) -> None:
    """Raise Refused for what of an operator of floats is not taken; needs no library."""
    p = kernel.params
    known = {Unary: UNARY, Binary: BINARY, Reduce: REDUCE, Pool: POOL_KINDS}.get(type(p))
    if known is not None and p.kind not in known:  # type: ignore[attr-defined]
        raise Refused(f"there is no {p.kind} here, but {', '.join(known)}")  # type: ignore[attr-defined]
    weights = kernel.inputs[1:] if isinstance(p, Conv) else kernel.inputs[2:] if isinstance(p, Gemm) else ()
    if any(name not in made.constants for name in weights):
        raise Refused("its weights or bias are no constants")
    if isinstance(p, Conv) and p.group > MOST_GROUPS and p.c > p.group and (p.c % 8 or p.m % 8):
        raise Refused(f"its {p.group} groups of {p.c} channels and {p.m} maps do not fill 16 bytes")
    if isinstance(p, Conv) and p.depthwise and p.m != p.c and p.c % 8 and p.group > MOST_GROUPS:
        raise Refused(f"its {p.c} channels, each with several maps, do not fill 16 bytes")
    if isinstance(p, Gemm) and p.bias and (p.bias_stride_m or p.bias_stride_n not in (0, 1)):
        raise Refused("its bias is no row, which cuBLASLt adds alone")
    if isinstance(p, Pad) and any(size > 0 for size in (*p.begin, *p.end)):
        raise Refused("it adds elements, and they are only cut away here")
    axes = len(p.walks()[0] if isinstance(p, Transpose) else p.shape if isinstance(p, Pad) else ())
    if axes > MOST_AXES:
        raise Refused(f"it has {axes} axes, and up to {MOST_AXES} are taken")
    if isinstance(p, Gemm) and kernel.inputs[0] in made.constants:
        raise Refused("its first matrix is a constant")
    shape = made.specs[kernel.output].shape
    if isinstance(p, Binary | MultiplyAdd):
        if len(shape) > MOST_AXES:
            raise Refused(f"it has {len(shape)} axes, and up to {MOST_AXES} are taken")
        if math.prod(shape) > MOST_ITEMS // 8:
            raise Refused(f"it has {math.prod(shape):,} elements, and up to {MOST_ITEMS // 8:,} are taken")
        if all(name in made.constants for name in kernel.inputs):
            raise Refused("all that it reads is constant")


@_of(Conv)
def _conv(t: Pass, kernel: Kernel, other: str) -> None:
    """As one graph with what follows it, or bare and with a kernel for that; of an input of few channels in
    each of the ways to lay it."""
    p = kernel.params
    assert isinstance(p, Conv)
    z = t.image(other, p.n, p.m, p.out_h * p.out_w) if other else 0
    unlaid = t.unlaid(kernel.inputs[0], p.c, p.h * p.w) if p.group == 1 else None
    x = 0 if unlaid else t.image(kernel.inputs[0], p.n, p.c, p.h * p.w)
    y = t.new_image(kernel.output, p.n, p.m, p.out_h * p.out_w)
    if unlaid is None:
        ways = list(_convolutions(t, kernel, t.pitch(p.c), (x, z, y), cudnn_library.MOST_SECONDS))
    else:
        ways = _of_few(t, kernel, unlaid, z, y)
    layout = "innermost" if t.nhwc else "as ONNX has them"
    t.choose(kernel, ways, f"{p.words} in {t.held} with channels {layout}")


def _of_few(t: Pass, kernel: Kernel, unlaid: tuple[int, str], z: int, y: int) -> list[Way]:
    """The ways over an input of few channels: as many a pixel as it has, four or a vector of them; and where
    the window makes steps, squares of pixels as one, which has many."""
    p, (source, kind) = kernel.params, unlaid
    assert isinstance(p, Conv)
    seconds, ways, taken = cudnn_library.MOST_SECONDS / 4, list[Way](), list[int]()

    def laid(name: str, nbytes: int, items: int, *numbers: int) -> tuple[int, Work]:
        taken.append(t.gpu.take(nbytes * t.itemsize))
        given = (at(source), at(taken[-1]), *map(np.int32, (items, *numbers)))
        work = t.gpu.launch(f"{name}_of_{kind}", given, items)
        t.gpu.put(work)
        t.gpu.synchronize()
        return taken[-1], work

    def keep(found: Iterator[Way], work: Work, words: str) -> None:
        elapsed = t.gpu.time_ns(work)
        for way in found:
            ways.append(Way(elapsed + way.elapsed_ns, f"{way.words}, {words}", both(work, way.work)))

    pixels = p.n * p.h * p.w
    for c in sorted({p.c, FEW, t.chunk}):
        x, work = laid("few", pixels * c, pixels, p.c, p.h * p.w, c)
        keep(_convolutions(t, kernel, c, (x, z, y), seconds), work, f"{c} channels a pixel")
    side = p.stride_h
    if side == p.stride_w and 1 < side < min(p.kh, p.kw) and p.dilation_h == p.dilation_w == 1:
        conv, filters = _deep(t, kernel, side)
        items = conv.n * conv.h * conv.w * (conv.c // t.chunk)
        numbers = (p.c, p.h, p.w, conv.h, conv.w, p.pad_top, p.pad_left, side, conv.c)
        x, work = laid("deep", items * t.chunk, items, *numbers)
        words = f"{side}×{side} pixels as one"
        keep(_ways(t, kernel, conv, filters, (x, z, y), seconds), work, words)
    for place in taken:  # each is read by this step alone
        t.gpu.give(place)
    return ways


def _deep(t: Pass, kernel: Kernel, side: int) -> tuple[Conv, np.ndarray]:
    """A convolution whose window makes steps of `side`, over squares of so many pixels, of which it steps
    over one at a time; and its filters."""
    p = kernel.params
    assert isinstance(p, Conv)
    kh, kw = -(-p.kh // side), -(-p.kw // side)
    weight = np.zeros((p.m, p.c, kh * side, kw * side), np.float32)
    weight[:, :, : p.kh, : p.kw] = _filters(t, kernel)
    squares = weight.reshape(p.m, p.c, kh, side, kw, side).transpose(0, 3, 5, 1, 2, 4)
    c = p.c * side * side
    laid = np.zeros((t.pitch(p.m), t.pitch(c), kh, kw), np.float32)
    laid[: p.m, :c] = squares.reshape(p.m, c, kh, kw)
    stepped = replace(
        p, c=t.pitch(c), m=t.pitch(p.m), h=p.out_h + kh - 1, w=p.out_w + kw - 1, kh=kh, kw=kw,
        stride_h=1, stride_w=1, pad_top=0, pad_left=0, pad_bottom=0, pad_right=0, bias=True,
    )  # fmt: skip
    return stepped, laid


def _convolutions(
    t: Pass, kernel: Kernel, c: int, places: tuple[int, int, int], seconds: float
) -> Iterator[Way]:
    """The ways over an image of c channels a pixel; places: its address, that of what is added (0: nothing)
    and of the output. Few groups are also computed as one, with zeros between them, and one by one: cuDNN's
    engines for groups are not its best."""
    p = kernel.params
    assert isinstance(p, Conv)
    weight = _filters(t, kernel)
    m, depth, maps = t.pitch(p.m), p.c // p.group, p.m // p.group
    whole = replace(p, c=c, m=m, group=c if p.depthwise else p.group, bias=True)
    divides = p.group == 1 or (p.depthwise and p.m == p.c) or (c, m) == (p.c, p.m)
    if divides:  # channels that fill up vectors are in no group
        laid = np.zeros((m, c // whole.group, p.kh, p.kw), np.float32)
        laid[: p.m, :depth] = weight
        yield from _ways(t, kernel, whole, laid, places, seconds)
    if not 1 < p.group <= MOST_GROUPS:
        return
    if not t.strict:
        wide = np.zeros((m, c, p.kh, p.kw), np.float32)
        for group in range(p.group):
            rows = slice(group * maps, (group + 1) * maps)
            wide[rows, group * depth : (group + 1) * depth] = weight[rows]
        for way in _ways(t, kernel, replace(whole, group=1), wide, places, seconds):
            yield replace(way, words=f"{way.words}, its groups as one")
    if divides and depth % t.chunk == 0 and maps % t.chunk == 0:
        one = replace(whole, group=1, c=depth, m=maps)
        for way in _ways(t, kernel, one, laid, places, seconds, p.group):
            yield replace(way, words=f"{way.words}, a group at a time")


def _ways(
    t: Pass,
    kernel: Kernel,
    conv: Conv,
    laid: np.ndarray,
    places: tuple[int, int, int],
    seconds: float,
    parts: int = 1,
) -> Iterator[Way]:
    """The ways to compute a convolution, as one graph and bare; parts: as so many of its kind, over channels
    and maps one behind the other. laid: all filters."""
    p, (x, z, y) = kernel.params, places
    assert isinstance(p, Conv)
    names = kernel.inputs[1:]
    shift = np.zeros(len(laid), np.float32)
    if len(names) > 1:
        shift[: p.m] = np.asarray(t.made.constants[names[1]], np.float32)
    w = t.constant(names[0], laid_out(laid, t.held, t.nhwc), "filters")
    key = names[1] if len(names) > 1 else ""  # which no tensor is called
    lies = (conv.c * parts, conv.m * parts) if parts > 1 else (0, 0)
    asked = Convolution(conv, True, bool(z), t.held, t.nhwc, t.strict, lies)
    bare = replace(asked, conv=replace(conv, bias=False, activation=None), finished=False, summed=False)
    step_x = conv.c * (1 if t.nhwc else p.h * p.w)
    step_y = conv.m * (1 if t.nhwc else p.out_h * p.out_w)
    steps = (step_x, laid[0].size * conv.m, conv.m, step_y, step_y)

    def over(plan: Plan, *first: int) -> Work:
        works = []
        for part in range(parts):
            moved = (step * part * t.itemsize for step in steps)
            works.append(bound(plan, *(place and place + by for place, by in zip(first, moved, strict=True))))
        return works[0] if parts == 1 else all_of(works)

    ends = bool(key or z or p.activation)
    if ends:
        b = t.constant(key, shift, "shift")
        for plan in t.convolutions.plans(asked, (x, w, b, z, y), seconds):
            words = f"{plan.words}, with what follows it"
            yield Way(parts * plan.elapsed_ns, words, over(plan, x, w, b, z, y))
    for plan in t.convolutions.plans(bare, (x, w, 0, 0, y), seconds):
        work = over(plan, x, w, 0, 0, y)
        if not ends:
            yield Way(parts * plan.elapsed_ns, plan.words, work)
            continue
        shifts = t.constant(key, shift, "shift in float32", "float32") if key else 0
        end = _finish(t, y, 0, shifts, z, y, p.n, p.m, p.out_h * p.out_w, p.activation)
        t.gpu.put(end)
        t.gpu.synchronize()
        elapsed = parts * plan.elapsed_ns + t.gpu.time_ns(end)
        yield Way(elapsed, f"{plan.words}, and a kernel for what follows it", both(work, end))


def _filters(t: Pass, kernel: Kernel) -> np.ndarray:
    """The weights of a convolution, with two axes of an image."""
    p = kernel.params
    assert isinstance(p, Conv)
    weight = np.asarray(t.made.constants[kernel.inputs[1]], np.float32)
    return weight.reshape(p.m, p.c // p.group, p.kh, p.kw)


def _finish(
    t: Pass,
    x: int,
    factor: int,
    shift: int,
    other: int,
    y: int,
    n: int,
    c: int,
    pixels: int,
    activation: str | None,
) -> Work:
    items = n * pixels * (t.pitch(c) // t.chunk)
    places = map(at, (x, factor, shift, other, y))
    sizes = np.int32(items), np.int32(c), np.int32(t.pitch(c)), np.int32(pixels)
    return t.gpu.launch("finish", (*places, *sizes, np.int32(activation_number(activation))), items)


@_of(Gemm)
def _gemm(t: Pass, kernel: Kernel, _: str) -> None:
    p = kernel.params
    assert isinstance(p, Gemm)
    left, right = kernel.inputs[:2]
    constant = t.made.constants.get(right)
    it = t.tensor(left)
    n, c, pixels = it.sizes
    k = p.k
    if constant is not None and not p.stride_b:
        matrix = np.asarray(constant, np.float32).reshape((p.n, p.k) if p.trans_b else (p.k, p.n))
        matrix = matrix if p.trans_b else matrix.T
        flat = it.image and not it.dense and not p.trans_a and p.batch == 1 and n == p.m
        if flat and c * pixels == p.k:
            # Rows of pixels are read as they lie: the weights are put in that order, with zeros between.
            laid = np.zeros((p.n, pixels, t.pitch(c)), np.float32)
            laid[:, :, :c] = matrix.reshape(p.n, c, pixels).transpose(0, 2, 1)
            k, matrix = pixels * t.pitch(c), laid.reshape(p.n, -1)
            a, how = it.image, "rows of pixels"
        else:
            a, how = t.dense(left), "rows"
        b, second = t.constant(right, matrix, how), Matrix(p.n, k, transposed=True)
    else:
        a, b = t.dense(left), t.dense(right)
        rows, columns = (p.n, p.k) if p.trans_b else (p.k, p.n)
        second = Matrix(rows, columns, p.trans_b, p.stride_b)
    rows, columns = (k, p.m) if p.trans_a else (p.m, k)
    first = Matrix(rows, columns, p.trans_a, p.stride_a)
    shift = 0
    if p.bias:
        given = np.asarray(t.made.constants[kernel.inputs[2]], np.float32).reshape(-1) * p.beta
        row = np.ascontiguousarray(np.broadcast_to(given, p.n))
        shift = t.constant(kernel.inputs[2], row, f"row times {p.beta}")
    y = t.new_dense(kernel.output)
    relu = p.activation == "relu"
    asked = Product(first, second, p.m, p.n, p.batch, p.alpha, p.bias, relu, t.held, t.tf32)
    work, words = t.products.run(asked, a, b, shift, y)
    t.do(work)
    t.told(kernel, words)
    if p.activation and not relu:
        kind = p.activation if p.activation in UNARY else "clip"  # relu6
        t.do(_one(t, y, y, p.batch * p.m * p.n, kind, 0.0, 6.0))


def _one(t: Pass, x: int, y: int, size: int, kind: str, alpha: float, beta: float) -> Work:
    numbers = np.int32(UNARY.index(kind)), np.float32(alpha), np.float32(beta)
    return t.gpu.launch("one", (at(x), at(y), np.int32(size), *numbers), size)


@_of(Pool)
def _pool(t: Pass, kernel: Kernel, _: str) -> None:
    p = kernel.params
    assert isinstance(p, Pool)
    x = t.image(kernel.inputs[0], p.n, p.c, p.h * p.w)
    y = t.new_image(kernel.output, p.n, p.c, p.out_h * p.out_w)
    items = p.n * p.out_h * p.out_w * (t.pitch(p.c) // t.chunk)
    sizes = (
        p.c, t.pitch(p.c), POOL_KINDS.index(p.kind), p.h, p.w, p.out_h, p.out_w, p.kh, p.kw,
        p.stride_h, p.stride_w, p.pad_top, p.pad_left, p.pad_bottom, p.pad_right, p.dilation_h,
        p.dilation_w, p.count_include_pad, activation_number(p.activation),
    )  # fmt: skip
    t.do(t.gpu.launch("pool", (at(x), at(y), np.int32(items), *map(np.int32, sizes)), items))


@_of(Lrn)
def _lrn(t: Pass, kernel: Kernel, _: str) -> None:
    p = kernel.params
    assert isinstance(p, Lrn)
    x = t.image(kernel.inputs[0], p.n, p.c, p.inner)
    y = t.new_image(kernel.output, p.n, p.c, p.inner)
    items = p.n * p.inner * (t.pitch(p.c) // t.chunk)
    sizes = np.int32(items), np.int32(p.c), np.int32(t.pitch(p.c)), np.int32(p.inner)
    factors = map(np.float32, (p.scale, p.beta, p.bias))
    t.do(t.gpu.launch("lrn", (at(x), at(y), *sizes, *factors), items, size=p.size))


@_of(Unary)
def _unary(t: Pass, kernel: Kernel, _: str) -> None:
    p = kernel.params
    assert isinstance(p, Unary)
    x, y, size = t.like(kernel.inputs[0], kernel.output)
    t.do(_one(t, x, y, size, p.kind, p.alpha, p.beta))


@_of(Binary)
def _binary(t: Pass, kernel: Kernel, _: str) -> None:
    p = kernel.params
    assert isinstance(p, Binary)
    a, b = kernel.inputs
    _two(t, a, b, kernel.output, p.kind, p.activation)


def _two(t: Pass, a: str, b: str, output: str, kind: str, activation: str | None) -> None:
    shape = t.made.specs[output].shape
    images = [name for name in (a, b) if _lies_as_image(t, name, shape)]
    if t.nhwc and images and all(_walks(t, name, shape) for name in (a, b)):
        _two_images(t, a, b, output, shape, kind, activation)
        return
    places = [t.dense(name) for name in (a, b)]
    walks = [_walk(t.made.specs[name].shape, shape) for name in (a, b)]
    y = t.new_dense(output)
    table = _table(shape, *walks)
    _walked(t, places, y, math.prod(shape), table, kind, activation, table[MOST_AXES - 1])


def _lies_as_image(t: Pass, name: str, shape: tuple[int, ...]) -> bool:
    it = t.tensors.get(name)
    if it is None or it.dense or not it.image or len(shape) < 3:
        return False
    return it.sizes == (shape[0], shape[1], math.prod(shape[2:]))


def _walks(t: Pass, name: str, shape: tuple[int, ...]) -> bool:
    """Whether an operand goes along an image of that shape: it is one, or has one pixel, or is a number a
    channel."""
    own = t.made.specs[name].shape
    own = (1,) * (len(shape) - len(own)) + own
    if name in t.made.constants:
        return math.prod(own) in (1, own[1])
    return own == shape or (own[:2] == shape[:2] and math.prod(own[2:]) == 1)


def _two_images(
    t: Pass, a: str, b: str, output: str, shape: tuple[int, ...], kind: str, activation: str | None
) -> None:
    n, c, pixels = shape[0], shape[1], math.prod(shape[2:])
    pitch, places, walks = t.pitch(c), [], []
    for name in (a, b):
        constant = t.made.constants.get(name)
        if constant is not None:
            row = np.zeros(pitch, np.float32)
            row[:c] = np.asarray(constant, np.float32).reshape(-1)
            places.append(t.constant(name, row, f"row of {pitch}"))
            walks.append((0, 0, 1))
        elif math.prod(t.made.specs[name].shape) == n * c * pixels:
            places.append(t.image(name, n, c, pixels))
            walks.append((pixels * pitch, pitch, 1))
        else:
            places.append(t.image(name, n, c, 1))
            walks.append((pitch, 0, 1))
    y = t.new_image(output, n, c, pixels)
    table = _table((n, pixels, pitch), *walks)
    _walked(t, places, y, n * pixels * pitch, table, kind, activation, c)


def _walked(
    t: Pass,
    places: Sequence[int],
    y: int,
    size: int,
    table: Sequence[int],
    kind: str,
    activation: str | None,
    count: int,
) -> None:
    lies_at = t.constant("", np.array(table, np.int32), f"walk {table}", "int32")
    numbers = (
        np.int32(size),
        at(lies_at),
        np.int32(BINARY.index(kind)),
        np.int32(activation_number(activation)),
    )
    given = (*map(at, places), at(y), *numbers, np.int32(count))
    t.do(t.gpu.launch("two", given, size))


@_of(MultiplyAdd)
def _multiply_add(t: Pass, kernel: Kernel, _: str) -> None:
    """As a normalisation ends: by channels in one kernel, else the product and the sum in two."""
    p = kernel.params
    assert isinstance(p, MultiplyAdd)
    a, b, c = kernel.inputs
    shape = t.made.specs[kernel.output].shape
    if len(shape) > 2 and t.made.specs[a].shape == shape and all(
        name in t.made.constants and _walks(t, name, shape) for name in (b, c)
    ):  # fmt: skip
        n, channels, pixels = shape[0], shape[1], math.prod(shape[2:])
        rows = []
        for name in (b, c):
            row = np.broadcast_to(np.asarray(t.made.constants[name]).reshape(-1), channels)
            rows.append(t.constant(name, row, "row in float32", "float32"))
        x = t.image(a, n, channels, pixels)
        y = t.new_image(kernel.output, n, channels, pixels)
        t.do(_finish(t, x, rows[0], rows[1], 0, y, n, channels, pixels, p.activation))
        return
    product = f"{kernel.output} before its sum"
    while product in t.tensors:
        product += "'"
    specs = dict(t.made.specs)
    specs[product] = specs[kernel.output]
    t.made = replace(t.made, specs=specs)
    _two(t, a, b, product, "mul", None)
    _two(t, product, c, kernel.output, "add", p.activation)
    held = t.tensors.pop(product)
    for address in {held.dense, held.image} - {0}:
        t.gpu.give(address)


@_of(Concat)
def _concat(t: Pass, kernel: Kernel, _: str) -> None:
    p = kernel.params
    assert isinstance(p, Concat)
    shape = t.made.specs[kernel.output].shape
    first = t.made.specs[kernel.inputs[0]].shape
    axis = next(iter(i for i in range(len(shape)) if shape[i] != first[i]), 0)
    if t.nhwc and axis == 1 and len(shape) > 2 and len(kernel.inputs) > 1:
        n, c, pixels = shape[0], shape[1], math.prod(shape[2:])
        parts = [(t.made.specs[name].shape[1], name) for name in kernel.inputs]
        places = [t.image(name, n, count, pixels) for count, name in parts]
        y, pitch = t.new_image(kernel.output, n, c, pixels), t.pitch(c) * t.itemsize
        if t.pitch(c) != c:
            t.do(t.gpu.clear(y, n * pixels * pitch))
        start = y
        for (count, _name), place in zip(parts, places, strict=True):
            width = count * t.itemsize
            own = t.pitch(count) * t.itemsize
            t.do(t.gpu.copy_rows(start, pitch, place, own, width, n * pixels))
            start += width
        return
    places = [t.dense(name) for name in kernel.inputs]
    start = t.new_dense(kernel.output)
    for width, place in zip(p.widths, places, strict=True):
        nbytes = width * t.itemsize
        row = p.row * t.itemsize
        t.do(t.gpu.copy_rows(start, row, place, nbytes, nbytes, p.outer))
        start += nbytes


@_of(Softmax)
def _softmax(t: Pass, kernel: Kernel, _: str) -> None:
    p = kernel.params
    assert isinstance(p, Softmax)
    x, y = t.dense(kernel.inputs[0]), t.new_dense(kernel.output)
    sizes = np.int32(p.axis), np.int32(p.inner), np.int32(p.log)
    t.do(t.gpu.launch("softmax", (at(x), at(y), *sizes), blocks=p.outer * p.inner))


@_of(Reduce)
def _reduce(t: Pass, kernel: Kernel, _: str) -> None:
    p = kernel.params
    assert isinstance(p, Reduce)
    x, y = t.dense(kernel.inputs[0]), t.new_dense(kernel.output)
    sizes = np.int32(p.axis), np.int32(p.inner), np.int32(REDUCE.index(p.kind))
    t.do(t.gpu.launch("reduced", (at(x), at(y), *sizes), blocks=p.outer * p.inner))


@_of(Transpose)
def _transpose(t: Pass, kernel: Kernel, _: str) -> None:
    p = kernel.params
    assert isinstance(p, Transpose)
    dims, walk = p.walks()
    _moved(t, kernel, dims, walk, 0)


@_of(Pad)
def _cut(t: Pass, kernel: Kernel, _: str) -> None:
    p = kernel.params
    assert isinstance(p, Pad)
    walk = contiguous_strides(p.shape)
    first = sum(-before * step for before, step in zip(p.begin, walk, strict=True))
    _moved(t, kernel, p.out_shape, walk, first)


def _moved(t: Pass, kernel: Kernel, dims: Sequence[int], walk: Sequence[int], first: int) -> None:
    """Elements of a tensor in another order, from `first` on: added to zero, as a sum walks."""
    x = t.dense(kernel.inputs[0]) + first * t.itemsize
    zero = t.constant("", np.zeros(1, np.float32), "zero")
    y = t.new_dense(kernel.output)
    table = _table(dims, walk, (0,) * len(dims))
    _walked(t, (x, zero), y, math.prod(dims), table, "add", None, table[MOST_AXES - 1])


def _walk(own: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The steps of a dense operand along each axis of what it is broadcast to."""
    steps = zip(own, contiguous_strides(own), strict=True)
    walk = tuple(step if size > 1 else 0 for size, step in steps)
    return (0,) * (len(shape) - len(own)) + walk


def _table(shape: Sequence[int], *walks: Sequence[int]) -> tuple[int, ...]:
    """Sizes and steps, filled up in front to MOST_AXES."""
    before = MOST_AXES - len(shape)
    rows = [(1,) * before + tuple(shape)] + [(0,) * before + tuple(walk) for walk in walks]
    return tuple(value for row in rows for value in row)
