"""The engine passes ONNX's own tests of its operators; what it refuses, it refuses for a reason."""

from __future__ import annotations

import re

import numpy as np
import pytest

from engine.backend import Backend
from engine.graph.importer import from_proto
from kernels.errors import KernelscopeError
from tests.conformance.onnx_suite import Case, cases
from tests.engine.backends.shared import EVERY_BACKEND, answers, usable

# Pattern of test names → why they are refused. Whatever matches has to be refused, in words.
EVERYWHERE = {
    r"_(u?int8|u?int16|uint32|uint64)$": "arithmetic on these integers is no part of the nets in view",
    r"(AvgPool|Conv|MaxPool)3d|(average|max)pool_3d": "images have one or two spatial axes, not three",
    r"cast_.*(BFLOAT16|FLOAT8|FLOAT4|INT[24])": "the element types are those of kernels.ops",
    r"training_dropout": "only inference is run",
    r"dropout_default_mask|argmax": "a second output (mask, indices) has no use in inference",
    r"matmul_bcast": "leading axes that broadcast against each other occur in no net in view",
    r"allowzero": "tensors without elements are refused",
    r"wrap_pad": "wrapping is no padding mode of the nets in view",
}
ON_CUDA = {
    r"div_int32|(edge|reflect)_pad$|non_float": "the CUDA kernels compute in floating point alone",
}
# Pattern of test names → why they say nothing here.
LEFT_OUT = {
    r"operator_add(_|constant)": "float64 values beyond float32, in which sessions answer",
}
CASES = list(cases())
OURS = [parameter for parameter in EVERY_BACKEND if str(parameter.id).startswith("engine-")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("backend", OURS)
def test_conformance(backend: Backend, case: Case) -> None:
    usable(backend)
    for pattern, why in LEFT_OUT.items():
        if re.search(pattern, case.name):
            pytest.skip(why)
    reasons = EVERYWHERE | (ON_CUDA if backend.device == "cuda" else {})

    def run() -> dict[str, np.ndarray]:
        graph = from_proto(case.proto, case.name)
        return answers(backend, graph, {graph.inputs[0].name: case.feed}, graph.fixed_batch or 1)

    if any(re.search(pattern, case.name) for pattern in reasons):
        with pytest.raises(KernelscopeError):
            run()
        return
    for actual, expected in zip(run().values(), case.expected, strict=True):
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, case.rtol, case.atol)


def test_the_suite_is_there() -> None:
    assert len(CASES) > 200
    for pattern in {**EVERYWHERE, **ON_CUDA, **LEFT_OUT}:
        assert any(re.search(pattern, case.name) for case in CASES), pattern
