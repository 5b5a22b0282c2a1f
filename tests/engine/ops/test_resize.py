"""Resize and Upsample in every form that they have had, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bench.measure.answers import oracle
from kernels.errors import UnsupportedError
from kernels.ops.resize import COORDINATES, ROUNDINGS
from tests.engine.harness import agree, bare, one_node, random, run_plan

few = settings(max_examples=14, deadline=None)
NOTHING = np.array([], np.float32)  # of inputs that had to be there before opset 13
SCALES = [0.5, 0.6, 1.0, 1.5, 2.0, 7 / 3, 3.0]


def _scales(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


@few
@given(st.data())
def test_resize_by_scales_or_sizes(data: Any) -> None:
    shape = (2, 3, *(data.draw(st.integers(3, 9)) for _ in range(2)))
    mode = data.draw(st.sampled_from(["nearest", "linear", "cubic"]))
    # ONNX Runtime crops otherwise than ONNX's own tests do where a length is no whole number.
    coordinates = data.draw(st.sampled_from([name for name in COORDINATES if name != "tf_crop_and_resize"]))
    if mode == "nearest" and coordinates == "half_pixel_symmetric":
        coordinates = "half_pixel"  # ONNX Runtime's rounding of the other misses whole numbers
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
    if mode == "nearest":
        attributes["nearest_mode"] = data.draw(st.sampled_from(ROUNDINGS))
    opset = data.draw(st.sampled_from([11, 13, 18, 19]))
    if coordinates == "half_pixel_symmetric":
        opset = 19  # which has it
    whole = coordinates in ("align_corners", "half_pixel_symmetric")
    if whole or data.draw(st.booleans()):
        sizes = [*shape[:2], *(data.draw(st.integers(2, 12)) for _ in range(2))]
        constants = [NOTHING, NOTHING, np.array(sizes)]
    else:
        # ONNX Runtime divides in float32, where 1.5 / 0.6 is 2.5. But the scale is then more than 0.6:
        # the place is a little less than a whole number, and floor takes the element before.
        tie = mode == "nearest" and coordinates.endswith("half_pixel")
        scales = [scale for scale in SCALES if not (tie and scale == 0.6)]
        drawn = [data.draw(st.sampled_from(scales)) for _ in range(2)]
        # One place alone is at 0; of 1.5 places ONNX's evaluator makes one that is none alone.
        several = all(not 1 < size * scale < 2 for size, scale in zip(shape[2:], drawn, strict=True))
        assume(several or coordinates != "pytorch_half_pixel")
        constants = [NOTHING, _scales(1, 1, *drawn)]
    agree(one_node("Resize", shape, constants, opset=opset, **attributes), {"x": random(shape)}, 2)


@few
@given(st.data())
def test_before_opset_11(data: Any) -> None:
    opset = data.draw(st.sampled_from([7, 9, 10]))
    shape = (2, 3, *(data.draw(st.integers(2, 7)) for _ in range(2)))
    scales = _scales(1, 1, *(data.draw(st.sampled_from([s for s in SCALES if s >= 1])) for _ in range(2)))
    mode = data.draw(st.sampled_from(["nearest", "linear"]))
    if opset == 7:
        graph = one_node("Upsample", shape, opset=7, mode=mode, scales=scales.tolist())
    else:
        graph = one_node("Upsample" if opset == 9 else "Resize", shape, [scales], opset=opset, mode=mode)
    agree(graph, {"x": random(shape)}, 2)
    # The oracle, whose reference does without these, says the same.
    expected = oracle.run(graph, {"x": random(shape)}, ["y"])["y"]
    np.testing.assert_allclose(run_plan(graph, 2, {"x": random(shape)})["y"], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axes", [[1, 2], [-1, -3], [0], [1]])
def test_axes_that_are_not_the_last(axes: list[int]) -> None:
    scales = _scales(*[1.5] * len(axes))
    attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"}
    graph = one_node("Resize", (4, 4, 6, 2), [None, scales], opset=18, axes=axes, **attributes)
    made = bare(graph, 4)
    assert len(made.steps) == len(axes) // 2 + (axes == [-1, -3]) + (len(axes) == 1)
    agree(graph, {"x": random((4, 4, 6, 2))}, 4)


def test_volumes_are_resized_axis_by_axis() -> None:
    graph = one_node("Resize", (1, 2, 3, 4, 5), [None, _scales(1, 1, 2, 1.5, 2)], mode="linear")
    assert [step.op for step in bare(graph, 1).steps] == ["resize", "resize"]
    agree(graph, {"x": random((1, 2, 3, 4, 5))}, 1)


def test_a_size_that_stays_is_a_view() -> None:
    graph = one_node("Resize", (2, 3, 4, 4), [None, _scales(1, 1, 1, 1)], mode="cubic")
    assert [step.op for step in bare(graph, 2).steps] == ["unary"]  # an output needs a place of its own


@pytest.mark.parametrize(
    ("said", "constants", "attributes"),
    [
        ("its scales .* do not fit", [None, _scales(1, 1, 2, 0)], {}),
        ("its mode is 'area'", [None, _scales(1, 1, 2, 2)], {"mode": "area"}),
        ("antialias is not supported", [None, _scales(1, 1, 0.5, 2)], {"mode": "linear", "antialias": 1}),
        (
            "it has no roi",
            [None, _scales(1, 1, 2, 2)],
            {"coordinate_transformation_mode": "tf_crop_and_resize"},
        ),
    ],
)
def test_what_is_not_done_is_refused(said: str, constants: list, attributes: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError, match=f"node 'it' .Resize.: {said}"):
        bare(one_node("Resize", (2, 3, 4, 4), constants, opset=18, **attributes), 2)
