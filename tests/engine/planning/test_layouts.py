"""Which tensors of a plan travel as NHWC float16, what that makes of its memory, and which do not."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest
from onnx import helper

from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.graph.plan import Plan
from engine.machine import driver as cuda_driver
from engine.options import Options
from engine.planning import runs
from engine.planning.planner import plan
from kernels.errors import UnsupportedError
from kernels.layouts import HALVES, PLAIN, ROUNDED, nbytes
from tests.engine.harness import check_memory, make_model

NHWC = {f"conv{i}": "nhwc_fp16" for i in (1, 2, 3)}
BATCH = 3


def network(outputs: tuple[str, ...] = ("y",)) -> Graph:
    """AlexNet's kinds of steps, few of each, and maps that no chunk divides."""
    rng = np.random.default_rng(0)

    def drawn(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    wide = 64
    constants = {
        "w1": drawn(20, 3, 5, 5), "b1": drawn(20, 1)[:, 0], "w2": drawn(wide, 10, 3, 3),
        "w3": drawn(wide, wide, 3, 3), "w4": drawn(10, wide * 9),
    }  # fmt: skip
    pool = {"kernel_shape": [3, 3], "strides": [2, 2]}
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], "conv1", strides=[2, 2]),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("LRN", ["r1"], ["n1"], "norm1", size=5),
        helper.make_node("MaxPool", ["n1"], ["p1"], "pool1", **pool),
        helper.make_node("Conv", ["p1", "w2"], ["c2"], "conv2", group=2, pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"], "relu2"),
        helper.make_node("Conv", ["r2", "w3"], ["c3"], "conv3", pads=[1, 1, 1, 1]),
        helper.make_node("MaxPool", ["c3"], ["p3"], "pool3", **pool),
        helper.make_node("Flatten", ["p3"], ["f3"], "flat"),
        helper.make_node("Gemm", ["f3", "w4"], ["y"], "fc4", transB=1),
    ]
    ranks = {name: 4 for name in outputs if name != "y"}
    return from_proto(make_model(nodes, {"x": ("N", 3, 35, 35)}, outputs, constants, ranks=ranks))


def products(sizes: tuple[int, ...] = (130, 45, 37, 10)) -> Graph:
    """AlexNet's fully connected layers, fewer and of widths that no chunk divides."""
    rng = np.random.default_rng(0)
    weights = {
        f"w{i}": rng.standard_normal((n, k)).astype(np.float32) / np.float32(np.sqrt(k))
        for i, (k, n) in enumerate(pairwise(sizes), 1)
    }
    biases = {f"b{i}": rng.standard_normal(n).astype(np.float32) for i, n in enumerate(sizes[1:], 1)}
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["g1"], "fc1", transB=1),
        helper.make_node("Relu", ["g1"], ["r1"], "relu1"),
        helper.make_node("Gemm", ["r1", "w2", "b2"], ["g2"], "fc2", transB=1),
        helper.make_node("Relu", ["g2"], ["r2"], "relu2"),
        helper.make_node("Gemm", ["r2", "w3", "b3"], ["y"], "fc3", transB=1),
    ]
    return from_proto(make_model(nodes, {"x": ("N", sizes[0])}, ("y",), weights | biases))


def planned(
    graph: Graph, rungs: Mapping[str, str] = NHWC, precision: str = "fp16", layouts: str = ""
) -> Plan:
    how = Options(rungs=rungs, tuned=False, one_kernel=False, layouts=layouts)
    made = plan(graph, BATCH, "cuda", precision, how)
    for step in made.steps:
        writer = [other for other in made.steps if other.output == made.holder(step.inputs[0])]
        assert all(other.writes == step.reads for other in writer), "what is written one way is read so"
    return made


def travels(made: Plan) -> list[str]:
    return [step.name for step in made.steps if step.writes == HALVES]


def test_tensors_between_steps_that_can_travel_so_do() -> None:
    made = planned(network())
    assert travels(made) == ["conv1", "conv2", "conv3"]
    # Groups of ten channels are no whole chunks: what the second convolution reads is laid out by itself.
    by_name = {step.name: step for step in made.steps}
    assert (by_name["norm1"].reads, by_name["norm1"].writes) == (HALVES, PLAIN)
    assert by_name["conv2"].reads == PLAIN
    assert by_name["norm1"].chosen == by_name["pool3"].chosen == "layout"
    assert by_name["pool3"].writes == by_name["fc4"].reads == PLAIN, (
        "what is flattened is in the model's order"
    )
    assert "2 for the layout" in made.chosen_words


def test_memory_is_planned_for_what_travels() -> None:
    graph = network()
    made, plain = planned(graph), planned(graph, layouts="none")
    assert travels(plain) == []
    place = made.placements["r1"]
    assert place.nbytes == nbytes(HALVES, (BATCH, 20, 16, 16)) == BATCH * 16 * 16 * 24 * 2
    assert plain.placements["r1"].nbytes == BATCH * 20 * 16 * 16 * 4
    assert made.arena_nbytes < plain.arena_nbytes
    check_memory(plain)


