"""What is done to an honest file: bytes turned, fields of a message or of a record set to what is no value of
theirs. Everything is drawn from a generator with a seed, so that a seed is the file."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from google.protobuf.message import Message  # type: ignore[import-untyped]

NUMBERS = [0, 1, -1, 2, 3, 7, 1000, 2**31, -(2**31), 2**40, 2**62, -(2**62)]
SMALL_NUMBERS = [-1, 0, 1, 7, 8, 9, 10, 16, 22, 99]
# Of nodes and tensors in the models that are changed, of operators, and what is none of them.
WORDS = [
    *("", "x", "y", "c1", "w1", "Relu", "Add", "Squeeze", "Softmax", "Constant", "Cast", "Pad", "a\nb", "N"),
    *("Conv", "Gemm", "MaxPool", "Reshape", "Concat", "Expand", "Tile", "ConstantOfShape", "Range", "Where"),
    *("axis", "axes", "shape", "value", "pads", "kernel_shape", "strides", "group", "perm", "ai.onnx", "é"),
]
# In a record: texts that are taken for something else, numbers at the ends of what a type holds.
TEXTS = [
    "",
    "x",
    "../x",
    "/dev/zero",
    "a\nb",
    "\x1b[2J",
    "\ud800",
    "é" * 300,
    "ok",
    "fp16",
    "NaN",
    "=1+1",
    "|",
]
VALUES = [0, 1, -1, 0.5, -0.0, 1e308, -1e308, 5e-324, 2**31, 2**53, 2**63, 2**64, -(2**63), 10**400]


def turned(data: bytes, drawn: random.Random, edge: int = 700) -> bytes:
    """The file with some bytes turned, put in, cut out or said twice."""
    made = bytearray(data)
    # What steers lies before and behind the weights, which are most of a file.
    edge = max(1, min(len(made), edge))
    for _ in range(1 if drawn.random() < 0.7 else drawn.randint(2, 3)):
        at = drawn.randrange(edge) if drawn.random() < 0.5 else len(made) - 1 - drawn.randrange(edge)
        at = max(0, min(at, len(made) - 1))
        match drawn.randrange(4):
            case 0 if made:
                made[at] ^= 1 << drawn.randrange(8)
            case 1 if made:
                made[at] = drawn.choice([0, 1, 2, 127, 128, 255])
            case 2:
                del made[at : at + drawn.randint(1, 8)]
            case _:
                made[at:at] = made[at : at + drawn.randint(1, 8)]
    return bytes(made)


def messages(message: Message) -> list[Message]:
    """A message and all in it."""
    found = [message]
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if hasattr(value, "extend") else [value]:
                found += messages(inner)
    return found


def edit(message: Message, drawn: random.Random, others: Sequence[Message] = (), most: int = 3) -> None:
    """Set some fields of a message, or of one in it, to what is no value of theirs, clear them, say them
    twice, or put in their place what stands in another place (of `others` too)."""
    parts = messages(message)
    for _ in range(1 if drawn.random() < 0.7 else drawn.randint(1, most)):
        part = drawn.choice(parts)
        if drawn.random() < 0.15:
            like = [p for p in (*parts, *others) if p.DESCRIPTOR is part.DESCRIPTOR and p is not part]
            if like and part is not message:
                copy = drawn.choice(like).__deepcopy__()
                part.CopyFrom(copy)
                parts = messages(message)
                continue
        fields = [field for field, _ in part.ListFields()]
        if drawn.random() < 0.2:  # also one that is not there
            fields = [field for field in part.DESCRIPTOR.fields if field.message_type is None]
        if fields:
            _edit_field(part, drawn.choice(fields), drawn)


def _edit_field(part: Message, field: Any, drawn: random.Random) -> None:
    value = getattr(part, field.name)
    new: Callable[[], Any] | None = None
    if field.type in (field.TYPE_INT64, field.TYPE_UINT64):
        new = lambda: drawn.choice(NUMBERS if field.type == field.TYPE_INT64 else [0, 1, 2**63])  # noqa: E731
    elif field.type in (field.TYPE_INT32, field.TYPE_ENUM):
        new = lambda: drawn.choice(SMALL_NUMBERS)  # noqa: E731
    elif field.type == field.TYPE_STRING:
        new = lambda: drawn.choice(WORDS)  # noqa: E731
    elif field.type == field.TYPE_BYTES:
        new = lambda: drawn.randbytes(drawn.choice([0, 1, 3, 4, 8, 64]))  # noqa: E731
    elif field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        new = lambda: drawn.choice([0.0, -1.0, float("nan"), float("inf"), 1e30])  # noqa: E731
    try:
        if hasattr(value, "extend"):
            at = drawn.randrange(len(value)) if len(value) else 0
            if new is not None and (not len(value) or drawn.random() < 0.7):
                if len(value) and drawn.random() < 0.8:
                    value[at] = new()
                else:
                    value.append(new())
            elif len(value) and drawn.random() < 0.5:
                value.append(value[at])
            elif len(value):
                del value[at]
        elif new is not None:
            setattr(part, field.name, new())
        else:
            part.ClearField(field.name)
    except (ValueError, TypeError):  # a field that takes no such value
        part.ClearField(field.name)


def changed(record: Any, drawn: random.Random) -> Any:
    """A record, as JSON has it, with some of its parts changed; `record` is changed itself."""
    for _ in range(drawn.randint(1, 3)):
        places = _places(record)
        if not places:
            return record
        holder, key = drawn.choice(places)
        match drawn.randrange(8):
            case 0:
                del holder[key]
            case 1:
                holder[key] = drawn.choice(VALUES)
            case 2:
                holder[key] = drawn.choice(TEXTS)
            case 3:
                other, place = drawn.choice(places)
                holder[key] = json.loads(json.dumps(other[place]))
            case 4:
                holder[key] = drawn.choice([None, True, False, [], {}, [[]], {"": None}])
            case 5 if isinstance(holder, list):
                holder.insert(key, holder[key])
            case 6 if isinstance(holder[key], int | float):
                holder[key] = drawn.choice([-holder[key], holder[key] * 1000, holder[key] + 1])
            case _ if isinstance(holder[key], str):
                at = drawn.randint(0, len(holder[key]))
                holder[key] = holder[key][:at] + drawn.choice(TEXTS) + holder[key][at + 1 :]
            case _:
                holder[key] = drawn.choice(VALUES)
    return record


def _places(record: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [record]
    while waiting:
        held = waiting.pop()
        items = held.items() if isinstance(held, dict) else enumerate(held)
        # Of a long list of samples the first few stand for all.
        for key, value in list(items)[:40]:
            found.append((held, key))
            if isinstance(value, dict | list):
                waiting.append(value)
    return found


def written(record: Any, drawn: random.Random) -> bytes:
    """A record as JSON, also such as JSON is not."""
    text = json.dumps(record, separators=(",", ":"))
    data = text.encode("utf-8", "surrogatepass")
    return turned(data, drawn, len(data)) if drawn.random() < 0.2 else data
