"""Which steps of a plan can be one kernel, and how such a kernel is shared out."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from bench.questions import model_facts
from engine.backend import Options
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.machine import driver as cuda_driver
from engine.machine.driver import CudaDevice
from engine.planning import runs
from engine.planning.planner import plan
from kernels.net import plan as sharing
from kernels.net.records import Way

CAPABILITIES = [(7, 5), (8, 0), (8, 6), (9, 0)]


def net(*more: onnx.NodeProto, outputs: tuple[str, ...] = ("y",), wide: int = 30) -> Graph:
    """Conv, Tanh, MaxPool, Flatten, Gemm, Relu, Gemm, Softmax."""
    rng = np.random.default_rng(1)
    shapes = {"w1": (4, 1, 3, 3), "b1": (4,), "w2": (wide, 4 * 5 * 5), "b2": (wide,), "w3": (wide, 10)}
    held = [
        numpy_helper.from_array(rng.standard_normal(s).astype(np.float32) / 5, n) for n, s in shapes.items()
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c"], "conv"),
        helper.make_node("Tanh", ["c"], ["t"], "tanh"),
        helper.make_node("MaxPool", ["t"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"], "flat"),
        helper.make_node("Gemm", ["f", "w2", "b2"], ["g"], "fc", transB=1),
        helper.make_node("Relu", ["g"], ["r"], "relu"),
        helper.make_node("MatMul", ["r", "w3"], ["m"], "scores"),
        helper.make_node("Softmax", ["m"], ["y"], "prob", axis=1),
        *more,
    ]
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1, 12, 12])]
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(nodes, "net", ends, given, held)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return from_proto(onnx.shape_inference.infer_shapes(made), "net")


@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16"])
def test_a_small_net_is_one_run(precision: str) -> None:
    made = plan(net(), 7, "cuda", precision)
    run = runs.longest(made)
    assert run is not None
    assert (run.start, run.end) == (0, len(made.steps))
    assert run.nodes == tuple(n for n in ("conv", "pool", "tanh", "fc", "relu", "scores", "prob"))
    assert [weights is not None for weights in run.weights(made)] == [True, True, True, False]


@pytest.mark.parametrize(
    ("graph", "options", "names"),
    [
        (net(outputs=("y", "r")), Options(), ["conv", "fc"]),  # what is given out on the way ends one
        (
            net(helper.make_node("Erf", ["y"], ["z"], "erf"), outputs=("z",)),
            Options(),
            ["conv", "fc", "scores", "prob"],
        ),
        (net(), Options(rungs={"fc": "naive"}), ["scores", "prob"]),
        (net(), Options(rungs={"fc": "naive", "scores": "naive"}), []),
    ],
    ids=["given out", "another operator", "named", "nothing left"],
)
def test_what_ends_a_run(graph: Graph, options: Options, names: list[str]) -> None:
    run = runs.longest(plan(graph, 2, "cuda", options=options))
    assert [step.name for step in run.steps] == names if run else not names


def test_a_time_holds_for_the_batch_and_the_kernels_that_it_stands_against(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(cuda_driver, "device", lambda: CudaDevice("a GPU", (9, 0)))
    made = plan(net(), 7, "cuda")
    run = runs.longest(made)
    assert run is not None
    runs.write(made, run, runs.Timed(way=(1, 4, 128, 2, 6, False, "", False, 1), one_ns=1.0, apart_ns=2.0))
    known = runs.read(made, run)
    assert known is not None
    assert known.taken == Way(1, 4, 128, 2, 6)
    words = "; 4 steps as one kernel in fp32 (a block of 128 threads for 4 images), timed: a pass 1.00 ns"
    assert model_facts._as_one(made).startswith(words)
    assert model_facts._as_one(plan(net(), 7)) == ""
    for other in (plan(net(), 8, "cuda"), plan(net(), 7, "cuda", "fp16")):
        again = runs.longest(other)
        assert again is not None
        assert runs.read(other, again) is None


@pytest.mark.sampled(6)
@pytest.mark.parametrize("capability", CAPABILITIES, ids=str)
@pytest.mark.parametrize("batch", [1, 16, 100, 1000, 10_000])
@pytest.mark.parametrize("cores", [(False, ""), (True, ""), (True, "bfloat16")], ids=["fp32", "tf32", "bf16"])
def test_every_way_fits_the_device(capability: tuple[int, int], batch: int, cores: tuple[bool, str]) -> None:
    run = runs.longest(plan(net(), batch, "cuda"))
    assert run is not None
    found = sharing.ways(run.layers, batch, capability, 132, *cores)
    assert found
    assert all(way.half == (cores[1] if way.tensor else "") for way in found)
    assert any(way.tensor for way in found) == (cores[0] and capability >= (8, 0))
    for way in found:
        lies = sharing.room(run.layers, way, sharing.block_nbytes(capability, way))
        assert lies is not None
        most = {(7, 5): 64, (8, 0): 164, (8, 6): 100, (9, 0): 228}[capability] << 10
        assert way.blocks * (lies.nbytes + 1024 * (capability >= (8, 0))) <= most
        assert way.ranks == 1 or capability >= (9, 0)
        ends = [(b.at, b.at + b.floats * way.images) for b in lies.buffers]
        # What a step reads and what it writes never overlap, and borders are nobody else's.
        for (begin, end), (start, last) in itertools.pairwise(ends):
            assert end <= start or last <= begin
        bordered = [ends[i][1] for i, buffer in enumerate(lies.buffers) if buffer.bordered]
        assert max(bordered, default=0) <= lies.bordered
        assert lies.bordered % 4 == 0


def test_a_net_that_is_too_large_is_none() -> None:
    run = runs.longest(plan(net(wide=4000), 1, "cuda"))
    assert run is not None
    assert not sharing.ways(run.layers, 1, (9, 0), 132)
