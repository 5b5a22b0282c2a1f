"""Every CPU rung against an oracle that is not ours, between sentinels, on poisoned memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

from bench.measure.answers import one_node
from kernels import numba_support, registry
from kernels.cpu import load
from kernels.errors import KernelError
from kernels.ops import ACTIVATIONS, OPS, Params, sized
from kernels.ops._quantized import EIGHT_BITS, Quantized
from kernels.ops.attention import Attention
from kernels.ops.binary import Binary
from kernels.ops.compare import COMPARE_KINDS, Compare
from kernels.ops.conv import Conv
from kernels.ops.conv3d import Conv3d
from kernels.ops.conv_pool import ConvPool
from kernels.ops.conv_transpose import ConvTranspose
from kernels.ops.gemm import Gemm
from kernels.ops.lrn import Lrn
from kernels.ops.lrn_pool import LrnPool
from kernels.ops.pad import Pad
from kernels.ops.pool import Pool
from kernels.ops.pool_index import PoolIndex
from kernels.ops.qconv import QConv
from kernels.ops.qgemm import QGemm
from kernels.ops.softmax import Softmax
from kernels.ops.transpose import Transpose
from kernels.ops.unary import Unary
from kernels.registry import Rung
from tests.kernels import drawn_sequences, elementwise, quantized_cases
from tests.kernels.drawn import DRAWN, ELEMENTWISE, inputs_for, model, output_shape

pytestmark = pytest.mark.slow

RUNGS = [
    rung
    for op in OPS
    for rung in registry.rungs("cpu", op)
    if not (rung.compiled and numba_support.unavailable())
]
GUARD = 64  # elements before and after every buffer that must stay as they are
every_rung = pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.label)


def guarded(count: int, dtype: str, poison: float) -> tuple[np.ndarray, np.ndarray]:
    """(the whole buffer, its inner part): sentinels around, poison within."""
    whole = np.full(count + 2 * GUARD, 77, dtype)
    inner = whole[GUARD : GUARD + count]
    inner.fill(poison if inner.dtype.kind == "f" else 99)
    return whole, inner


def run(rung: Rung, p: Params, inputs: list[np.ndarray], weights: tuple[int, ...] = ()) -> np.ndarray:
    """The rung's output, and checks of what it must leave alone; `weights`: inputs that go through pack."""
    kernel = load(rung)
    scratch = kernel.workspace(p)
    assert scratch % 4 == 0
    dtype = p.out_dtype
    shape = output_shape(p)
    whole_output, output = guarded(int(np.prod(shape)), dtype, np.nan)
    whole_workspace, workspace = guarded(scratch // 4, "float32", np.nan)
    given_inputs = [array.copy() for array in inputs]
    packed = kernel.pack(p, [array if i in weights else None for i, array in enumerate(given_inputs)])
    packed = [array if pack is None else pack for array, pack in zip(given_inputs, packed, strict=True)]
    call = kernel.bind(p, packed, output.reshape(shape), workspace)
    with np.errstate(all="ignore"):
        call()
        first = output.copy()
        output.fill(np.nan if output.dtype.kind == "f" else 99)
        workspace.fill(np.nan)  # other steps use the same scratch in between
        call()
    for name, whole in {"output": whole_output, "workspace": whole_workspace}.items():
        edges = np.concatenate([whole[:GUARD], whole[-GUARD:]])
        assert (edges == np.full(1, 77, whole.dtype)).all(), f"wrote beyond its {name}"
    for before, after in zip(inputs, given_inputs, strict=True):
        np.testing.assert_array_equal(before, after, "wrote to an input")
    np.testing.assert_array_equal(first, output, "the second pass differs from the first")
    return output.reshape(shape)


def reference(p: Params, inputs: list[np.ndarray]) -> np.ndarray:
    """The answer in float64 (element types as they are for a cast)."""
    if isinstance(p, ELEMENTWISE):
        return elementwise.answer(p, tuple(inputs))
    feeds = {
        f"in{i}": array if p.op == "cast" or array.dtype.kind in "iu" else array.astype(np.float64)
        for i, array in enumerate(inputs)
    }
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(model(p)).run(None, feeds)[0]


def onnx_runtime(p: Params, inputs: list[np.ndarray], ceil_mode: bool = False) -> np.ndarray:
    """The answer in float32, where onnx.reference is known to be wrong."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    proto = model(p, TensorProto.FLOAT, ceil_mode).SerializeToString()
    session = onnxruntime.InferenceSession(proto, options, providers=["CPUExecutionProvider"])
    return session.run(None, {f"in{i}": array for i, array in enumerate(inputs)})[0]


def assert_close(got: np.ndarray, expected: np.ndarray) -> None:
    assert got.shape == expected.shape
    assert not np.isnan(got.astype(np.float64)).any(), "elements were never written"
    difference = got.astype(np.float64) - expected.astype(np.float64)
    # Inputs are about 1: a right sum in float32 is off by a few 1e-6 also where it cancels to nearly nothing.
    scale = np.linalg.norm(expected.astype(np.float64))
    assert np.linalg.norm(difference) <= 1e-5 * scale + 4e-6 * np.sqrt(difference.size)
    assert np.abs(difference).max(initial=0) <= 1e-3 * np.abs(expected).max(initial=0) + 1e-5


def oracle(p: Params, inputs: list[np.ndarray]) -> np.ndarray:
    if p.op in drawn_sequences.DRAWN:
        return one_node.answer(p, inputs)
    if isinstance(p, Quantized):
        return quantized_cases.answer(p, *inputs)
    if isinstance(p, Lrn):  # onnx.reference goes over N where it means C: right for C copies of one image
        copies = [np.broadcast_to(image, (p.c, *image.shape)) for image in inputs[0]]
        return np.stack([reference(replace(p, n=p.c), [images])[0] for images in copies])
    if isinstance(p, LrnPool):
        return onnx_runtime(p.pool, [oracle(p.lrn, inputs).astype(np.float32)])
    if isinstance(p, Pool) and p.dtype in EIGHT_BITS:
        return oracle(replace(p, dtype="float32"), [x.astype(np.float32) for x in inputs]).astype(p.dtype)
    if isinstance(p, Pool | PoolIndex | ConvPool | ConvTranspose | Conv3d):
        return onnx_runtime(p, inputs)  # onnx.reference miscounts uneven padding
    if isinstance(p, Pad) and min(*p.begin, *p.end, 0) < 0:
        return onnx_runtime(p, inputs)  # which onnx.reference refuses to cut
    return reference(p, inputs)


def fitted(p: Params, rung: Rung) -> Params:
    """The params with the activation that the rung needs; of a convolution also with the groups, padding and
    window, its image as much larger as that takes."""
    needs = rung.needs
    kept = needs.get("activation")
    if kept and (getattr(p, "activation", None) or "none") not in kept:
        p = replace(p, activation=None if kept[0] == "none" else kept[0])
    if not isinstance(p, Conv) or not needs.keys() & {
        *("kernel", "stride", "dilation", "group", "pad", "bias", "depthwise")
    }:
        return p
    stride, dilation = needs.get("stride", p.stride_h), needs.get("dilation", p.dilation_h)
    kh, kw = needs.get("kernel", p.kh), needs.get("kernel", p.kw)
    sides = ("pad_top", "pad_left", "pad_bottom", "pad_right")
    pads = {side: needs.get("pad", getattr(p, side)) for side in sides}
    h = (p.out_h - 1) * stride + (kh - 1) * dilation + 1 - pads["pad_top"] - pads["pad_bottom"]
    w = (p.out_w - 1) * stride + (kw - 1) * dilation + 1 - pads["pad_left"] - pads["pad_right"]
    axes = {"stride_h": stride, "stride_w": stride, "dilation_h": dilation, "dilation_w": dilation}
    group = needs.get("group", p.group)
    channels = {"c": p.c // p.group * group, "m": p.m // p.group * group, "group": group}
    if needs.get("depthwise"):
        channels = {"c": max(2, group), "m": p.m // p.group * max(2, group), "group": max(2, group)}
    return replace(p, h=h, w=w, kh=kh, kw=kw, bias=needs.get("bias", p.bias), **axes, **channels, **pads)


def skip_refused(rung: Rung, p: Params) -> None:
    """A rung is only run on shapes that match its needs."""
    if reason := rung.refusal(p):
        pytest.skip(reason)


@pytest.mark.sampled(6)
@every_rung
@given(data=st.data())
# Of a rung that takes few shapes most that are drawn are refused; one that takes none fails.
@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.filter_too_much])
def test_against_the_oracle(rung: Rung, data: st.DataObject) -> None:
    p = fitted(data.draw(DRAWN[rung.op]), rung)
    assume(rung.refusal(p) is None and min(getattr(p, "h", 1), getattr(p, "w", 1)) > 0)
    inputs = inputs_for(p, data.draw(st.integers(0, 5)))
    weights = data.draw(st.sampled_from([(), (1, 2)]))
    assert_close(run(rung, p, inputs, weights), oracle(p, inputs).reshape(output_shape(p)))


@every_rung
def test_every_kind_and_activation(rung: Rung) -> None:
    """The kinds and activations that a few random draws may miss, each once."""
    examples = {
        "conv": [Conv(2, 2, 5, 6, 3, 3, 2, 3, 5, bias=True, activation=a) for a in (None, *ACTIVATIONS)],
        "gemm": [Gemm(3, 4, 5, bias=True, activation=a) for a in (None, *ACTIVATIONS)],
        "pool": [
            Pool(kind, 2, 3, 5, 6, 2, 2, 2, 3, 2, 2, activation=a)
            for kind in ("max", "average")
            for a in (None, *ACTIVATIONS)
        ],
        "unary": elementwise.functions(),
        "binary": elementwise.arithmetic(),
        "compare": [Compare(kind, (3, 4), (4, 1), (0, 1)) for kind in COMPARE_KINDS],
        "softmax": [Softmax(3, 10, 1, log) for log in (False, True)],
    }
    for p in (fitted(p, rung) for p in examples.get(rung.op, [])):
        if rung.refusal(p):
            continue
        inputs = inputs_for(p, 3)
        assert_close(run(rung, p, inputs), reference(p, inputs).reshape(output_shape(p)))


@pytest.mark.parametrize("rung", registry.rungs("cpu", "lrn"), ids=lambda rung: rung.label)
def test_lrn_sums_over_channels_as_onnx_runtime_does(rung: Rung) -> None:
    p = Lrn(2, 7, 35, 5, alpha=0.3)  # N ≠ C
    skip_refused(rung, p)
    inputs = inputs_for(p)
    assert_close(run(rung, p, inputs), onnx_runtime(p, inputs))


@pytest.mark.parametrize("rung", registry.rungs("cpu", "pool"), ids=lambda rung: rung.label)
@pytest.mark.parametrize("kind", ["max", "average"])
@pytest.mark.parametrize("include", [False, True])
def test_windows_that_reach_beyond_the_padded_image(rung: Rung, kind: str, include: bool) -> None:
    """ceil_mode adds a last window that hangs over: it counts only what the padded image holds."""
    p = Pool(kind, 2, 3, 6, 8, 3, 3, 3, 4, stride_h=2, stride_w=2, pad_top=1, pad_left=1,
             count_include_pad=include and kind == "average")  # fmt: skip
    skip_refused(rung, p)
    inputs = inputs_for(p)
    assert_close(run(rung, p, inputs), onnx_runtime(p, inputs, ceil_mode=True))


@pytest.mark.parametrize("rung", registry.rungs("cpu", "conv"), ids=lambda rung: rung.label)
@pytest.mark.parametrize("group", [1, 4])
def test_a_convolution_too_large_for_one_block(rung: Rung, group: int) -> None:
    """Column matrices beyond the block's bytes: by image, by groups and by rows of the output."""
    p = fitted(Conv(2, 64, 57, 61, 8, 7, 7, 57, 61, 1, 1, 3, 3, 3, 3, group=group, bias=True), rung)
    skip_refused(rung, p)
    inputs = inputs_for(p)
    assert_close(run(rung, p, inputs, (1, 2)), onnx_runtime(p, inputs))


@pytest.mark.parametrize("rung", registry.rungs("cpu", "conv"), ids=lambda rung: rung.label)
def test_a_stride_of_rows_or_columns_alone(rung: Rung) -> None:
    """Over an image that it divides, without padding: nothing is left over, or lies outside."""
    for strides, sizes in (((2, 1), (6, 5)), ((1, 3), (4, 9)), ((2, 2), (8, 32))):
        kh, kw = strides
        plain = Conv(2, 3, *sizes, 6, kh, kw, sizes[0] // kh, sizes[1] // kw, *strides, bias=True)
        p = fitted(replace(plain, group=3), rung) if rung.needs.get("depthwise") else fitted(plain, rung)
        if rung.refusal(p) is None:
            inputs = inputs_for(p)
            assert_close(run(rung, p, inputs, (1, 2)), onnx_runtime(p, inputs))


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    "p",
    [
        QConv(sized(Conv(1, 200, 5, 160, 3, 3, 3, 0, 0, 1, 1, 1, 1, 1, 1))),
        QGemm(Gemm(2, 70, 9000, trans_b=True)),
        QGemm(Gemm(2, 70, 9000)),
    ],
)
def test_products_of_eight_bit_numbers_too_large_for_one_block(p: QConv | QGemm, several: bool) -> None:
    """By rows of the output, and by columns of b."""
    p = replace(p, to="uint8", shifted=True, out_scale=100.0, weight_zeros=p.channels if several else 1)
    inputs = inputs_for(p)
    expected = quantized_cases.answer(p, *inputs)
    for rung in registry.rungs("cpu", p.op):
        if rung.refusal(p) is None:
            np.testing.assert_array_equal(run(rung, p, inputs), expected)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("rung", [r for r in RUNGS if not r.side], ids=lambda rung: rung.label)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_go_through(rung: Rung, bad: float) -> None:
    """As IEEE says: a NaN in the input is a NaN in what depends on it, and nowhere does it stop the pass.
    (Side rungs transform whole tiles, which makes neighbours depend on it too.)"""
    examples: dict[str, Params] = {
        "conv": Conv(1, 1, 4, 4, 1, 3, 3, 2, 2),
        "gemm": Gemm(2, 3, 4),
        "pool": Pool("max", 1, 1, 4, 4, 2, 2, 2, 2, 2, 2),
        "lrn": Lrn(3, 3, 4, 3),
        "lrn_pool": LrnPool(3, "max", 3, 3, 4, 4, 2, 2, 2, 2, 2, 2),
        "conv_pool": ConvPool(
            Conv(1, 1, 6, 6, 2, 3, 3, 4, 4, activation="tanh"), Pool("max", 1, 2, 4, 4, 2, 2, 2, 2, 2, 2)
        ),
        "softmax": Softmax(2, 4, 1),
        "attention": Attention(1, 2, 3, 200, 4, 5, 1),
        "unary": Unary("tanh", 8),
        "binary": Binary("add", (4,), (1,), (1,)),
    }
    p = examples.get(rung.op)
    if p is None:
        return
    p = fitted(p, rung)
    skip_refused(rung, p)
    inputs = inputs_for(p)
    inputs[0].flat[0] = bad
    kernel = load(rung)
    output = np.zeros(output_shape(p), np.float32)
    call = kernel.bind(p, inputs, output, np.zeros(kernel.workspace(p) // 4, np.float32))
    with np.errstate(all="ignore"):
        call()
        expected = reference(p, inputs).reshape(output.shape)
    np.testing.assert_array_equal(np.isnan(output), np.isnan(expected))


def test_whole_numbers_are_divided_towards_zero() -> None:
    rung = registry.find("cpu", "binary", "ufunc")
    p = Binary("div", (6,), (1,), (1,), dtype="int64")
    inputs = [np.array([7, -7, 7, -7, 6, 0]), np.array([2, 2, -2, -2, 3, 5])]
    np.testing.assert_array_equal(run(rung, p, inputs), [3, -3, -3, 3, 2, 0])


@pytest.mark.parametrize("dtype", ["float64", "int64", "int32", "bool", "uint8"])
def test_moves_of_bytes_take_every_element_type(dtype: str) -> None:
    x = np.arange(24).reshape(2, 3, 4) % 2 if dtype == "bool" else np.arange(24).reshape(2, 3, 4)
    x = x.astype(dtype)
    for made, expected in [
        (Transpose((2, 3, 4), (2, 0, 1), dtype), x.transpose(2, 0, 1)),
        (Pad((2, 3, 4), (0, 1, -1), (1, 0, 2), dtype=dtype), np.pad(x[:, :, 1:], ((0, 1), (1, 0), (0, 2)))),
        (Unary("identity", 24, dtype), x.reshape(-1)),
    ]:
        rung = registry.default("cpu", made)
        output = np.empty(output_shape(made), dtype)
        load(rung).bind(made, [x], output, np.empty(0, np.float32))()
        np.testing.assert_array_equal(output, expected)


def test_a_rung_that_does_not_run_is_named_with_its_line(tmp_path: Path) -> None:
    header = '# op = "unary"\n# rung = 9\n# name = "mine"\n# idea = "Breaks."\n'
    file = tmp_path / "09_mine.py"
    for body, message in [
        ("import numpy as np\n\nnp.no_such_thing\n", r"09_mine\.py:7: AttributeError"),
        ("def bind(:\n", r"09_mine\.py:5: SyntaxError"),
        ("x = 1\n", r"defines bind\(p, inputs, output, workspace\)"),
    ]:
        file.write_text(header + body)
        with pytest.raises(KernelError, match=message):
            load(registry.find("cpu", "unary", "mine", [tmp_path]))


NARROW = {
    "conv": "group = 2\nkernel = 3\nstride = 1\npad = 1\nbias = true\nactivation = ['relu']",
    "pool": "kind = ['average']\nstride = 1",
    "lrn": "size_max = 3",
    "unary": "kind = ['tanh']",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("op", NARROW)
def test_a_rung_that_takes_few_shapes_is_tried_on_those(op: str, tmp_path: Path) -> None:
    """Right, it passes every test here; wrong, it fails."""
    ours = registry.rungs("cpu", op)[0]
    body = "".join(
        line for line in ours.path.read_text().splitlines(keepends=True) if not line.startswith("#")
    )
    needs = "".join(f"# {line}\n" for line in NARROW[op].splitlines())
    header = f'# op = "{op}"\n# rung = 90\n# name = "narrow"\n# idea = "Takes few."\n# [needs]\n{needs}'
    (tmp_path / "90_narrow.py").write_text(header + body)
    rung = registry.find("cpu", op, "narrow", [tmp_path])
    tests: dict[str, list[Callable[[Rung], None]]] = {
        "conv": [partial(test_a_convolution_too_large_for_one_block, group=1)],
        "pool": [partial(test_windows_that_reach_beyond_the_padded_image, kind="max", include=False)],
        "lrn": [test_lrn_sums_over_channels_as_onnx_runtime_does],
    }
    general = [partial(test_nan_and_infinity_go_through, bad=np.nan), test_every_kind_and_activation]
    for test in (test_against_the_oracle, *general, *tests.get(op, [])):
        with suppress(pytest.skip.Exception):
            test(rung)
    wrong = body.replace("\ndef bind(", "\ndef right(") + (
        "\n\ndef bind(p, inputs, output, workspace):\n"
        "    run = right(p, inputs, output, workspace)\n"
        "    def twice():\n"
        "        run()\n"
        "        output[...] *= 2\n"
        "    return twice\n"
    )
    (tmp_path / "90_narrow.py").write_text(header + wrong)
    with pytest.raises(AssertionError):
        test_against_the_oracle(registry.find("cpu", op, "narrow", [tmp_path]))
