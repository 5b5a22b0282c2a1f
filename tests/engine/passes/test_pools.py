"""Pools and what stands before them: activations moved behind the maximum, normalisations in one step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from bench.measure.tuned.rungs import wanted
from engine.backend import Options
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.graph.plan import Plan
from engine.machine import driver as cuda_driver
from engine.machine.driver import CudaDevice
from engine.planning import choices
from engine.planning.groups import groups
from engine.planning.planner import plan
from kernels import registry
from kernels.ops import Params
from kernels.ops.conv_pool import ConvPool
from tests.engine.harness import agree, make_model, random, run_ort, run_plan

BATCH = 2
X = random((BATCH, 3, 9, 8)) * np.float32(2)
HALVES = {"kernel_shape": [2, 2], "strides": [2, 2]}
# The two pixels that a window takes lie on both sides of an image of 3×3, in the padding.
BLIND = {"kernel_shape": [2, 2], "strides": [4, 4], "dilations": [9, 9], "pads": [5, 5, 5, 5]}


def net(
    activation: str, pool: str = "MaxPool", outputs: tuple[str, ...] = ("y",), size: int = 8, **window: Any
) -> Graph:
    """Conv → activation → pool."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv"),
        helper.make_node(activation, ["c"], ["a"], "act"),
        helper.make_node(pool, ["a"], ["y"], "pool", **(window or HALVES)),
    ]
    shape = ("N", 3, 9, 8) if size == 8 else ("N", 3, size, size)
    weights = {"w": random((4, 3, 2, 2), 1) if size == 8 else random((4, 3, 1, 1), 1)}
    return from_proto(
        make_model(nodes, {"x": shape}, outputs, weights, ranks=dict.fromkeys(outputs, 4)), "net"
    )


def normalising(pool: str = "MaxPool", outputs: tuple[str, ...] = ("y",)) -> Graph:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], "relu"),
        helper.make_node("LRN", ["r"], ["n"], "norm", size=3, alpha=0.5),
        helper.make_node(pool, ["n"], ["y"], "pool", kernel_shape=[3, 3], strides=[2, 2]),
    ]
    proto = make_model(nodes, {"x": ("N", 3, 9, 8)}, outputs, ranks=dict.fromkeys(outputs, 4))
    return from_proto(proto, "normalising")


def activations(made: Plan) -> list[str | None]:
    return [getattr(step.params, "activation", None) for step in made.steps]


@pytest.mark.parametrize("kind", ["Tanh", "Sigmoid"])
def test_an_activation_is_done_behind_the_maximum_that_reads_it(kind: str) -> None:
    graph = net(kind)
    made = plan(graph, BATCH)
    assert [step.nodes for step in made.steps] == [("conv",), ("pool", "act")]
    assert activations(made) == [None, kind.lower()]
    # What is compared stays as the nodes are, for the reference does not move it.
    assert groups(graph, BATCH)[0].nodes[:2] == ("conv", "act")
    agree(graph, {"x": X}, BATCH)


def test_nan_and_infinity_come_through_behind_the_maximum() -> None:
    strange = X.copy()
    strange[0, :, 2, 2], strange[1, :, 3, 3], strange[1, :, 6, 6] = np.nan, np.inf, -np.inf
    graph = net("Sigmoid")
    with np.errstate(all="ignore"):
        apart = net("Sigmoid", outputs=("a", "y"))
        moved, kept = (run_plan(made, BATCH, {"x": strange})["y"] for made in (graph, apart))
    assert np.isnan(moved).any()
    np.testing.assert_allclose(moved, kept, rtol=1e-6)


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (net("Relu"), ["relu", None]),  # costs nothing on the way out of the convolution
        (net("Tanh", "AveragePool"), ["tanh", None]),  # a mean does not commute
        (net("Tanh", outputs=("a", "y")), ["tanh", None]),
        (net("Tanh", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), ["tanh", None]),  # as many outputs: no gain
        (net("Sigmoid", size=3, **BLIND), ["sigmoid", None]),
    ],
    ids=["relu", "average", "given out", "no fewer", "a window without a pixel"],
)
def test_what_is_not_moved(graph: Graph, expected: list[str | None]) -> None:
    assert activations(plan(graph, BATCH)) == expected


