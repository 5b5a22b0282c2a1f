"""ConvTranspose in every way to say how large its output is, against ONNX Runtime and the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.measure.answers import oracle
from kernels.errors import UnsupportedError
from tests.engine.harness import agree, bare, one_node, random, run_plan


@settings(max_examples=16, deadline=None)
@given(st.data())
def test_conv_transpose(data: Any) -> None:
    rank = data.draw(st.sampled_from([1, 2, 2]))

    def each(low: int, high: int, count: int = rank) -> list[int]:
        return [data.draw(st.integers(low, high)) for _ in range(count)]

    group, kernel, sizes, strides = data.draw(st.sampled_from([1, 1, 2])), each(1, 4), each(1, 6), each(1, 3)
    attributes: dict[str, Any] = {"strides": strides, "group": group}
    how = data.draw(st.sampled_from(["pads", "VALID", "SAME_UPPER", "SAME_LOWER", "output_shape"]))
    out = [(n - 1) * s + k for n, s, k in zip(sizes, strides, kernel, strict=True)]
    if how == "pads":
        attributes["pads"] = [data.draw(st.integers(0, k // 2)) for k in kernel * 2]
        attributes["dilations"] = each(1, 2)
        attributes["output_padding"] = [data.draw(st.integers(0, s - 1)) for s in strides]
        if any(o <= k // 2 * 2 for o, k in zip(out, kernel, strict=True)):
            return  # nothing might be left
    elif how == "output_shape":
        attributes[how] = [max(1, size - data.draw(st.integers(0, 2))) for size in out]
        attributes["auto_pad"] = data.draw(st.sampled_from(["NOTSET", "SAME_UPPER", "SAME_LOWER"]))
    else:
        attributes["auto_pad"] = how
    if how.startswith("SAME") and any(k < s for k, s in zip(kernel, strides, strict=True)):
        return  # ONNX Runtime answers with negative padding
    constants = [random((2 * group, 3, *kernel), 1)]
    constants += [random((3 * group,), 2)] if data.draw(st.booleans()) else []
    shape = (2, 2 * group, *sizes)
    opset = data.draw(st.sampled_from([7, 11, 17]))
    graph = one_node("ConvTranspose", shape, constants, opset=opset, **attributes)
    agree(graph, {"x": random(shape)}, 2)
    expected = oracle.run(graph, {"x": random(shape)}, ["y"])["y"]
    np.testing.assert_allclose(run_plan(graph, 2, {"x": random(shape)})["y"], expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("said", "shape", "weight", "attributes"),
    [
        ("4 spatial axes, and 1 to 3", (1, 2, 3, 3, 3, 3), (2, 3, 2, 2, 2, 2), {}),
        ("its bias has the shape", (1, 2, 3, 3), (2, 4, 2, 2), {}),
        ("its kernel_shape .* is not that", (1, 2, 3, 3), (2, 3, 2, 2), {"kernel_shape": [3, 3]}),
        ("leave nothing", (1, 2, 1, 1), (2, 3, 2, 2), {"pads": [1, 1, 1, 1]}),
    ],
)
def test_what_is_not_done_is_refused(said: str, shape: Any, weight: Any, attributes: Any) -> None:
    with pytest.raises(UnsupportedError, match=f"node 'it' .ConvTranspose.: .*{said}"):
        bare(one_node("ConvTranspose", shape, [random(weight), random((3,))], **attributes), 1)
