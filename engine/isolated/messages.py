"""What a process and its child say to each other. A child's answers are decoded by msgspec, to these types
alone: it may say what it likes, and nothing of it runs."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import msgspec

# Run passes: of which session; how many untimed; how many timed, and of how many in a row the time is
# told; whether it stays awake: then it runs these over its first slots, one after the other (the untimed over
# its last), and answers what they took. Else each is waited for: whether by stopping itself, or by a message.
TRAIN = struct.Struct("<IIII??")
TOOK = struct.Struct("<Q")  # nanoseconds


@dataclass(frozen=True)
class Call:
    """A question, pickled. blocks: number, path and size of those that are new, whose descriptors come in
    this order; memory: path and size of the block that the question is about, whose descriptor comes last."""

    do: str
    number: int
    arguments: bytes
    blocks: tuple[tuple[int, str, int], ...] = ()
    forget: tuple[int, ...] = ()
    memory: tuple[str, int] | None = None


class Error(msgspec.Struct, array_like=True):
    """What was raised: the name of its type, and what it says."""

    kind: str
    text: str


Shapes = dict[str, tuple[tuple[int, ...], str]]
"""Shape and dtype by name."""


class Opened(msgspec.Struct, array_like=True):
    """A session as it was made."""

    phases: dict[str, int]
    memory: dict[str, int]
    facts: dict[str, str]
    inputs: Shapes
    outputs: Shapes


class OutputReply(msgspec.Struct, array_like=True):
    """An output; its bytes where they do not lie in the slot."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    data: bytes = b""
