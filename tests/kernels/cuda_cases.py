"""What a CUDA rung is tried on: parameters, inputs and the float64 answer, drawn from a fixed seed.

The answers come from elsewhere than the kernels: onnx.reference in float64 for convolutions, ONNX Runtime's
CPU provider for pools and LRN (onnx.reference is wrong for LRN with N ≠ C and for some ceil_mode shapes),
NumPy for the rest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from bench.measure.answers.nodes import nodes as nodes_of
from kernels import launch
from kernels.ops import ACTIVATIONS, EXPONENTS, FLOATS8, GELUS, ITEMSIZE, Params, sized
from kernels.ops.binary import BINARY_KINDS
from kernels.ops.cast import TOWARDS, Cast
from kernels.ops.conv import Conv
from kernels.ops.conv3d import Conv3d
from kernels.ops.conv_pool import ConvPool
from kernels.ops.conv_transpose import ConvTranspose
from kernels.ops.gemm import Gemm
from kernels.ops.lrn import Lrn
from kernels.ops.lrn_pool import LrnPool
from kernels.ops.pad import PAD_MODES, Pad
from kernels.ops.pool import Pool
from kernels.ops.pool_index import PoolIndex
from kernels.ops.resize import COORDINATES, RESIZE_MODES, ROUNDINGS, Resize
from kernels.ops.softmax import Softmax
from kernels.ops.transpose import Transpose
from kernels.ops.unary import UNARY_KINDS
from kernels.precision import EXACT, PRECISIONS
from kernels.registry import Rung
from tests.kernels import elementwise, quantized_cases, row_cases

Array = np.ndarray
OPSET = 19
ACTIVATIONS = (None, *ACTIVATIONS)
FEW = 4


@dataclass(frozen=True)
class Case:
    """Inputs in the params' order (None: an absent bias) and the float64 answer, exact where nothing is
    computed. terms: the norm that the answer would have if all its terms were positive, where it is known:
    what rounded factors get wrong is a share of that."""

    params: Params
    inputs: tuple[Array | None, ...]
    expected: Array
    terms: float = 0.0

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.params.out_dtype)


def cases(op: str, seed: int = 0) -> Iterator[Case]:
    """Every case of an operator: corner cases by hand, then shapes drawn at random."""
    rng = np.random.default_rng([seed, *op.encode()])
    if op in quantized_cases.DRAWN:
        yield from (Case(*case) for case in quantized_cases.cases(op, rng))
    elif op in _MAKERS:
        yield from _MAKERS[op](rng)
    else:
        yield from (Case(*case) for case in row_cases.MAKERS[op](rng))


def takes(rung: Rung, params: Params, capability: tuple[int, int] | None = None) -> bool:
    """Whether a rung can be run on these params, by its header and by its launch shape."""
    return rung.refusal(params, capability) is None and launch.refusal(params, rung) is None


def differs(actual: Array, case: Case, precision: str = "fp32") -> str:
    """What is wrong with an answer, or "": relative L2 error within the bound of the precision (1e-5 in fp32)
    and no element off by more than ten times that of the largest; exact where nothing is computed."""
    expected = case.expected
    if actual.shape != expected.shape:
        return f"shape {actual.shape}, not {expected.shape}"
    if not case.params.flops or case.dtype.kind != "f":
        wrong = ~((actual == expected) | ((actual != actual) & (expected != expected)))
        return f"{wrong.sum()} of {wrong.size} elements differ" if wrong.any() else ""
    if not np.isfinite(actual).all():
        return f"{(~np.isfinite(actual)).sum()} of {actual.size} elements are not finite"
    error = actual.astype(np.float64) - expected
    norm = float(np.linalg.norm(expected)) or 1.0
    relative = float(np.linalg.norm(error)) / norm
    worst = float(np.abs(error).max(initial=0.0)) / (float(np.abs(expected).max(initial=0.0)) or 1.0)
    bound = PRECISIONS[precision].bound
    # Below fp32 the factors are rounded: a sum that cancels keeps little of its own, and where there are but
    # a few sums they do not make up for each other.
    if precision not in EXACT and actual.size < FEW:
        bound *= max(20.0, case.terms / norm)
    return (
        f"relative error {relative:.1e}, worst {worst:.1e}" if relative > bound or worst > 10 * bound else ""
    )


def activate(v: Array, kind: str | None) -> Array:
    if kind == "relu":
        return np.maximum(v, 0)
    if kind == "relu6":
        return np.clip(v, 0, 6)
    if kind == "tanh":
        return np.tanh(v)
    if kind == "gelu":
        return v * (1 + np.vectorize(math.erf)(v / math.sqrt(2))) / 2
    if kind == "gelu_tanh":
        return v * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))) / 2
    return 1 / (1 + np.exp(-v)) if kind == "sigmoid" else v


def _one_node(op_type: str, inputs: dict[str, Array], **attributes: object) -> onnx.ModelProto:
    return _of_nodes([helper.make_node(op_type, list(inputs), ["y"], **attributes)], inputs)


def _of_nodes(nodes: list[onnx.NodeProto], inputs: dict[str, Array]) -> onnx.ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(next(iter(inputs.values())).dtype)
    given = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for k, v in inputs.items()
    ]
    graph = helper.make_graph(nodes, "one", given, [helper.make_tensor_value_info("y", kind, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


def _onnxruntime(op_type: str, x: Array, **attributes: object) -> Array:
    return _run(_one_node(op_type, {"x": x}, **attributes), {"x": x})


def _run(model: onnx.ModelProto, feeds: dict[str, Array]) -> Array:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0].astype(np.float64)


def _normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def _pick(rng: np.random.Generator, *values: int) -> int:
    return int(rng.choice(values))


# --- convolution ------------------------------------------------------------------------------------------


def _conv(rng: np.random.Generator) -> Iterator[Case]:
    plain = Conv(1, 1, 28, 28, 6, 5, 5, 24, 24, bias=True, activation="tanh")  # LeNet-5's first
    yield conv_case(rng, plain)
    yield conv_case(rng, replace(plain, n=7, pad_top=2, pad_left=2, pad_bottom=2, pad_right=2, m=50))
    yield conv_case(rng, Conv(3, 6, 14, 14, 16, 5, 5, 0, 0, bias=True, activation="relu"))
    # AlexNet's first three, fewer pixels
    yield conv_case(rng, Conv(2, 3, 59, 59, 96, 11, 11, 0, 0, 4, 4, bias=True, activation="relu"))
    yield conv_case(rng, Conv(2, 96, 13, 13, 256, 5, 5, 0, 0, 1, 1, 2, 2, 2, 2, group=2, bias=True))
    yield conv_case(rng, Conv(1, 256, 6, 6, 384, 3, 3, 0, 0, 1, 1, 1, 1, 1, 1, bias=True))
    yield conv_case(rng, Conv(1, 24, 9, 9, 24, 3, 3, 0, 0, 1, 1, 1, 1, 1, 1, group=24))  # depthwise
    # Depthwise: the plain ones, planes that blocks share, tiles of a plane, strides, several maps a channel
    yield conv_case(rng, Conv(2, 19, 7, 7, 19, 3, 3, 0, 0, 1, 1, 1, 1, 1, 1, group=19, bias=True))
    yield conv_case(rng, Conv(1, 3, 40, 31, 3, 3, 3, 0, 0, 2, 2, 0, 0, 1, 1, group=3, activation="relu"))
    yield conv_case(rng, Conv(3, 5, 9, 11, 10, 5, 5, 0, 0, 2, 2, 2, 2, 2, 2, group=5, bias=True,
                               activation="tanh"))  # fmt: skip
    yield conv_case(rng, Conv(1, 2, 7, 900, 2, 3, 5, 0, 0, 1, 3, 1, 2, 0, 1, 2, 1, group=2, bias=True))
    yield conv_case(rng, Conv(80, 96, 14, 14, 96, 3, 3, 0, 0, 1, 1, 1, 1, 1, 1, group=96, bias=True))
    yield conv_case(rng, Conv(9, 70, 56, 57, 70, 3, 3, 0, 0, 2, 2, 1, 1, 1, 1, group=70, bias=True))
    yield conv_case(rng, Conv(5, 70, 5, 3, 65, 1, 1, 0, 0))  # one step past the tiles
    yield conv_case(rng, Conv(1, 1, 1, 1, 1, 1, 1, 0, 0, bias=True, activation="sigmoid"))
    # Long sums of few outputs: taps that no tile divides, groups, one tap a channel with a stride
    yield conv_case(rng, Conv(1, 75, 6, 5, 17, 3, 3, 0, 0, 1, 1, 1, 1, 1, 1, bias=True, activation="relu"))
    yield conv_case(rng, Conv(2, 128, 5, 5, 6, 3, 2, 0, 0, 1, 1, 0, 1, 1, 0, group=2, bias=True))
    yield conv_case(rng, Conv(1, 516, 9, 9, 33, 1, 1, 0, 0, 2, 2, activation="tanh"))
    for _ in range(24):
        group = _pick(rng, 1, 1, 1, 2, 3)
        kh, kw = _pick(rng, 1, 2, 3, 5), _pick(rng, 1, 2, 3, 7)
        dilation_h, dilation_w = _pick(rng, 1, 1, 2), _pick(rng, 1, 1, 3)
        drawn = Conv(
            n=_pick(rng, 1, 2, 5),
            c=group * _pick(rng, 1, 3, 8, 17),
            h=(kh - 1) * dilation_h + _pick(rng, 1, 2, 9, 20),
            w=(kw - 1) * dilation_w + _pick(rng, 1, 4, 11, 19),
            m=group * _pick(rng, 1, 7, 16, 33, 64),
            kh=kh,
            kw=kw,
            out_h=0,
            out_w=0,
            stride_h=_pick(rng, 1, 1, 2, 3),
            stride_w=_pick(rng, 1, 1, 2, 4),
            pad_top=_pick(rng, 0, 1, 2),
            pad_left=_pick(rng, 0, 1, 3),
            pad_bottom=_pick(rng, 0, 1, 2),
            pad_right=_pick(rng, 0, 1, 2),
            dilation_h=dilation_h,
            dilation_w=dilation_w,
            group=group,
            bias=bool(rng.integers(2)),
            activation=ACTIVATIONS[rng.integers(len(ACTIVATIONS))],
        )
        yield conv_case(rng, drawn)
    # Windows that move by one pixel, as transforms of tiles want them: tiles that end within the image
    yield conv_case(rng, Conv(5, 40, 15, 14, 70, 3, 3, 0, 0, 1, 1, 1, 1, 1, 1, group=2, bias=True))
    for _ in range(12):
        group, kh = _pick(rng, 1, 1, 2, 3), _pick(rng, 3, 3, 3, 5, 8, 11, 16)
        drawn = Conv(
            n=_pick(rng, 1, 3),
            c=group * _pick(rng, 1, 4, 9),
            h=kh + _pick(rng, 0, 1, 6, 17),
            w=kh + _pick(rng, 0, 3, 12, 25),
            m=group * _pick(rng, 1, 6, 33),
            kh=kh,
            kw=3 if kh == 3 else _pick(rng, 1, 4, 7),
            out_h=0,
            out_w=0,
            pad_top=_pick(rng, 0, 1, 2),
            pad_left=_pick(rng, 0, 1),
            pad_bottom=_pick(rng, 0, 1, 3),
            pad_right=_pick(rng, 0, 2),
            group=group,
            bias=bool(rng.integers(2)),
            activation=ACTIVATIONS[rng.integers(len(ACTIVATIONS))],
        )
        yield conv_case(rng, drawn)


def conv_case(rng: np.random.Generator, q: Conv) -> Case:
    out_h = (q.h + q.pad_top + q.pad_bottom - (q.kh - 1) * q.dilation_h - 1) // q.stride_h + 1
    out_w = (q.w + q.pad_left + q.pad_right - (q.kw - 1) * q.dilation_w - 1) // q.stride_w + 1
    q = replace(q, out_h=out_h, out_w=out_w)
    x = _normal(rng, q.n, q.c, q.h, q.w)
    weight = _normal(rng, q.m, q.c // q.group, q.kh, q.kw)
    bias = _normal(rng, q.m) if q.bias else None
    given = {"x": x.astype(np.float64), "w": weight.astype(np.float64)}
    if bias is not None:
        given["b"] = bias.astype(np.float64)
    model = _one_node(
        "Conv",
        given,
        strides=[q.stride_h, q.stride_w],
        pads=[q.pad_top, q.pad_left, q.pad_bottom, q.pad_right],
        dilations=[q.dilation_h, q.dilation_w],
        group=q.group,
    )
    y = ReferenceEvaluator(model).run(None, given)[0]
    return Case(q, (x, weight, bias), activate(y, q.activation))


# --- matrix product ---------------------------------------------------------------------------------------


def _gemm(rng: np.random.Generator) -> Iterator[Case]:
    yield gemm_case(rng, Gemm(1, 4096, 300, trans_b=True, bias=True, activation="relu"))
    for m in range(1, 9):
        yield gemm_case(rng, Gemm(m, 84, 120, trans_b=True, bias=True, activation="tanh"))
    yield gemm_case(rng, Gemm(3, 10, 33, trans_b=True, bias=True))  # k is no multiple of four
    yield gemm_case(rng, Gemm(257, 10, 84, trans_b=True, bias=True))
    yield gemm_case(rng, Gemm(130, 129, 67))
    # Long sums of few outputs
    yield gemm_case(rng, Gemm(16, 128, 1800, trans_b=True, bias=True, activation="relu"))
    yield gemm_case(rng, Gemm(9, 33, 1001, trans_b=True, bias=True, alpha=0.5, beta=2.0, activation="tanh"))
    yield gemm_case(rng, Gemm(17, 20, 640, trans_a=True, batch=2, stride_a=640 * 17, stride_b=640 * 20))
    yield gemm_case(rng, Gemm(2, 5, 2052, trans_b=True, bias=True))
    yield gemm_case(rng, Gemm(21, 19, 30, trans_b=True, bias=True, activation="sigmoid"))
    for m, n, kind in ((1, 136, "gelu"), (20, 136, "gelu_tanh"), (70, 40, "gelu")):
        yield gemm_case(rng, Gemm(m, n, 64, bias=True, activation=kind))
    yield gemm_case(rng, Gemm(40, 68, 324, bias=True, beta=0.5, activation="tanh"))  # two pieces of the sum
    yield gemm_case(rng, Gemm(1, 1, 1))
    a, b = rng.standard_normal((2, 5, 70)), rng.standard_normal((2, 70, 9))
    yield Case(Gemm(5, 9, 70, batch=2, stride_a=350, stride_b=630, dtype="float64"), (a, b, None), a @ b)
    yield gemm_case(rng, Gemm(5, 6, 7, batch=70_000, stride_a=35, stride_b=0))  # more than grid.z holds
    for _ in range(24):
        m, n, k = (_pick(rng, 1, 2, 9, 16, 31, 64, 100) for _ in range(3))
        batch = _pick(rng, 1, 1, 3)
        shared = bool(rng.integers(2))
        bias_m, bias_n = [(0, 1), (1, 0), (n, 1), (0, 0)][rng.integers(4)]
        drawn = Gemm(
            m=m,
            n=n,
            k=k,
            trans_a=bool(rng.integers(2)),
            trans_b=bool(rng.integers(2)),
            alpha=float(rng.choice([1.0, 0.5])),
            beta=float(rng.choice([1.0, -2.0])),
            bias=bool(rng.integers(2)),
            bias_stride_m=bias_m,
            bias_stride_n=bias_n,
            batch=batch,
            stride_a=m * k if batch > 1 else 0,
            stride_b=k * n if batch > 1 and not shared else 0,
            activation=(*ACTIVATIONS, *GELUS)[rng.integers(len(ACTIVATIONS) + len(GELUS))],
        )
        yield gemm_case(rng, drawn)


def gemm_case(rng: np.random.Generator, q: Gemm) -> Case:
    a = _normal(rng, q.batch if q.stride_a else 1, *((q.k, q.m) if q.trans_a else (q.m, q.k)))
    b = _normal(rng, q.batch if q.stride_b else 1, *((q.n, q.k) if q.trans_b else (q.k, q.n)))
    left = (a.swapaxes(1, 2) if q.trans_a else a).astype(np.float64)
    right = (b.swapaxes(1, 2) if q.trans_b else b).astype(np.float64)
    y = q.alpha * np.broadcast_to(left @ right, (q.batch, q.m, q.n))
    terms = float(np.linalg.norm(q.alpha * np.broadcast_to(abs(left) @ abs(right), (q.batch, q.m, q.n))))
    bias = None
    if q.bias:
        bias = _normal(rng, (q.m - 1) * q.bias_stride_m + (q.n - 1) * q.bias_stride_n + 1)
        rows, columns = np.arange(q.m)[:, None], np.arange(q.n)
        y = y + q.beta * bias[rows * q.bias_stride_m + columns * q.bias_stride_n].astype(np.float64)
    return Case(q, (a, b, bias), activate(y, q.activation), terms)


# --- pools, LRN, softmax ----------------------------------------------------------------------------------


def _pool(rng: np.random.Generator) -> Iterator[Case]:
    yield _pool_case(rng, Pool("max", 2, 96, 55, 55, 3, 3, 0, 0, 2, 2), False)
    yield _pool_case(rng, Pool("average", 3, 6, 24, 24, 2, 2, 0, 0, 2, 2), False)
    yield _pool_case(rng, Pool("average", 2, 5, 7, 9, 7, 9, 0, 0), False)  # global
    # Windows side by side: rows of two and four pixels in one access, rows and images that end in between
    for activation in (None, "tanh", "sigmoid"):
        yield _pool_case(rng, Pool("max", 3, 6, 28, 28, 2, 2, 0, 0, 2, 2, activation=activation), False)
    yield _pool_case(rng, Pool("max", 2, 3, 13, 20, 4, 4, 0, 0, 4, 4, activation="relu"), False)
    yield _pool_case(rng, Pool("average", 2, 3, 13, 20, 3, 4, 0, 0, 2, 4), True)
    yield _pool_case(rng, Pool("max", 65, 96, 13, 12, 3, 2, 0, 0, 2, 2), False)  # whole runs of outputs
    yield _pool_case(rng, Pool("max", 1, 2, 40, 40, 9, 9, 0, 0, 1, 1, 4, 4, 4, 4), False)
    for dtype, told in (("int8", {}), ("uint8", {"c": 33, "pad_top": 1, "pad_left": 2, "stride_w": 3})):
        q = sized(replace(Pool("max", 2, 5, 13, 14, 3, 3, 0, 0, 2, 2, dtype=dtype), **told))
        held = np.iinfo(dtype)
        x = rng.integers(held.min, held.max + 1, q.input_shapes[0]).astype(dtype)
        case = _pool_case(rng, replace(q, dtype="float32"), False, x.astype(np.float32))
        yield Case(q, (x,), case.expected.astype(dtype))
    for _ in range(24):
        kind = str(rng.choice(["max", "average"]))
        kh, kw = _pick(rng, 1, 2, 3), _pick(rng, 2, 3, 4)
        drawn = Pool(
            kind=kind,
            n=_pick(rng, 1, 3),
            c=_pick(rng, 1, 5),
            h=_pick(rng, 8, 13, 21),
            w=_pick(rng, 10, 15, 20),
            kh=kh,
            kw=kw,
            out_h=0,
            out_w=0,
            stride_h=_pick(rng, 1, 2, 3),
            stride_w=_pick(rng, 1, 2, 3),
            pad_top=_pick(rng, *range(kh)),
            pad_left=_pick(rng, *range(kw)),
            pad_bottom=_pick(rng, *range(kh)),
            pad_right=_pick(rng, *range(kw)),
            dilation_h=_pick(rng, 1, 1, 2),
            dilation_w=_pick(rng, 1, 1, 2),
            count_include_pad=kind == "average" and bool(rng.integers(2)),
            activation=ACTIVATIONS[rng.integers(len(ACTIVATIONS))],
        )
        yield _pool_case(rng, drawn, bool(rng.integers(2)))


def _pool_case(rng: np.random.Generator, q: Pool, ceil_mode: bool, x: Array | None = None) -> Case:
    x = _normal(rng, q.n, q.c, q.h, q.w) if x is None else x
    y = _pooled(q, x, ceil_mode)
    return Case(replace(q, out_h=y.shape[2], out_w=y.shape[3]), (x,), activate(y, q.activation))


def _pooled(q: Pool, x: Array, ceil_mode: bool) -> Array:
    """ONNX Runtime's pool of x, float64, before any activation."""
    attributes: dict[str, object] = {
        "kernel_shape": [q.kh, q.kw],
        "strides": [q.stride_h, q.stride_w],
        "pads": [q.pad_top, q.pad_left, q.pad_bottom, q.pad_right],
        "dilations": [q.dilation_h, q.dilation_w],
        "ceil_mode": int(ceil_mode),
    }
    if q.kind == "average":
        attributes["count_include_pad"] = int(q.count_include_pad)
    return _onnxruntime("MaxPool" if q.kind == "max" else "AveragePool", x, **attributes)


