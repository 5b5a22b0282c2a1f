"""Random nets some of whose nodes ONNX Runtime's CUDA provider leaves to the CPU: in front, in the middle, at
the end, everywhere, beside others that read the same input."""

from __future__ import annotations

import numpy as np
from onnx import helper, numpy_helper

from engine.graph.graph import Graph
from engine.graph.importer import from_proto

WIDTH = 8
ON_CPU = ("Scaler", "Normalizer")  # of ai.onnx.ml, for which there are no CUDA kernels
PLACES = ("front", "middle", "end", "beside", "everywhere", "drawn")
LONGEST = 6  # nodes in a row
EACH = tuple(f"at {index}" for index in range(LONGEST))  # one node, at each place of a net of so many


def net(place: str, seed: int = 0, batch: int | str = "N") -> Graph:
    """Products, sums and activations of (batch, WIDTH), with nodes for the CPU at this place (of PLACES or
    EACH)."""
    random = np.random.default_rng([seed, (*PLACES, *EACH).index(place)])
    length = LONGEST if place in EACH else int(random.integers(3, LONGEST + 1))
    on_cpu = {
        **{at: {index} for index, at in enumerate(EACH)},
        "front": {0},
        "middle": {length // 2},
        "end": {length - 1},
        "beside": set(),
        "everywhere": set(range(length)) - {length // 2},
        "drawn": set(np.flatnonzero(random.random(length) < 0.5).tolist()),
    }[place]
    nodes, weights, last = [], {}, "x"
    for index in range(length):
        made = f"t{index}"
        if index in on_cpu:
            nodes.append(_of_cpu(str(random.choice(ON_CPU)), last, made, random))
        else:
            weights[f"w{index}"] = random.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 2
            nodes.append(helper.make_node("MatMul", [last, f"w{index}"], [f"p{index}"], f"product{index}"))
            nodes.append(helper.make_node("Relu", [f"p{index}"], [made], f"relu{index}"))
        last = made
    outputs = [last]
    if place in ("beside", "drawn"):  # read by nodes on both; and an output of each
        nodes.append(_of_cpu("Scaler", "x", "scaled", random))
        nodes.append(helper.make_node("Add", [last, "scaled"], ["sum"], "sum"))
        outputs += ["sum", "scaled"]
    ends = [
        [helper.make_tensor_value_info(name, 1, [batch, WIDTH]) for name in names]
        for names in (["x"], outputs)
    ]
    held = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    graph = helper.make_graph(nodes, f"{place}{seed}", *ends, held)
    name = f"{place.replace(' ', '')}{seed}"
    return from_proto(helper.make_model(graph, opset_imports=opsets, ir_version=8), name)


def _of_cpu(op_type: str, read: str, made: str, random: np.random.Generator):
    if op_type == "Normalizer":
        return helper.make_node(op_type, [read], [made], f"cpu_{made}", domain="ai.onnx.ml", norm="L2")
    offset, scale = random.standard_normal(WIDTH), random.uniform(0.5, 2, WIDTH)
    return helper.make_node(
        op_type, [read], [made], f"cpu_{made}", domain="ai.onnx.ml",
        offset=offset.astype(np.float32).tolist(), scale=scale.astype(np.float32).tolist(),
    )  # fmt: skip


def inputs(seed: int, batch: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).standard_normal((batch, WIDTH)).astype(np.float32)}