def test_an_activation_behind_a_pool_is_part_of_its_step() -> None:
    nodes = [
        helper.make_node("AveragePool", ["x"], ["p"], "pool", **HALVES),
        helper.make_node("Tanh", ["p"], ["y"], "act"),
    ]
    graph = from_proto(make_model(nodes, {"x": ("N", 3, 9, 8)}, ["y"], ranks={"y": 4}))
    assert [step.nodes for step in plan(graph, BATCH).steps] == [("pool", "act")]
    agree(graph, {"x": X}, BATCH)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("pool", ["MaxPool", "AveragePool"])
def test_a_normalisation_and_its_pool_are_one_step_and_one_group(device: str, pool: str) -> None:
    graph = normalising(pool)
    made = plan(graph, BATCH, device)
    assert [step.nodes for step in made.steps] == [("relu",), ("norm", "pool")]
    assert made.steps[1].op == "lrn_pool"
    assert "n" not in made.tensors
    found = groups(graph, BATCH)
    assert [(group.nodes, group.op_type) for group in found] == [
        (("relu",), "Relu"),
        (("norm", "pool"), f"LRN+{pool}"),
    ]
    agree(graph, {"x": X}, BATCH)
    apart = plan(graph, BATCH, device, joined=False)
    assert [step.op for step in apart.steps] == ["unary", "lrn", "pool"]
    assert found[1].flops == sum(step.params.flops for step in apart.steps[1:])
    assert found[1].nbytes < sum(step.params.nbytes for step in apart.steps[1:])


def test_a_normalisation_that_is_given_out_keeps_its_step() -> None:
    graph = normalising(outputs=("n", "y"))
    assert [step.op for step in plan(graph, BATCH).steps] == ["unary", "lrn", "pool"]
    agree(graph, {"x": X}, BATCH)


def test_one_image_on_the_cpu_is_divided_better_in_two_steps() -> None:
    assert [step.op for step in plan(normalising(), 1).steps] == ["unary", "lrn", "pool"]
    assert [step.op for step in plan(normalising(), 1, joined=True).steps] == ["unary", "lrn_pool"]
    assert [group.nodes for group in groups(normalising(), 1)] == [("relu",), ("norm", "pool")]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_rung_named_for_a_node_says_whether_it_has_a_step_of_its_own(device: str) -> None:
    """So names of rungs for both must be no names of rungs for one."""
    both, lrn, pool = ([r.name for r in registry.rungs(device, op)] for op in ("lrn_pool", "lrn", "pool"))
    assert not set(both) & {*lrn, *pool}
    for node, rung in [("norm", lrn[0]), ("pool", pool[0]), ("pool", both[0])]:
        made = plan(normalising(), BATCH, device, options=Options(rungs={node: rung}))
        step = next(step for step in made.steps if node in step.nodes)
        assert step.rung == rung
        assert (step.op == "lrn_pool") == (rung in both)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_operators_are_kept_apart_where_that_is_asked_for(device: str) -> None:
    """So that a table by kind of layer holds no other kind in a column."""
    for apart, ops_ in ((False, ["unary", "lrn_pool"]), (True, ["unary", "lrn", "pool"])):
        made = plan(normalising(), BATCH, device, options=Options(joins=not apart))
        assert [step.op for step in made.steps] == ops_


def test_what_the_best_kernel_for_both_does_not_take_stays_apart() -> None:
    """On the GPU the kernel that is left would normalise every pixel once a window."""
    graph = normalising()
    graph.proto.graph.node[2].attribute.append(helper.make_attribute("dilations", [2, 2]))
    dilated = from_proto(graph.proto, "dilated")
    assert [step.op for step in plan(dilated, BATCH, "cuda").steps] == ["unary", "lrn", "pool"]
    assert run_ort(dilated, {"x": X})["y"].shape == run_plan(dilated, BATCH, {"x": X})["y"].shape


# --------------------------------------------------------------------------- a convolution and its pool

CONVOLVING = [("Tanh", "AveragePool"), ("Tanh", "MaxPool"), ("Relu", "MaxPool"), ("Sigmoid", "AveragePool")]


def ops(made: Plan) -> list[str]:
    return [step.op for step in made.steps]


