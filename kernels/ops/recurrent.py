"""A recurrent layer, step after step: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from kernels.ops._base import Params, Shape

RECURRENT_KINDS = ("rnn", "gru", "lstm")
GATES = {"rnn": 1, "gru": 3, "lstm": 4}
DIRECTIONS = ("forward", "reverse", "bidirectional")
# What a gate, and what a state, goes through.
GATE_ACTIVATIONS = ("sigmoid", "tanh", "relu", "hard_sigmoid")


@dataclass(frozen=True)
class Recurrent(Params):
    """An RNN, GRU or LSTM layer over sequences, what the inputs add to its gates given.

    Tensors in order, with D directions (1, or 2 for "bidirectional"), G gates (GATES), H hidden:
    sums (D, steps, n, G·H), the inputs' products with their weights; recurrence (D, G·H, H); bias (D, 2·G·H),
    of the inputs, then of the recurrence; lengths (n,) of int32, the steps of each sequence; first (D, n, H),
    the hidden state before the first step; cell (D, n, H), an LSTM's, before it; peepholes (D, 3·H), an
    LSTM's: what the cell adds to the gates input, output and forget. The gates are in ONNX's order: of a GRU
    update, reset and hidden, of an LSTM input, output, forget and cell. y (steps + 2, D, n, H), of an RNN and
    a GRU (steps + 1, …): the hidden state at each step, 0 behind the end of a sequence; then the last one;
    then the last cell.

    linear_before_reset: a GRU's reset gate is applied to the product with the recurrence, else to what is
    multiplied (ONNX's linear_before_reset). coupled: an LSTM's forget gate is 1 less its input gate. clip:
    what goes into an activation is held between its negative and itself, where it is above 0. gate,
    candidate, last: what the gates, the candidate state and (an LSTM's) the cell go through.
    """

    op: ClassVar[str] = "recurrent"
    struct: ClassVar[str] = (
        "int steps, n, hidden, kind, direction, linear_before_reset, coupled; float clip;"
        "int gate, candidate, last"
    )
    most_inputs: ClassVar[int] = 7
    weight_inputs: ClassVar[tuple[int, ...]] = (1, 2, 6)
    enumerated: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {
        "kind": ("RECURRENT", RECURRENT_KINDS),
        "direction": ("DIRECTION", DIRECTIONS),
        **dict.fromkeys(("gate", "candidate", "last"), ("GATE", GATE_ACTIVATIONS)),
    }

    kind: str
    steps: int
    n: int
    hidden: int
    direction: str = "forward"
    linear_before_reset: bool = False
    coupled: bool = False
    clip: float = 0.0
    gate: str = "sigmoid"
    candidate: str = "tanh"
    last: str = "tanh"
    dtype: str = "float32"

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    @property
    def gates(self) -> int:
        return GATES[self.kind]

    @property
    def flops(self) -> int:
        """The products with the recurrence; all sequences to their ends."""
        return 2 * self.directions * self.steps * self.n * self.gates * self.hidden * self.hidden

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        d, n, h, wide = self.directions, self.n, self.hidden, self.gates * self.hidden
        shapes = ((d, self.steps, n, wide), (d, wide, h), (d, 2 * wide), (n,), (d, n, h))
        return (*shapes, (d, n, h), (d, 3 * h)) if self.kind == "lstm" else shapes

    @property
    def input_dtypes(self) -> tuple[str, ...]:
        return tuple("int32" if i == 3 else self.dtype for i in range(len(self.input_shapes)))

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.steps + (2 if self.kind == "lstm" else 1), self.directions, self.n, self.hidden)

    def least_read(self) -> int:
        """The lengths: all sequences may be at their end."""
        return self.n

    def small_shapes(self) -> Iterator[Shape]:
        plain = replace(self, steps=3, n=2, hidden=5, direction="forward", clip=0.0)
        yield Shape("plain", plain)
        yield Shape("batch", replace(plain, n=5))
        yield Shape("direction", replace(plain, direction="reverse"))
        yield Shape("directions", replace(plain, direction="bidirectional"))
        yield Shape("size", replace(plain, steps=1, n=1, hidden=40))
        yield Shape(
            "own", replace(self, steps=min(self.steps, 4), n=min(self.n, 3), hidden=min(self.hidden, 70))
        )