def _lrn(rng: np.random.Generator) -> Iterator[Case]:
    for n, c, h, w, size in (
        (2, 96, 9, 7, 5),
        (1, 7, 3, 3, 3),
        (3, 4, 1, 5, 4),
        (2, 3, 4, 4, 9),
        (1, 1, 2, 2, 1),
        (2, 21, 6, 6, 5),  # quads of pixels
        (3, 5, 2, 10, 3),
    ):
        alpha, bias = float(rng.choice([1e-4, 0.5])), float(rng.choice([1.0, 2.0]))
        beta = 0.6 if size == 3 else 0.75
        x = 3 * _normal(rng, n, c, h, w)
        q = Lrn(n, c, h * w, size, alpha, beta, bias)
        # ONNX Runtime takes odd sizes alone: an even one is checked against the formula of the specification.
        if size % 2:
            y = _onnxruntime("LRN", x, size=size, alpha=alpha, beta=beta, bias=bias)
        else:
            y = normalised(q, x)
        yield Case(q, (x.reshape(n, c, h * w),), y.reshape(n, c, h * w))


def normalised(q: Lrn, x: Array) -> Array:
    """LRN of x (n, c, h, w) in float64 by the formula of the specification."""
    wide = x.astype(np.float64)
    squares = np.pad(wide**2, ((0, 0), ((q.size - 1) // 2, q.size // 2), (0, 0), (0, 0)))
    sums = sum(squares[:, i : i + q.c] for i in range(q.size))
    return wide / (q.bias + q.alpha / q.size * sums) ** q.beta


def _lrn_pool(rng: np.random.Generator) -> Iterator[Case]:
    plain = LrnPool(5, "max", 2, 96, 55, 55, 3, 3, 0, 0, 2, 2, alpha=5e-4, bias=2.0)  # AlexNet's first
    yield _lrn_pool_case(rng, plain, False)
    yield _lrn_pool_case(rng, replace(plain, n=3, c=20, h=27, w=27, alpha=0.5), False)
    yield _lrn_pool_case(rng, replace(plain, n=70, c=50, h=27, w=27), False)  # whole bands
    yield _lrn_pool_case(rng, replace(plain, n=1, c=6, h=9, w=300), False)  # several tiles a row
    yield _lrn_pool_case(rng, replace(plain, n=5, c=33, h=8, w=8, kh=8, kw=8), False)  # global
    for _ in range(20):
        kind = str(rng.choice(["max", "average"]))
        kh, kw = _pick(rng, 1, 2, 3), _pick(rng, 2, 3, 4)
        drawn = LrnPool(
            size=_pick(rng, 1, 3, 4, 5, 9),
            kind=kind,
            n=_pick(rng, 1, 3),
            c=_pick(rng, 1, 5, 18),
            h=_pick(rng, 8, 13, 21),
            w=_pick(rng, 10, 15, 20),
            kh=kh,
            kw=kw,
            out_h=0,
            out_w=0,
            stride_h=_pick(rng, 1, 2, 3),
            stride_w=_pick(rng, 1, 2, 3, 5),
            pad_top=_pick(rng, *range(kh)),
            pad_left=_pick(rng, *range(kw)),
            pad_bottom=_pick(rng, *range(kh)),
            pad_right=_pick(rng, *range(kw)),
            dilation_h=_pick(rng, 1, 1, 1, 2),
            dilation_w=1,
            count_include_pad=kind == "average" and bool(rng.integers(2)),
            alpha=float(rng.choice([1e-4, 0.5])),
            beta=float(rng.choice([0.75, 0.75, 0.6])),
            bias=float(rng.choice([1.0, 2.0])),
        )
        yield _lrn_pool_case(rng, drawn, bool(rng.integers(2)))

    for q in _between_bytes():
        x = rng.integers(np.iinfo(q.dtype).min, np.iinfo(q.dtype).max + 1, q.input_shapes[0]).astype(q.dtype)
        real = (x.astype(np.float64) - q.x_zero) * np.float64(np.float32(q.x_scale))
        wide = replace(q.lrn, alpha=float(np.float32(q.alpha)), beta=float(np.float32(q.beta)))
        pooled = _pooled(q.pool, normalised(wide, real), False)
        y = np.rint(pooled / np.float64(np.float32(q.out_scale))) + q.out_zero
        held = np.iinfo(q.to)
        yield Case(q, (x,), np.clip(y, held.min, held.max).astype(q.to))


def _between_bytes() -> Iterator[LrnPool]:
    """Steps of y that are near to half-way often enough; channels that no chunk divides."""
    told = LrnPool(5, "max", 2, 20, 13, 15, 3, 3, 6, 7, 2, 2, alpha=0.5, dtype="int8", to="uint8")
    told = replace(told, x_scale=0.04, x_zero=-100, out_scale=0.01, out_zero=3)
    yield told
    few = replace(told, n=1, c=18, h=9, w=9, out_h=4, out_w=4)
    yield replace(few, size=9, beta=0.6, dtype="uint8", to="int8", x_zero=7, out_zero=-5)
    padded = replace(told, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, stride_h=1, stride_w=3)
    yield replace(padded, n=3, c=16, size=4, out_h=13, out_w=5, alpha=1e-4, out_scale=0.04)
    yield replace(told, n=1, c=3, size=1, x_zero=0, out_scale=1e-3, bias=2.0)


def _lrn_pool_case(rng: np.random.Generator, q: LrnPool, ceil_mode: bool) -> Case:
    x = 3 * _normal(rng, q.n, q.c, q.h, q.w)
    # What is pooled is rounded to float32 first, which is far below what is tolerated.
    y = _pooled(q.pool, normalised(q.lrn, x).astype(np.float32), ceil_mode)
    return Case(replace(q, out_h=y.shape[2], out_w=y.shape[3]), (x,), y)


def _conv_pool(rng: np.random.Generator) -> Iterator[Case]:
    lenet = Conv(1, 1, 28, 28, 6, 5, 5, 0, 0, bias=True, activation="tanh")
    second = replace(lenet, n=3, c=6, h=12, w=12, m=16)
    halves = Pool("average", 0, 0, 0, 0, 2, 2, 0, 0, 2, 2)
    largest, thirds = replace(halves, kind="max"), Pool("max", 0, 0, 0, 0, 3, 3, 0, 0, 3, 3)
    overlapping = replace(thirds, stride_h=2, stride_w=2)
    postponed = replace(largest, activation="tanh")
    ece408 = replace(lenet, n=70, m=50, activation="relu")
    for conv, pool, ceil_mode in (
        (lenet, halves, False),
        (second, halves, False),
        (replace(lenet, n=3, h=32, w=32), halves, False),
        (replace(lenet, n=70, activation=None), postponed, False),
        (replace(second, activation=None), postponed, False),
        (ece408, largest, False),
        (replace(ece408, n=1), largest, False),
        (replace(ece408, n=2, c=50, h=12, w=12), largest, False),
        (replace(second, n=3, c=8, h=14, w=14, m=16, pad_top=2, pad_left=2, pad_bottom=2, pad_right=2,
                 activation="relu"), thirds, False),  # mnist-8's second
        (replace(second, m=10, group=2), largest, False),
        (replace(second, stride_h=2, stride_w=2), halves, False),
        (replace(second, stride_h=1, stride_w=3, activation="relu"), largest, True),
        (second, overlapping, False),
        (replace(second, n=70), overlapping, True),
        (second, replace(overlapping, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1), False),
        (second, replace(halves, pad_top=1, pad_right=1, count_include_pad=True, activation="relu"), False),
        (second, replace(halves, pad_bottom=1, pad_left=1), False),
        (replace(second, h=11, w=11), largest, False),  # of 7×7, a row and a column are left over
        (replace(second, h=11, w=11), largest, True),
        (replace(second, bias=False, activation=None), largest, False),
        (replace(second, activation="sigmoid"), replace(thirds, kh=8, kw=8), False),  # global
        (replace(second, m=3), replace(largest, dilation_h=3, dilation_w=2), False),
    ):  # fmt: skip
        yield _conv_pool_case(rng, conv, pool, ceil_mode)
    for _ in range(16):
        group = _pick(rng, 1, 1, 2)
        kh, kw, dilation_h, dilation_w = (
            _pick(rng, *sizes) for sizes in ((1, 3, 5), (2, 3, 7), *[(1, 1, 2)] * 2)
        )
        conv = Conv(
            n=_pick(rng, 1, 2, 5),
            c=group * _pick(rng, 1, 3, 8),
            h=(kh - 1) * dilation_h + _pick(rng, 9, 12, 20),
            w=(kw - 1) * dilation_w + _pick(rng, 9, 11, 19),
            m=group * _pick(rng, 1, 7, 16),
            kh=kh,
            kw=kw,
            out_h=0,
            out_w=0,
            stride_h=_pick(rng, 1, 1, 2),
            stride_w=_pick(rng, 1, 1, 2),
            pad_top=_pick(rng, 0, 1, 2),
            pad_left=_pick(rng, 0, 1, 2),
            pad_bottom=_pick(rng, 0, 1, 2),
            pad_right=_pick(rng, 0, 1, 2),
            dilation_h=dilation_h,
            dilation_w=dilation_w,
            group=group,
            bias=bool(rng.integers(2)),
            activation=ACTIVATIONS[rng.integers(len(ACTIVATIONS))],
        )
        kind = str(rng.choice(["max", "average"]))
        kh, kw = _pick(rng, 1, 2, 3), _pick(rng, 2, 3)
        activation = ACTIVATIONS[rng.integers(len(ACTIVATIONS))]
        beside = replace(halves, kind=kind, kh=kh, kw=kw, stride_h=kh, stride_w=kw, activation=activation)
        yield _conv_pool_case(rng, conv, beside, False)
        pool = replace(
            beside,
            stride_h=_pick(rng, 1, 2, 3),
            stride_w=_pick(rng, 1, 2, 3),
            pad_top=_pick(rng, *range(kh)),
            pad_left=_pick(rng, *range(kw)),
            pad_bottom=_pick(rng, *range(kh)),
            pad_right=_pick(rng, *range(kw)),
            count_include_pad=kind == "average" and bool(rng.integers(2)),
        )
        yield _conv_pool_case(rng, conv, pool, bool(rng.integers(2)))


def _conv_pool_case(rng: np.random.Generator, conv: Conv, pool: Pool, ceil_mode: bool) -> Case:
    """`pool`: its window alone is looked at."""
    below = conv_case(rng, conv)
    made = below.params
    assert isinstance(made, Conv)
    over = replace(pool, n=made.n, c=made.m, h=made.out_h, w=made.out_w)
    # What is pooled is rounded to float32 first, which is far below what is tolerated.
    y = _pooled(over, below.expected.astype(np.float32), ceil_mode)
    over = replace(over, out_h=y.shape[2], out_w=y.shape[3])
    return Case(ConvPool(made, over), below.inputs, activate(y, over.activation))


def _conv_transpose(rng: np.random.Generator) -> Iterator[Case]:
    for number in range(12):
        group = _pick(rng, 1, 2, 3)
        drawn = ConvTranspose(
            n=_pick(rng, 1, 2),
            c=group * _pick(rng, 1, 3),
            h=_pick(rng, 1, 4, 6),
            w=_pick(rng, 2, 5),
            m=group * _pick(rng, 1, 4),
            kh=_pick(rng, 1, 2, 3),
            kw=_pick(rng, 2, 4),
            out_h=0,
            out_w=0,
            stride_h=_pick(rng, 1, 2, 3),
            stride_w=_pick(rng, 1, 2),
            pad_left=_pick(rng, 0, 1),
            dilation_h=_pick(rng, 1, 2),
            group=group,
            bias=number % 2 == 0,
        ).sized()
        if number % 3 == 0:  # room for more
            drawn = replace(drawn, out_w=drawn.out_w + drawn.stride_w - 1)
        given = [_normal(rng, *shape) for shape in drawn.input_shapes]
        names = ["x", "w", "b"][: len(given)]
        (node,), _ = nodes_of(drawn, names, "y")
        model = _of_nodes([node], dict(zip(names, given, strict=True)))
        y = _run(model, dict(zip(names, given, strict=True)))
        yield Case(drawn, (*given, None)[:3], y)


def _conv3d(rng: np.random.Generator) -> Iterator[Case]:
    for number in range(10):
        group = _pick(rng, 1, 1, 2)
        drawn = Conv3d(
            n=_pick(rng, 1, 2),
            c=group * _pick(rng, 1, 3),
            size=(_pick(rng, 3, 5), _pick(rng, 4, 6), _pick(rng, 4, 7)),
            m=group * _pick(rng, 1, 3),
            kernel=(_pick(rng, 1, 2, 3), _pick(rng, 1, 3), _pick(rng, 2, 3)),
            out=(0, 0, 0),
            stride=(_pick(rng, 1, 2), _pick(rng, 1, 2), _pick(rng, 1, 3)),
            pad=(_pick(rng, 0, 1), _pick(rng, 0, 1), _pick(rng, 0, 2)),
            dilation=(1, _pick(rng, 1, 2), 1),
            group=group,
            bias=number % 2 == 0,
        ).sized(behind=(1, 1, 0))
        given = [_normal(rng, *shape) for shape in drawn.input_shapes]
        feeds = dict(zip(["x", "w", "b"], given, strict=False))
        made, _ = nodes_of(drawn, list(feeds), "y")
        yield Case(drawn, (*given, None)[:3], _run(_of_nodes(made, feeds), feeds))


def _pool_index(rng: np.random.Generator) -> Iterator[Case]:
    pools = (case for case in _pool(rng) if case.params.dtype == "float32")
    largest = [case for case in pools if isinstance(case.params, Pool) and case.params.kind == "max"]
    for number, case in enumerate(c for c in largest if c.params.outputs < 5000):
        assert isinstance(case.params, Pool)
        p = PoolIndex(replace(case.params, activation=None), by_columns=number % 2 == 1)
        x = np.round(case.inputs[0], 1)  # some are equal
        (node,), _ = nodes_of(p, ["x"], "y")
        model = _of_nodes([node], {"x": x})
        model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
        yield Case(p, (x,), _run(model, {"x": x}).astype(np.int64))


def _softmax(rng: np.random.Generator) -> Iterator[Case]:
    few = ((1, 10, 1), (1000, 10, 1), (3, 1000, 1), (2, 33, 5), (4, 1, 3), (1, 5000, 2), (1, 20_000, 1))
    for outer, axis, inner in (*few, (2, 100, 40), (3, 40, 8), (2, 3000, 17), (2, 700, 33)):
        for log in (False, True):
            x = 20 * _normal(rng, outer, axis, inner)
            wide = x.astype(np.float64) - x.max(axis=1, keepdims=True)
            y = wide - np.log(np.exp(wide).sum(axis=1, keepdims=True))
            yield Case(Softmax(outer, axis, inner, log), (x,), y if log else np.exp(y))


# --- element by element -----------------------------------------------------------------------------------


def _unary(rng: np.random.Generator) -> Iterator[Case]:
    for number, kind in enumerate(UNARY_KINDS):
        for size in (1, 3, 4, 1023, 100_003) if number < 4 else (1, 1023):
            yield _answered(elementwise.unary(kind, size))
    yield from map(_answered, elementwise.functions())


def _binary(rng: np.random.Generator) -> Iterator[Case]:
    for i, (shape, a, b) in enumerate(elementwise.BROADCASTS):
        for j, kind in enumerate(BINARY_KINDS[:10]):
            activation = ACTIVATIONS[(i + j) % len(ACTIVATIONS)]
            if j < 4 or i % 6 == j % 6:
                yield _answered(elementwise.binary(kind, shape, a, b, activation=activation))
    yield from map(_answered, elementwise.arithmetic())


def _other(op: str) -> Iterator[Case]:
    yield from (_answered(p) for p in elementwise.others() if p.op == op)


def _answered(p: Params) -> Case:
    given = elementwise.inputs(p)
    return Case(p, given, elementwise.answer(p, given))


def _transpose(rng: np.random.Generator) -> Iterator[Case]:
    for shape, perm in (
        ((6,), (0,)),
        ((33, 65), (1, 0)),
        ((2, 3, 5, 7), (0, 2, 3, 1)),
        ((2, 3, 5, 7), (0, 3, 1, 2)),
        ((3, 1, 4), (2, 1, 0)),
        ((4, 40, 3, 50), (0, 3, 2, 1)),
        ((3, 9, 33, 8), (2, 0, 1, 3)),
        ((9, 2, 70), (2, 1, 0)),
        ((2, 3, 4, 2, 3, 4), (5, 3, 1, 4, 2, 0)),
        ((2, 1, 3, 1, 2, 1, 3, 1), (7, 6, 5, 4, 3, 2, 1, 0)),
    ):
        x = _normal(rng, *shape)
        yield Case(Transpose(shape, perm), (x,), np.ascontiguousarray(x.transpose(perm)))
    for dtype in ("float64", "float16", "int64", "uint8", "bool"):
        x = np.abs(4 * _normal(rng, 3, 5)).astype(dtype)
        yield Case(Transpose((3, 5), (1, 0), dtype), (x,), np.ascontiguousarray(x.T))


def _pad(rng: np.random.Generator) -> Iterator[Case]:
    for shape, begin, end in (
        ((7,), (2,), (3,)),
        ((2, 3, 5, 6), (0, 0, 2, 1), (0, 0, 1, 3)),
        ((2, 3, 5, 6), (0, 0, -1, 2), (0, 0, 1, -2)),
        ((3, 4, 5), (1, 0, 0), (1, 0, 0)),
        ((3, 2, 3, 2, 3, 4), (1, 0, 1, 0, 1, 0), (0, 1, 0, 1, 0, 1)),
        ((2, 1, 2, 3, 2, 3, 4), (0, 0, 1, 0, 1, 0, 1), (0, 0, 0, 1, 0, 1, 0)),
    ):
        for mode in PAD_MODES:
            x = _normal(rng, *shape)
            kept = x[
                tuple(slice(max(0, -b), d + min(0, e)) for d, b, e in zip(shape, begin, end, strict=True))
            ]
            widths = [(max(0, b), max(0, e)) for b, e in zip(begin, end, strict=True)]
            if min(begin + end) < 0 and mode != "constant":
                continue  # ONNX leaves open whether what is cut away is still reflected
            options = {"constant_values": np.float32(0.25)} if mode == "constant" else {}
            yield Case(Pad(shape, begin, end, mode, 0.25), (x,), np.pad(kept, widths, mode=mode, **options))
    for dtype in ("float64", "float16", "int32", "int64", "uint8", "int8", "bool"):
        x = np.abs(4 * _normal(rng, 3, 4)).astype(dtype)
        filled = np.pad(x, ((1, 0), (2, 1)), constant_values=np.array(1, dtype))
        yield Case(Pad((3, 4), (1, 2), (0, 1), value=1.0, dtype=dtype), (x,), filled)


def _cast(rng: np.random.Generator) -> Iterator[Case]:
    names = list(ITEMSIZE)
    for source in names:
        for target in names:
            x = np.array([0, 1, 2, 3, 7, 100, 127, 5, 0, 64], np.int64).repeat(31)
            if "float" in source:
                x = x + (rng.uniform(-0.5, 0.5, x.size) if "float" in target else 0.25)
            yield _cast_case(x.astype(source), target)
    # Every number that eight bits are, what lies on and beside the middle of two, and what is beyond all.
    for narrow in (*FLOATS8, EXPONENTS, "float4_e2m1fn"):
        codes = np.arange(16 if "4_" in narrow else 256, dtype=np.uint8).view(narrow)
        yield _cast_case(codes, "float32")
        held = np.sort(codes.astype(np.float32))
        held = held[np.isfinite(held)]
        middles = (held[1:] + held[:-1]) / 2
        edges = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e6, -1e6, 1e-7, -1e-7, 1e38], np.float32)
        beside = [np.nextafter(middles, np.float32(to)) for to in (-np.inf, np.inf)]
        x = np.concatenate([held, middles, *beside, edges])
        for saturate in (False, True) if narrow != "float4_e2m1fn" else (False,):
            for towards in TOWARDS if narrow == EXPONENTS else TOWARDS[:1]:
                yield _cast_case(x, narrow, saturate, towards)
    halves = np.arange(1 << 16, dtype=np.uint16)[::7].view("bfloat16")
    yield _cast_case(halves, "float32")
    middles = halves.astype(np.float32).view(np.uint32) | np.uint32(0x8000)
    beside = np.concatenate([middles - np.uint32(1), middles, middles + np.uint32(1)])
    yield _cast_case(beside.view(np.float32), "bfloat16")


def _cast_case(x: Array, to: str, saturate: bool = False, towards: str = TOWARDS[0]) -> Case:
    with np.errstate(all="ignore"):
        if to == EXPONENTS:
            right = onnx.numpy_helper.to_float8e8m0(x.astype(np.float32), saturate, towards)
        elif saturate:
            right = onnx.numpy_helper.saturate_cast(x, np.dtype(to))
        else:  # what NumPy has not converts to NumPy's types alone
            known = hasattr(np, x.dtype.name) or hasattr(np, to)
            right = (x if known else x.astype(np.float32)).astype(to)
    return Case(Cast(x.size, x.dtype.name, to, saturate, towards), (x,), right)


def _resize(rng: np.random.Generator) -> Iterator[Case]:
    for number, (mode, coordinates) in enumerate(itertools.product(RESIZE_MODES, COORDINATES)):
        h, w, out_h, out_w = (_pick(rng, 3, 4, 7, 10) for _ in range(4))
        drawn = Resize(
            outer=_pick(rng, 1, 3),
            h=h,
            w=w,
            out_h=out_h,
            out_w=out_w,
            scale_h=out_h / h,
            scale_w=out_w / w,
            inner=_pick(rng, 1, 1, 3),
            mode=mode,
            coordinates=coordinates,
            rounding=ROUNDINGS[number % len(ROUNDINGS)],
            exclude_outside=mode == "cubic" and bool(rng.integers(2)),
            value=1.5,
        )
        if coordinates == "tf_crop_and_resize":
            drawn = replace(drawn, start_h=-0.25, end_h=0.75, start_w=0.25, end_w=1.25)
        x = _normal(rng, *drawn.input_shapes[0])
        nodes, held = nodes_of(drawn, ["x"], "y")
        given = helper.make_graph(
            nodes,
            "one",
            [helper.make_tensor_value_info("x", onnx.TensorProto.DOUBLE, x.shape)],
            [helper.make_tensor_value_info("y", onnx.TensorProto.DOUBLE, None)],
            [onnx.numpy_helper.from_array(array, name) for name, array in held.items()],
        )
        model = helper.make_model(given, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
        yield Case(drawn, (x,), ReferenceEvaluator(model).run(None, {"x": x.astype(np.float64)})[0])


_MAKERS = {
    "conv": _conv,
    "gemm": _gemm,
    "pool": _pool,
    "lrn": _lrn,
    "lrn_pool": _lrn_pool,
    "conv_pool": _conv_pool,
    "pool_index": _pool_index,
    "conv3d": _conv3d,
    "conv_transpose": _conv_transpose,
    "softmax": _softmax,
    "unary": _unary,
    "binary": _binary,
    **{op: lambda rng, op=op: _other(op) for op in ("compare", "where", "multiply_add", "concat")},
    "transpose": _transpose,
    "pad": _pad,
    "cast": _cast,
    "resize": _resize,
}
