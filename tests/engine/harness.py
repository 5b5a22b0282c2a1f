"""Builds small models and runs plans in the plainest way: the first rung of each op that takes it, in a
poisoned arena."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.graph.plan import Plan
from engine.planning.planner import Chosen, plan
from kernels import registry
from kernels.cpu import load
from kernels.ops import Params
from kernels.registry import Rung

Feeds = Mapping[str, np.ndarray]


def in_numpy(p: Params) -> Rung:
    """What engine-cpu takes where nothing can be compiled."""
    able = (r for r in registry.candidates("cpu", p.op) if not r.compiled and r.refusal(p) is None)
    return next(able)


def make_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    outputs: Sequence[str],
    constants: Mapping[str, np.ndarray] | None = None,
    opset: int = 17,
    ranks: Mapping[str, int] | None = None,
    types: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    """A model proto; output ranks default to 2 and types to float32."""
    types = types or {}
    return helper.make_model(
        helper.make_graph(
            list(nodes),
            "made",
            [helper.make_tensor_value_info(n, types.get(n, TensorProto.FLOAT), s) for n, s in inputs.items()],
            [
                helper.make_tensor_value_info(
                    n, types.get(n, TensorProto.FLOAT), [None] * (ranks or {}).get(n, 2)
                )
                for n in outputs
            ],
            [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()],
        ),
        ir_version=8,
        opset_imports=[helper.make_opsetid("", opset)],
    )


def one_node(
    op_type: str,
    x: tuple[int, ...],
    constants: Sequence[np.ndarray | None] = (),
    opset: int = 17,
    outputs: int = 1,
    rank: int | None = None,
    **attributes: Any,
) -> Graph:
    """y = op_type(x, constants…), x with a dynamic first axis; None leaves an optional input out."""
    named = {f"c{i}": value for i, value in enumerate(constants) if value is not None}
    names = ["x", *(f"c{i}" if value is not None else "" for i, value in enumerate(constants))]
    node = helper.make_node(op_type, names, ["y", *(f"y{i}" for i in range(1, outputs))], "it", **attributes)
    ranks = {"y": len(x) if rank is None else rank}
    return from_proto(make_model([node], {"x": ("N", *x[1:])}, ["y"], named, opset, ranks), "one")


def run_ort(graph: Graph, feeds: Feeds) -> dict[str, np.ndarray]:
    """ONNX Runtime's answer, its optimisations off."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        graph.whole_proto().SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [info.name for info in graph.outputs]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def first_rung(device: str, wanted: Any, node: str, weights_known: bool, precision: str) -> Chosen:
    able = (rung for rung in registry.rungs(device, wanted.op) if rung.refusal(wanted) is None)
    return Chosen(next(able).name)


def bare(graph: Graph, batch: int) -> Plan:
    """A plan without rungs, for questions of structure."""
    return plan(graph, batch, choose=lambda device, wanted, node, known, precision: Chosen(""))


def run_plan(graph: Graph, batch: int, feeds: Feeds, joined: bool | None = None) -> dict[str, np.ndarray]:
    """Outputs of the plan, run twice without binding again; the arena starts as NaN."""
    made = plan(graph, batch, choose=first_rung, joined=joined)
    check_memory(made)
    arena = np.full(made.arena_nbytes, 0xFF, np.uint8)

    def tensor(name: str) -> np.ndarray:
        spec, held = made.tensors[name], made.holder(name)
        if held in made.weights:
            return made.weights[held].reshape(spec.shape)
        place = made.placements[held]
        return arena[place.offset : place.offset + place.nbytes].view(spec.dtype).reshape(spec.shape)

    for name in made.inputs:
        tensor(name)[...] = feeds[name]
    for _ in range(2):
        for step in made.steps:
            kernel = load(registry.find("cpu", step.op, step.rung))
            arrays = [tensor(name) for name in step.inputs]
            weights = [
                a if made.holder(n) in made.weights else None
                for n, a in zip(step.inputs, arrays, strict=True)
            ]
            packed = kernel.pack(step.params, weights)
            arrays = [p if p is not None else a for p, a in zip(packed, arrays, strict=True)]
            scratch = np.full(-(-kernel.workspace(step.params) // 4), np.nan, np.float32)
            with np.errstate(all="ignore"):
                kernel.bind(step.params, arrays, tensor(step.output), scratch)()
    return {name: tensor(name).copy() for name in made.outputs}


def check_memory(made: Plan) -> None:
    """Walk the plan twice, noting whose every 256 bytes of the arena are: no tensor may be read after another
    was written over it, and inputs and outputs must be whole at the end."""
    owner: dict[int, str] = {}

    def blocks(name: str) -> range:
        place = made.placements[name]
        assert place.offset % 256 == 0
        assert place.nbytes == made.tensors[name].nbytes
        assert place.offset + place.nbytes <= made.arena_nbytes
        return range(place.offset // 256, -(-(place.offset + place.nbytes) // 256))

    def write(name: str) -> None:
        owner.update(dict.fromkeys(blocks(name), name))

    def read(name: str) -> None:
        held = made.holder(name)
        if held not in made.weights:
            assert {owner.get(block) for block in blocks(held)} == {held}, f"{name} was overwritten"

    for name in made.inputs:
        write(name)
    for _ in range(2):
        for step in made.steps:
            for name in step.inputs:
                read(name)
            write(step.output)
            for name in step.inputs:
                read(name)  # a kernel may read its inputs until it has written all of its output
        for name in (*made.inputs, *made.outputs):
            read(name)


def random(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape), np.float32)


def agree(graph: Graph, feeds: Feeds, batch: int, tolerance: float = 2e-5) -> None:
    """Our plan and ONNX Runtime give the same shapes and, within `tolerance` of the largest, values."""
    ours, theirs = run_plan(graph, batch, feeds), run_ort(graph, feeds)
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        assert ours[name].shape == expected.shape
        assert ours[name].dtype == expected.dtype
        largest = float(np.abs(expected).max()) if expected.size else 0.0
        np.testing.assert_allclose(ours[name], expected, rtol=1e-4, atol=tolerance * max(largest, 1.0))
