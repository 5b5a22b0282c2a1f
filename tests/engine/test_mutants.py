"""Models with some of their bytes or fields changed, by a generator with a seed: taken or refused."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError, Message  # type: ignore[import-untyped]
from onnx import helper

from engine.groups import groups
from engine.importer import from_proto
from engine.planner import plan
from kernels.errors import KernelscopeError
from tests.backends.nets import small_net
from tests.engine.harness import make_model
from tests.engine.test_bad_models import RELU, nested, twice, with_functions


def mutant(data: bytes, rng: np.random.Generator) -> bytes:
    """The file with some bytes turned, put in, cut out or said twice."""
    made = bytearray(data)
    # What steers lies before and behind the weights, which are most of a file.
    edge = min(len(made), 700)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, edge)) if rng.random() < 0.5 else len(made) - 1 - int(rng.integers(0, edge))
        at = max(0, min(at, len(made) - 1))
        match int(rng.integers(0, 4)):
            case 0:
                made[at] ^= 1 << int(rng.integers(0, 8))
            case 1:
                made[at] = int(rng.choice([0, 1, 2, 127, 128, 255]))
            case 2:
                del made[at : at + int(rng.integers(1, 9))]
            case 3:
                made[at:at] = made[at : at + int(rng.integers(1, 9))]
    return bytes(made)


def messages(message: Message) -> list[Message]:
    """A message and all in it."""
    found = [message]
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if hasattr(value, "extend") else [value]:
                found += messages(inner)
    return found


def edited(data: bytes, rng: np.random.Generator) -> bytes:
    """The model with fields set to what is no value of theirs, gone, or said twice."""
    model = onnx.ModelProto.FromString(data)
    parts = messages(model)
    for _ in range(int(rng.integers(1, 3))):
        part = parts[int(rng.integers(0, len(parts)))]
        fields = [field for field, _ in part.ListFields()]
        if not fields:
            continue
        field = fields[int(rng.integers(0, len(fields)))]
        value = getattr(part, field.name)
        if hasattr(value, "extend"):
            at = int(rng.integers(0, len(value)))
            if field.type == field.TYPE_INT64:
                value[at] = int(rng.choice(NUMBERS))
            elif field.type == field.TYPE_STRING:
                value[at] = str(rng.choice(WORDS))
            elif rng.random() < 0.5:
                value.append(value[at])
            else:
                del value[at]
        elif field.type == field.TYPE_INT64:
            setattr(part, field.name, int(rng.choice(NUMBERS)))
        elif field.type == field.TYPE_INT32:
            setattr(part, field.name, int(rng.choice([-1, 0, 1, 7, 8, 9, 10, 16, 22, 99])))
        elif field.type == field.TYPE_STRING:
            setattr(part, field.name, str(rng.choice(WORDS)))
        else:
            part.ClearField(field.name)
    return model.SerializeToString()


# Of each model and kind of change; more by hand.
MUTANTS = int(os.environ.get("KERNELSCOPE_MUTANTS", "200"))
NUMBERS = [0, 1, -1, 2, 3, 7, 1000, 2**31, -(2**31), 2**40, 2**62, -(2**62)]
WORDS = [
    "",
    "x",
    "y",
    "c1",
    "w1",
    "Relu",
    "Add",
    "Squeeze",
    "Softmax",
    "Constant",
    "Cast",
    "Pad",
    "a\nb",
    "N",
]
SHAPED = [
    helper.make_node("Shape", ["x"], ["s"], "shape"),
    helper.make_node("Gather", ["s", "i"], ["n"], "gather"),
    helper.make_node("Concat", ["n", "m"], ["c1"], "concat", axis=0),
    helper.make_node("Reshape", ["x", "c1"], ["r"], "reshape"),
    helper.make_node("Unsqueeze", ["r", "i"], ["u"], "unsqueeze"),
    helper.make_node("Pad", ["u", "p"], ["d"], "pad"),
    helper.make_node("Transpose", ["d"], ["t"], "transpose", perm=[1, 0, 2]),
    helper.make_node("ReduceMax", ["t"], ["y"], "refused", keepdims=1),
]
SMALL_CONSTANTS = {"i": np.array([0]), "m": np.array([-1]), "p": np.array([0, 0, 1, 0, 0, 1])}


def models() -> dict[str, bytes]:
    shaped = make_model(SHAPED, {"x": ("N", 2, 2)}, ["y"], SMALL_CONSTANTS, ranks={"y": 3})
    return {
        "net": small_net().whole_proto().SerializeToString(),
        "fixed": small_net(2).whole_proto().SerializeToString(),
        "shapes": shaped.SerializeToString(),
        "functions": with_functions([RELU, *(twice(i) for i in range(3))], 3).SerializeToString(),
        "subgraphs": nested(2).SerializeToString(),
    }


@pytest.mark.parametrize("kind", ["net", "fixed", "shapes", "functions", "subgraphs"])
@pytest.mark.parametrize("change", [mutant, edited])
def test_mutants(kind: str, change: Callable[[bytes, np.random.Generator], bytes]) -> None:
    """A model with some of its bytes or fields changed is taken or refused, whatever the change."""
    data, taken = models()[kind], 0
    said: list[str] = []
    for seed in range(MUTANTS):
        changed = change(data, np.random.default_rng(seed))
        model = onnx.ModelProto()
        try:
            model.ParseFromString(changed)
        except DecodeError:
            continue
        try:
            graph = from_proto(model)
            groups(graph, 2)
            taken += 1
            plan(graph, 2)
        except KernelscopeError as error:
            said.append(str(error))
    assert [sentence for sentence in said if len(sentence.splitlines()) != 1] == []
    assert said
    assert taken or change is mutant
