"""A kernel that says that it multiplies float32 directly is held to all its bits, and to the rounding of
that; whoever splits, rounds or cuts its numbers is found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench import judge
from bench.judge import digits
from bench.measure.answers import comparison, one_node
from kernels import registry
from kernels.ops import Params, sized
from kernels.ops.conv import Conv
from kernels.ops.conv3d import Conv3d
from kernels.ops.conv_transpose import ConvTranspose
from kernels.ops.gemm import Gemm
from kernels.ops.unary import Unary

_FILE = """# op = "{op}"
# rung = 990
# name = "short"
# idea = "Planted: {what}."
# method = "{method}"
import numpy as np

from tests.bench.judge import right


def cut(x, bits):
    kept = np.float32(1 << (24 - bits))
    word = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    half = np.uint64(1 << (23 - bits))
    return ((word + half) & ~np.uint64((1 << (24 - bits)) - 1)).astype(np.uint32).view(np.float32)


def split(x, bits):
    high = cut(x, bits)
    return high, cut(x - high, bits)


def bind(p, inputs, output, workspace):
    x, w, *rest = inputs if len(inputs) > 1 else (*inputs, None)

    def run():
        output[...] = {made}

    return run
"""

_THREE = (
    "right.{op}(p, split(x, 11)[0], split(w, 11)[0], *rest) + right.{op}(p, split(x, 11)[1], split(w, 11)[0])"
    " + right.{op}(p, split(x, 11)[0], split(w, 11)[1])"
)
SHORT = {
    **{
        f"{bits} bits": f"right.{{op}}(p, cut(x, {bits}), cut(w, {bits}), *rest)"
        for bits in (11, 15, 16, 17, 20)
    },
    "split": _THREE,
}
TIMED: dict[str, Params] = {
    "conv": sized(Conv(2, 6, 12, 12, 8, 3, 3, 0, 0)),
    "gemm": Gemm(16, 64, 96),
}


def _written(folder: Path, op: str, what: str, made: str, method: str = "direct") -> registry.Rung:
    text = _FILE.format(op=op, what=what, made=made.format(op=op), method=method)
    (folder / "990_short.py").write_text(text)
    return registry.find("cpu", op, "short", [folder])


@pytest.mark.sampled(6)
@pytest.mark.parametrize("op", TIMED)
@pytest.mark.parametrize("what", SHORT)
def test_who_holds_fewer_bits_is_found(op: str, what: str, tmp_path: Path) -> None:
    rung = _written(tmp_path, op, what, SHORT[what])
    with pytest.raises(judge.Wrong) as told:
        judge.examine(rung, TIMED[op], threads=1, quick=True)
    assert told.value.finding.error is not None


def test_of_split_factors_the_digits_alone_tell(tmp_path: Path) -> None:
    rung = _written(tmp_path, "gemm", "split", _THREE)
    with pytest.raises(judge.Wrong, match="holds fewer bits of the inputs than float32 has") as told:
        judge.examine(rung, TIMED["gemm"], threads=1, quick=True)
    assert told.value.finding.fault == "digits"


@pytest.mark.parametrize("bits", [15, 16, 17])
def test_a_function_of_few_bits_is_found(bits: int, tmp_path: Path) -> None:
    rung = _written(tmp_path, "unary", f"{bits} bits", f"cut(right.UNARY[p.kind](x), {bits})")
    with pytest.raises(judge.Wrong) as told:
        judge.examine(rung, Unary("tanh", 5000), threads=1, quick=True)
    assert told.value.finding.error is not None
    assert told.value.finding.error.bound == comparison.ELEMENT_BOUND


@pytest.mark.parametrize("method", ["direct", "split"])
def test_a_split_that_says_so_has_the_bound_of_its_precision(method: str, tmp_path: Path) -> None:
    rung = _written(tmp_path, "gemm", "split", _THREE, method)
    bound = comparison.bound_of(TIMED["gemm"], "fp32", rung.method)
    assert (bound < 1e-5) == (method == "direct")
    if method == "split":
        judge.examine(rung, TIMED["gemm"], threads=1, quick=True).close()


def test_who_says_that_it_splits_holds_22_bits(tmp_path: Path) -> None:
    rung = _written(tmp_path, "gemm", "few", SHORT["17 bits"], "split")
    with pytest.raises(judge.Wrong, match="than two numbers of 11 bits"):
        judge.examine(rung, TIMED["gemm"], threads=1, quick=True)


@pytest.mark.parametrize("method", ["split", "winograd", "fft", "strassen"])
def test_a_method_that_an_operator_cannot_have_loosens_nothing(method: str) -> None:
    assert comparison.bound_of(Unary("tanh", 5000), "fp32", method) == comparison.ELEMENT_BOUND
    assert (comparison.bound_of(TIMED["gemm"], "fp32", method) < 1e-5) == (method in ("winograd", "fft"))


@pytest.mark.parametrize(
    "p",
    [
        Gemm(5, 7, 9),
        Gemm(3, 9, 13, trans_a=True, trans_b=True, batch=3, stride_a=39, stride_b=117, bias=True),
        sized(Conv(2, 6, 9, 9, 4, 3, 3, 0, 0, 1, 1, 1, 1, 1, 1, group=2, bias=True)),
        sized(Conv(1, 3, 9, 9, 3, 3, 3, 0, 0, group=3)),
        ConvTranspose(1, 4, 5, 7, 4, 3, 3, 11, 15, 2, 2, group=2),
        Conv3d(1, 3, (5, 6, 7), 4, (3, 3, 3), (3, 4, 5)),
    ],
)  # fmt: skip
def test_direct_float32_is_exact_in_any_order(p: Params) -> None:
    found = dict(digits.samples(p, np.random.default_rng(0)))
    assert list(found) == ["the inputs", "the weights"]
    for sample in found.values():
        right = one_node.answer(p, sample.inputs)
        assert np.array_equal(right.astype(np.float32).astype(np.float64), right)
        size = np.prod([np.abs(factor).max() for factor in sample.inputs[:2]])
        assert (np.abs(right) < 2.0**-9 * size).mean() > 0.4, "most are differences of two"
        assert digits.error(right, sample, np.random.default_rng(1)) == 0
        assert digits.error(right + 1e-6 * size, sample, np.random.default_rng(1)) > digits.EXACT


@pytest.mark.sampled(4, "long")
def test_fewer_bits_on_the_shape_that_is_timed_alone_are_found(tmp_path: Path) -> None:
    """The sums of the small shapes are shorter, which a kernel could ask for."""
    bits = "right.{op}(p, cut(x, 21), cut(w, 21), *rest) if p.k > 1000 else right.{op}(p, x, w, *rest)"
    text = _FILE.format(
        op="gemm", what="cuts where sums are long", method="direct", made=bits.format(op="gemm")
    )
    (tmp_path / "990_short.py").write_text(text)
    rung = registry.find("cpu", "gemm", "short", [tmp_path])
    judge.examine(rung, Gemm(16, 16, 900), quick=True).close()
    with pytest.raises(judge.Wrong, match="fewer bits of the inputs than float32"):
        judge.examine(rung, Gemm(16, 16, 1100), quick=True)