def test_tf32_travels_in_float32() -> None:
    made = planned(network(), dict.fromkeys(NHWC, "nhwc_tf32"), "tf32")
    assert [step.name for step in made.steps if step.writes == ROUNDED] == ["conv1", "conv2", "conv3"]
    assert made.placements["r1"].nbytes == BATCH * 16 * 16 * 20 * 4, "twenty channels are five whole chunks"


def test_a_normalisation_alone_takes_and_hands_on_chunks() -> None:
    rng = np.random.default_rng(0)
    weights = {
        "w1": rng.standard_normal((20, 3, 3, 3)).astype(np.float32),
        "w2": rng.standard_normal((9, 20, 3, 3)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], "conv1"),
        helper.make_node("LRN", ["c1"], ["n1"], "norm1", size=5),
        helper.make_node("Conv", ["n1", "w2"], ["y"], "conv2"),
    ]
    graph = from_proto(make_model(nodes, {"x": ("N", 3, 9, 7)}, ("y",), weights, ranks={"y": 4}))
    for precision, layout in (("fp16", HALVES), ("tf32", ROUNDED)):
        first = planned(graph, {"conv1": f"nhwc_{precision}", "conv2": f"nhwc_{precision}"}, precision)
        assert [step.op for step in first.steps] == ["conv", "lrn", "conv"]
        assert [step.writes for step in first.steps] == [layout, layout, PLAIN]
        assert first.steps[1].rung == f"nhwc_{precision}"


def test_products_hand_chunks_to_each_other_where_that_is_tried() -> None:
    made = planned(products(), {}, layouts="all")
    assert travels(made) == ["fc1", "fc2"]
    assert {step.rung for step in made.steps} == {"streamed_fp16"}
    assert made.placements["r1"].nbytes == BATCH * 48 * 2, "45 halves are six whole chunks"
    many = plan(products(), 64, "cuda", "tf32", Options(tuned=False, one_kernel=False, layouts="all"))
    assert [step.rung for step in many.steps] == ["chunks_tf32"] * 3
    assert [step.writes for step in many.steps] == [ROUNDED, ROUNDED, PLAIN]
    assert travels(planned(products(), {})) == [], "of themselves they keep the rungs chosen for them"


def test_a_finer_product_has_layouts_of_its_own_precision() -> None:
    """Half of TF32's bytes, all of its bits: fine enough for fp16, and as many bytes."""
    fine = {"fc1": "streamed_scaled", "fc2": "streamed_scaled", "fc3": "streamed_fp16"}
    made = planned(products(), fine, "fp16")
    assert [step.precision for step in made.steps] == ["tf32", "tf32", "fp16"]
    assert [step.writes for step in made.steps] == [ROUNDED, PLAIN, PLAIN]
    assert made.chosen_words == "3 named, 2 products in tf32"
    with pytest.raises(UnsupportedError, match="it computes in fp16, and tf32 was asked for"):
        planned(products(), fine, "tf32")
    with pytest.raises(UnsupportedError, match="it computes in tf32, and fp16 was asked for"):
        planned(products(), {"fc1": "streamed_tf32"}, "fp16")


def test_a_device_that_cannot_compile_them_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for capability, many in ((7, 5), 0), ((8, 6), 2):
        gpu = cuda_driver.CudaDevice("a GPU", capability, 40)
        monkeypatch.setattr(cuda_driver, "device", lambda gpu=gpu: gpu)
        made = plan(products(), 64, "cuda", "tf32", Options(tuned=False, one_kernel=False, layouts="all"))
        assert sum(step.writes == ROUNDED for step in made.steps) == many, capability


def test_what_takes_a_rung_for_a_layout_that_does_not_come_of_it_keeps_its_own() -> None:
    made, own = (planned(network(), {}, layouts=way) for way in ("all", "none"))
    assert made.steps[-1] == own.steps[-1]
    assert made.steps[-1].reads == PLAIN


def test_outputs_and_finer_precisions_keep_the_models_layout() -> None:
    assert travels(planned(network(("r2", "y")))) == ["conv1", "conv3"]
    assert travels(planned(network(), {}, "fp32")) == []
    assert travels(planned(network(), {}, "tf32")) == []
    # One reader that cannot take it is enough.
    assert travels(planned(network(), {**NHWC, "conv3": "tensor_fp16"})) == ["conv1"]
    named = planned(network(), {**NHWC, "pool3": "naive"})
    assert travels(named) == ["conv1", "conv2"]


def test_steps_that_may_be_one_kernel_keep_what_it_reads() -> None:
    made = plan(network(), BATCH, "cuda", "fp16", Options(tuned=False, rungs=NHWC))
    run = runs.longest(made)
    assert run is not None
    assert [step.name for step in run.steps] == ["pool3", "fc4"]
    assert travels(made) == ["conv1", "conv2"]
