"""The judge and conversions between element types: a right one is right, with its rounding."""

from __future__ import annotations

import numpy as np
import pytest

from bench.measure.answers import samples
from bench.measure.answers.comparison import compare
from kernels import registry
from kernels.cpu import load
from kernels.ops import EXPONENTS, FLOATS8, ITEMSIZE
from kernels.ops.cast import Cast
from tests import sampling


def _answer(p: Cast, x: np.ndarray) -> np.ndarray:
    kernel = load(registry.find("cpu", "cast", 1))
    output, scratch = np.empty(p.size, p.to), np.empty(kernel.workspace(p) // 4, np.float32)
    with np.errstate(all="ignore"):
        kernel.bind(p, [x], output, scratch)()
    return output.astype(np.float32)


@pytest.mark.sampled
def test_every_conversion_that_is_right_is_called_so() -> None:
    pairs = [(of, to) for of in ITEMSIZE for to in ITEMSIZE if of != to]
    for number, (of, to) in sampling.some("casts", list(enumerate(pairs)), 60):
        saturate = to in (*FLOATS8, EXPONENTS) and number % 2 == 0
        p = Cast(700, of, to, saturate, "up" if to == EXPONENTS else "nearest")
        sample = samples.draw(p, np.random.default_rng(number))
        found = compare(_answer(p, sample.inputs[0]), sample, "fp32")
        assert found.stats.ok, f"{p}: {found.stats.reason}"


@pytest.mark.parametrize("to", ["bfloat16", *FLOATS8])
def test_a_conversion_that_cuts_is_wrong(to: str) -> None:
    p = Cast(700, "float32", to, saturate=to in FLOATS8)
    sample = samples.draw(p, np.random.default_rng(0))
    bits = 16 if to == "bfloat16" else 20 if "e4" in to else 21
    cut = (sample.inputs[0].view(np.uint32) >> bits << bits).view(np.float32)
    assert compare(_answer(p, sample.inputs[0]), sample, "fp32").stats.ok
    assert not compare(_answer(p, cut), sample, "fp32").stats.ok
