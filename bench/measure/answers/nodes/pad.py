"""Elements added round a tensor, in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes._common import Nodes, as_drawn, node
from kernels.ops.pad import Pad

drawn = as_drawn


def nodes(p: Pad, names: Sequence[str], output: str) -> Nodes:
    constants = {"pads": np.array([*p.begin, *p.end], np.int64), "value": np.array(p.value, p.dtype)}
    return [node("Pad", [*names, *constants], output, mode=p.mode)], constants
