"""Inputs and outputs of element types that NumPy has not (bfloat16, floats of eight bits): what is fed and
fetched is of the wider type, and the model converts it. So it is the same on every backend, and timed in it.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import onnx
from onnx import helper

from engine.graph import importer
from engine.graph.graph import Graph
from engine.graph.normal_form import rename
from kernels.ops import WIDER


def of_numpy(graph: Graph) -> tuple[Graph, tuple[str, ...]]:
    """The graph with a Cast behind each such input and before each such output, and what was done in
    sentences. Names stay; inside, a tensor that was an end is called by its type, too."""
    given = {info.name: info.dtype for info in graph.inputs if _foreign(info.dtype)}
    left = {
        info.name: info.dtype for info in graph.outputs if _foreign(info.dtype) and info.name not in given
    }
    if not given and not left:
        return graph, ()
    inner = {name: f"{name}:{dtype}" for name, dtype in (given | left).items()}
    proto = onnx.ModelProto()
    proto.CopyFrom(graph.proto)
    nodes = [_cast(name, inner[name], dtype) for name, dtype in given.items()]
    for made in graph.proto.graph.node:
        nodes.append(onnx.NodeProto())
        nodes[-1].CopyFrom(made)
        rename(nodes[-1], inner)
    nodes += [_cast(inner[name], name, WIDER[dtype]) for name, dtype in left.items()]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    for held in (*proto.graph.initializer, *proto.graph.value_info):
        held.name = inner.get(held.name, held.name)
    for end in (*proto.graph.input, *proto.graph.output):
        if end.name in inner:
            end.type.tensor_type.elem_type = _number(WIDER[(given | left)[end.name]])
    digest = hashlib.sha256(f"{graph.sha256} {sorted(inner.values())}".encode()).hexdigest()
    values = {inner.get(name, name): array for name, array in graph.initializers.items()}
    made_of = importer.from_proto(proto, graph.name, sha256=digest, values=values)
    notes = [
        f"input {name} is {dtype}, and is fed in {WIDER[dtype]}: {_WHY}" for name, dtype in given.items()
    ]
    notes += [
        f"output {name} is {dtype}, and is given in {WIDER[dtype]}: {_WHY}" for name, dtype in left.items()
    ]
    return replace(made_of, devices=graph.devices, left_out=graph.left_out), tuple(notes)


_WHY = "NumPy has no such type; a Cast in the model converts it, on every backend"


def _foreign(dtype: str) -> bool:
    return dtype in WIDER and not hasattr(np, dtype)


def _number(dtype: str) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def _cast(of: str, to: str, dtype: str) -> onnx.NodeProto:
    return helper.make_node("Cast", [of], [to], f"{to}:cast", to=_number(dtype))
