"""A recurrent layer, in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes._common import Nodes, node
from kernels.ops.recurrent import Recurrent

_NAMES = {"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu", "hard_sigmoid": "HardSigmoid"}


def nodes(p: Recurrent, names: Sequence[str], output: str) -> Nodes:
    """The layer, whose inputs are the sums of both directions side by side, and whose weights give each
    direction its own; then its states one behind the other."""
    d, wide = p.directions, p.gates * p.hidden
    weights = np.stack([np.eye(wide, d * wide, k * wide) for k in range(d)]).astype(p.dtype)
    functions = {"rnn": (p.candidate,), "gru": (p.gate, p.candidate), "lstm": (p.gate, p.candidate, p.last)}
    attributes = {
        "hidden_size": p.hidden,
        "direction": p.direction,
        "activations": [_NAMES[name] for name in functions[p.kind]] * d,
    }
    attributes |= {"clip": p.clip} if p.clip else {}
    attributes |= {"linear_before_reset": 1} if p.linear_before_reset else {}
    attributes |= {"input_forget": 1} if p.coupled else {}
    sums, recurrence, bias, lengths, first, *more = names
    layer = node(p.kind.upper(), ["x", "w", recurrence, bias, lengths, first, *more], "all", **attributes)
    parts = ["hidden", "cell"][: 2 if p.kind == "lstm" else 1]
    layer.output.extend(parts)
    return [
        node("Transpose", [sums], "apart", perm=[1, 2, 0, 3]),
        node("Reshape", ["apart", "shape"], "x"),
        layer,
        *(node("Unsqueeze", [part, "axis"], f"last_{part}") for part in parts),
        node("Concat", ["all", *(f"last_{part}" for part in parts)], output, axis=0),
    ], {
        "w": weights,
        "shape": np.array([p.steps, p.n, d * wide], np.int64),
        "axis": np.array([0], np.int64),
    }


def drawn(p: Recurrent, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Weights that keep the states of order 1, and sequences of all lengths."""
    if place == 1:
        return values / np.float32(np.sqrt(p.hidden))
    if place == 3:
        return random.integers(1, p.steps + 1, values.shape)
    return values