@pytest.mark.parametrize(("activation", "pool"), CONVOLVING)
def test_a_convolution_and_its_pool_are_one_step_on_the_gpu_and_one_group_everywhere(
    activation: str, pool: str
) -> None:
    graph = net(activation, pool)
    (step,) = plan(graph, BATCH, "cuda").steps
    assert step.op == "conv_pool"
    assert set(step.nodes) == {"conv", "act", "pool"}
    assert (step.inputs, step.output) == (("x", "w"), "y")
    assert isinstance(step.params, ConvPool)
    behind = activation == "Tanh" and pool == "MaxPool"
    kind = activation.lower()
    activated = (step.params.conv.activation, step.params.pool.activation)
    assert activated == ((None, kind) if behind else (kind, None))
    # im2col over a whole batch is faster than image by image.
    assert ops(plan(graph, BATCH)) == ["conv", "pool"]
    (group,) = groups(graph, BATCH)
    assert (group.nodes, group.op_type) == (("conv", "act", "pool"), f"Conv+{pool}")
    assert (group.flops, group.nbytes) == (step.params.flops, step.params.nbytes)
    assert group.nbytes < sum(apart.params.nbytes for apart in plan(graph, BATCH).steps)
    # Where no GPU is looked at, the two have a row each, as they have a step each.
    apart = groups(replace(graph, devices=("cpu",)), BATCH)
    assert [group.nodes for group in apart] == [("conv", "act"), ("pool",)]
    # The kernel for both that the CPU has, which ladders show, gives what the reference does.
    joined = plan(graph, BATCH, joined=True)
    assert ops(joined) == ["conv_pool"]
    agree(graph, {"x": X}, BATCH)
    got = run_plan(graph, BATCH, {"x": X}, joined=True)["y"]
    np.testing.assert_allclose(got, run_ort(graph, {"x": X})["y"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "graph",
    [
        net("Relu", outputs=("a", "y")),
        net("Relu", kernel_shape=[3, 3], strides=[2, 2]),  # windows overlap: sums would be made twice
        net("Relu", kernel_shape=[2, 2], strides=[2, 2], pads=[1, 1, 1, 1]),
    ],
    ids=["given out", "overlapping", "padded"],
)
def test_what_a_convolution_does_not_join(graph: Graph) -> None:
    assert ops(plan(graph, BATCH, "cuda")) == ["conv", "pool"]
    assert len(groups(graph, BATCH)) == 2


@pytest.mark.parametrize(("channels", "joined"), [(12, True), (13, False)])
def test_a_convolution_with_long_sums_keeps_its_step(channels: int, joined: bool) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv"),
        helper.make_node("MaxPool", ["c"], ["y"], "pool", **HALVES),
    ]
    weights = {"w": random((4, channels, 5, 5), 1)}
    proto = make_model(nodes, {"x": ("N", channels, 12, 12)}, ("y",), weights, ranks={"y": 4})
    made = plan(from_proto(proto, "net"), BATCH, "cuda")
    assert ops(made) == (["conv_pool"] if joined else ["conv", "pool"])


def test_a_convolution_that_something_else_reads_too_keeps_its_step() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv"),
        helper.make_node("MaxPool", ["c"], ["p"], "pool", **HALVES),
        helper.make_node("AveragePool", ["c"], ["q"], "mean", **HALVES),
        helper.make_node("Add", ["p", "q"], ["y"], "sum"),
    ]
    proto = make_model(nodes, {"x": ("N", 3, 9, 8)}, ["y"], {"w": random((4, 3, 2, 2), 1)}, ranks={"y": 4})
    assert ops(plan(from_proto(proto), BATCH, "cuda")) == ["conv", "pool", "pool", "binary"]


def test_weights_that_are_no_constants_are_not_packed_and_so_not_joined() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv"),
        helper.make_node("MaxPool", ["c"], ["y"], "pool", **HALVES),
    ]
    given = {"x": ("N", 3, 9, 8), "w": (4, 3, 2, 2)}
    graph = from_proto(make_model(nodes, given, ["y"], ranks={"y": 4}))
    assert ops(plan(graph, BATCH, "cuda")) == ["conv", "pool"]


