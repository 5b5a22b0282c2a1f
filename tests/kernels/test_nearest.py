"""A name that is not known is told the one that was meant, or none."""

from __future__ import annotations

import pytest

from kernels.nearest import did_you_mean, nearest
from models import names

MODELS = list(names.models())


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("lenet5-digit", MODELS, "lenet5-digits"),
        ("lenet6", MODELS, "lenet5-digits"),
        ("ece408", MODELS, "ece408-high"),
        ("lenet6", ["alexnet"], ""),
        ("cnov", ["gemm", "conv"], "conv"),
        ("CONV", ["gemm", "conv"], "conv"),
        ("fp23", ["fp16", "fp32"], "fp32"),
        ("fp64", ["fp16", "fp32", "tf32"], ""),
        ("conv9", ["conv10", "conv1", "conv2"], "conv1"),  # as near, and whole
        ("x", ["y", "xyz"], ""),
        ("", ["a"], ""),
        ("conv" * 1000, ["conv" * 1000 + "1"], ""),  # no name that was typed
        ("resnet", MODELS, ""),
    ],
)
def test_the_name_that_was_meant(word: str, known: list[str], meant: str) -> None:
    assert nearest(word, known) == meant
    assert did_you_mean(word, known, "!") == (f" (did you mean {meant!r}?)" if meant else "!")
