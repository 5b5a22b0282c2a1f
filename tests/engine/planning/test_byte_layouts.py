"""Nets in eight bits on CUDA: bytes travel with the channels of a pixel side by side, what stands between two
scales is one step, and the answer is that of the CPU's kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from onnx import helper

from engine import backends
from engine.backend import Options
from engine.cuda.simulated import SimulatedRungSession
from engine.cuda.stages import Launches
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.graph.plan import Plan
from engine.planning import planner
from engine.planning.groups import groups
from kernels import nvrtc
from kernels.layouts import BYTES, PLAIN, nbytes
from tests.engine.harness import make_model

CUDA = ("cuda",)


def network(scale_behind_norm: float = 0.02) -> Graph:
    """AlexNet's kinds of steps between QuantizeLinear and DequantizeLinear; maps that no chunk divides."""
    rng = np.random.default_rng(0)
    constants: dict[str, np.ndarray] = {}
    nodes = []

    def scaled(name: str, source: str, scale: float, zero: int, dtype: str = "int8") -> str:
        constants.update({f"{name}_s": np.float32(scale), f"{name}_z": np.array(zero, dtype)})
        parameters = [f"{name}_s", f"{name}_z"]
        nodes.append(helper.make_node("QuantizeLinear", [source, *parameters], [f"{name}_q"], f"{name}_Q"))
        nodes.append(
            helper.make_node("DequantizeLinear", [f"{name}_q", *parameters], [f"{name}_d"], f"{name}_D")
        )
        return f"{name}_d"

    def weights(name: str, *shape: int) -> str:
        values = rng.integers(-127, 128, shape).astype(np.int8)
        constants.update({name: values, f"{name}_s": np.float32(0.01 / np.sqrt(np.prod(shape[1:])))})
        constants[f"{name}_z"] = np.array(0, np.int8)
        nodes.append(
            helper.make_node("DequantizeLinear", [name, f"{name}_s", f"{name}_z"], [f"{name}_d"], f"{name}_D")
        )
        return f"{name}_d"

    def of(op_type: str, name: str, *inputs: str, **attributes: object) -> str:
        nodes.append(helper.make_node(op_type, inputs, [name], name, **attributes))
        return name

    pool = {"kernel_shape": [3, 3], "strides": [2, 2]}
    at = of("Conv", "conv1", scaled("x0", "x", 0.03, 3), weights("w1", 40, 3, 5, 5), strides=[2, 2])
    at = of("LRN", "norm1", scaled("c1", of("Relu", "relu1", at), 0.01, -128), size=5, alpha=0.5)
    at = of("MaxPool", "pool1", at, **pool)
    at = of(
        "Conv", "conv2", scaled("p1", at, scale_behind_norm, -100), weights("w2", 32, 40, 3, 3), pads=[1] * 4
    )
    at = of("Conv", "conv3", scaled("c2", at, 0.02, 5), weights("w3", 64, 16, 3, 3), group=2)
    at = of("MaxPool", "pool3", scaled("c3", at, 0.02, 5), **pool)
    at = of("Flatten", "flat", scaled("p3", at, 0.02, 5))
    at = of("Gemm", "fc4", scaled("f3", at, 0.02, 5), weights("w4", 10, 64 * 4), transB=1)
    nodes[-1].output[0] = "y"
    return from_proto(make_model(nodes, {"x": ("N", 3, 35, 35)}, ("y",), constants))


def planned(graph: Graph, batch: int = 3, **options: object) -> Plan:
    how = Options(tuned=False, one_kernel=False, **options)  # type: ignore[arg-type]
    return planner.plan(graph, batch, "cuda", "fp32", how, choose=planner.ladder_choice(how, (8, 0)))


def test_bytes_travel_in_chunks_between_the_steps_that_can_read_them() -> None:
    made = planned(network())
    by_name = {step.output: step for step in made.steps}
    travelling = [step.op for step in made.steps if step.writes == BYTES]
    assert travelling == ["qconv", "lrn_pool", "qconv", "qconv"]
    first = by_name["c1_q"]
    assert made.placements["c1_q"].nbytes == nbytes(BYTES, first.params.output_shape) == 3 * 16 * 16 * 48
    pool = by_name["p3_q"]
    assert (pool.op, pool.reads, pool.writes) == ("pool", BYTES, PLAIN), (
        "what is flattened lies as ONNX has it"
    )
    assert {step.writes for step in planned(network(), layouts="none").steps} == {PLAIN}


def test_a_normalisation_between_two_scales_is_one_step_where_there_is_a_kernel_for_that() -> None:
    graph = network()
    step = next(step for step in planned(graph).steps if step.op == "lrn_pool")
    assert step.nodes == ("c1_D", "norm1", "pool1", "p1_Q")
    assert (step.params.dtype, step.params.to, step.params.x_zero, step.params.out_zero) == (
        "int8",
        "int8",
        -128,
        -100,
    )  # type: ignore[attr-defined]
    on_cpu = planner.plan(graph, 3, "cpu", "fp32", Options(tuned=False))
    assert "quantize" in [step.op for step in on_cpu.steps]
    # Beside a CPU, which rounds apart, its nodes are looked at apart.
    apart, alone = (groups(replace(graph, devices=d), 3) for d in (("cpu", "cuda"), CUDA))
    assert step.nodes in [group.nodes for group in alone]
    assert ("norm1", "pool1") in [group.nodes for group in apart]
    # A scale of nothing is none that can be divided by.
    assert all(
        step.op != "lrn_pool" or step.params.dtype == "float32" for step in planned(network(0.0)).steps
    )


@pytest.mark.slow
@pytest.mark.sampled(4, "long")
@pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
@pytest.mark.parametrize("batch", [1, 3])
def test_layouts_of_bytes_change_no_answer(batch: int) -> None:
    """On the simulated GPU; bytes between steps are the CPU's, one by one."""
    graph = replace(network(), devices=CUDA)
    x = np.random.default_rng(1).standard_normal((batch, 3, 35, 35)).astype(np.float32)
    made, launches = planned(graph, batch, layouts="all"), Launches(Options(tuned=False))
    held: dict[str, np.ndarray] = {**made.weights, "x": x}
    for step in made.steps:
        rung, _ = launches.of_step(step)
        given = []
        for place, name in enumerate(step.inputs):
            array, spec = held[made.holder(name)], made.tensors[name]
            laid_out = place == 0 and step.reads != PLAIN
            given.append(array if laid_out else array.reshape(-1).view(spec.dtype).reshape(spec.shape))
        session = SimulatedRungSession(rung, step.params, given)
        session.run()
        assert session.report.findings == [], (step.name, rung.label)
        held[step.output] = session.output() if step.writes == PLAIN else session.output_bytes.copy()
    cpu = backends.get("engine-cpu").prepare(
        replace(graph, devices=("cpu",)), batch, "fp32", Options(tuned=False)
    )
    cpu.bind({"x": x})
    cpu.run()
    expected = cpu.fetch()["y"]
    cpu.close()
    assert len(np.unique(expected)) > 9
    np.testing.assert_array_equal(held["y"].reshape(expected.shape), expected)