def test_an_image_that_does_not_fit_into_shared_memory_stays_apart() -> None:
    """As AlexNet's fifth convolution."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("MaxPool", ["c"], ["y"], "pool", **HALVES),
    ]
    weights = {"w": random((8, 384, 3, 3), 1)}
    graph = from_proto(make_model(nodes, {"x": ("N", 384, 13, 13)}, ["y"], weights, ranks={"y": 4}))
    assert ops(plan(graph, BATCH, "cuda")) == ["conv", "pool"]
    (step,) = plan(graph, BATCH, "cuda", joined=True).steps
    assert (step.op, step.rung) == ("conv_pool", registry.rungs("cuda", "conv_pool")[0].name)


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Keeps a time for a step's params, in a cache of the test's own, on a device that is none."""
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(cuda_driver, "device", lambda: CudaDevice("a GPU", (9, 0)))

    def keep(params: Params, precision: str, ns: float) -> None:
        rungs = choices.candidates("cuda", params, precision, True)
        took = choices.Tried(variant=rungs[0].name, first_ns=2 * ns, time_ns=ns)
        made = choices.Choice(default=rungs[0].name, best=rungs[0].name, tried=(took,), done=True)
        choices.write("cuda", params, precision, rungs, None, made)

    return keep


@pytest.mark.parametrize("precision", ["fp32-tc", "tf32", "fp16"])
def test_a_coarser_precision_joins_as_fp32_does_and_says_so(precision: str) -> None:
    made = plan(net("Tanh"), BATCH, "cuda", precision)
    assert ops(made) == ["conv_pool"] == ops(plan(net("Tanh"), BATCH, "cuda"))
    assert made.steps[0].precision == "fp32"
    assert made.chosen_words == "1 by the ladder, 1 product in fp32"
    assert plan(net("Tanh"), BATCH, "cuda").chosen_words == "1 by the ladder"
    assert "lrn_pool" in ops(plan(normalising(), BATCH, "cuda", precision))


@pytest.mark.parametrize(("apart", "expected"), [(4.0, ["conv", "pool"]), (6.0, ["conv_pool"])])
def test_two_steps_of_the_precision_are_taken_where_they_were_timed_to_be_faster(
    timed: Callable[..., None], apart: float, expected: list[str]
) -> None:
    graph = net("Tanh")
    (both,) = plan(graph, BATCH, "cuda", "fp16").steps
    conv, pool = plan(graph, BATCH, "cuda", "fp16", joined=False).steps
    assert conv.precision == "fp16"
    asked = [item.params for item in wanted(graph, BATCH, "cuda", "fp16", Options())]
    assert asked == [both.params, conv.params, pool.params]
    assert [item.params.op for item in wanted(graph, BATCH, "cuda", "fp32", Options())] == ["conv_pool"]
    timed(both.params, "fp16", 9.0)
    timed(conv.params, "fp16", apart)
    assert ops(plan(graph, BATCH, "cuda", "fp16")) == ["conv_pool"], "the pool is not timed yet"
    timed(pool.params, "fp16", 4.0)
    assert ops(plan(graph, BATCH, "cuda", "fp16")) == expected
    assert ops(plan(graph, BATCH, "cuda", "fp16", Options(tuned=False))) == ["conv_pool"]
    assert ops(plan(graph, BATCH, "cuda", "tf32")) == ["conv_pool"], "another precision has its own times"
    assert not wanted(graph, BATCH, "cuda", "fp16", Options())


def test_the_plain_kernel_for_both_is_no_reason_to_join(monkeypatch: pytest.MonkeyPatch) -> None:
    every = registry.candidates

    def plain(device: str, op: str, *more: Any) -> tuple[registry.Rung, ...]:
        return tuple(rung for rung in every(device, op, *more) if op != "conv_pool" or rung.number == 1)

    monkeypatch.setattr(registry, "candidates", plain)
    assert ops(plan(net("Tanh"), BATCH, "cuda")) == ["conv", "pool"]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_rung_named_for_a_convolution_or_its_pool_says_whether_they_are_joined(device: str) -> None:
    both, conv, pool = ([r.name for r in registry.rungs(device, op)] for op in ("conv_pool", "conv", "pool"))
    shared = set(both) & {*conv, *pool}
    assert not shared, f"a rung of conv_pool needs a name that conv and pool do not have: {shared}"
    for node, rung in [("conv", conv[0]), ("pool", pool[0]), ("conv", both[0]), ("pool", both[0])]:
        made = plan(net("Tanh"), BATCH, device, options=Options(rungs={node: rung}))
        step = next(step for step in made.steps if node in step.nodes)
        assert step.rung == rung
        assert (step.op == "conv_pool") == (rung in both)
