"""Where the largest or smallest lie, in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes._common import Nodes, node
from kernels.ops.top_k import TopK


def nodes(p: TopK, names: Sequence[str], output: str) -> Nodes:
    """The second output of TopK."""
    made = node("TopK", [*names, "k"], f"{output}_values", axis=1, largest=int(p.largest), sorted=1)
    made.output.append(output)
    return [made], {"k": np.array([p.k], np.int64)}


def drawn(p: TopK, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Values of which some are equal."""
    return np.rint(values * 16) / np.float32(8)
