"""Changed models and weights, loaded, cut into groups and planned."""

from __future__ import annotations

import contextlib
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from engine.graph.importer import load
from engine.planning.groups import groups
from engine.planning.planner import plan
from tests.engine.backends.nets import small_net
from tests.engine.graph.test_bad_models import RELU, nested, twice, with_functions
from tests.engine.harness import make_model
from tests.fuzz import changes
from tests.fuzz.nets import SHAPED, SMALL_CONSTANTS
from tests.fuzz.ours import ours


@cache
def models() -> dict[str, bytes]:
    """Honest ONNX files."""
    from models import catalogue

    shaped = make_model(SHAPED, {"x": ("N", 2, 2)}, ["y"], SMALL_CONSTANTS, ranks={"y": 3})
    return {
        "net": small_net().whole_proto().SerializeToString(),
        "fixed": small_net(2).whole_proto().SerializeToString(),
        "shapes": shaped.SerializeToString(),
        "functions": with_functions([RELU, *(twice(i) for i in range(3))], 3).SerializeToString(),
        "subgraphs": nested(2).SerializeToString(),
        **{name: catalogue.path(name).read_bytes() for name in ("lenet5-digits", "ece408-low")},
    }


@cache
def _parts() -> tuple[Any, ...]:
    """What stands in any of the models, to be put into another."""
    return tuple(
        part
        for name, data in models().items()
        if name not in ("lenet5-digits", "ece408-low")  # whose weights are most of them
        for part in changes.messages(onnx.ModelProto.FromString(data))
    )


def model(folder: Path, drawn: random.Random) -> int:
    """An ONNX model, its bytes or fields changed, loaded, cut into groups and planned."""
    name, data = drawn.choice(list(models().items()))
    if drawn.random() < 0.4:
        made = changes.turned(data, drawn)
    else:
        proto = onnx.ModelProto.FromString(data)
        changes.edit(proto, drawn, _parts())
        with contextlib.suppress(ValueError):  # not UTF-8, or deeper than protobuf writes
            data = proto.SerializeToString()
        made = data
    _loaded(folder / f"{name}.onnx", made, drawn.choice(["cpu", "cuda"]))
    return 1


def tensor(folder: Path, drawn: random.Random) -> int:
    """A model of one node and one weight, of which everything that a weight says of itself is changed."""
    proto = onnx.ModelProto.FromString(_one_weight())
    changes.edit(proto.graph.initializer[0], drawn, most=4)
    if drawn.random() < 0.3:
        changes.edit(proto.graph.input[0], drawn)
    if drawn.random() < 0.3:
        entry = proto.graph.initializer[0].external_data.add()
        entry.key, entry.value = (
            drawn.choice(["location", "offset", "length"]),
            drawn.choice(changes.TEXTS[:4]),
        )
        proto.graph.initializer[0].data_location = drawn.choice([0, 1])
    try:
        data = proto.SerializeToString()
    except ValueError:
        return 1
    _loaded(folder / "weight.onnx", changes.turned(data, drawn) if drawn.random() < 0.2 else data, "cpu")
    return 1


@cache
def _one_weight() -> bytes:
    node = onnx.helper.make_node("Add", ["x", "w"], ["y"], "add")
    made = make_model([node], {"x": ("N", 4)}, ["y"], {"w": np.ones((1, 4), np.float32)})
    data: bytes = made.SerializeToString()
    return data


def _loaded(path: Path, data: bytes, device: str) -> None:
    path.write_bytes(data)
    with ours():
        graph = load(path)
        batch = graph.fixed_batch or 2
        groups(graph, batch)
        plan(graph, batch, device)
