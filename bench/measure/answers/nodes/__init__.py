"""Each operator of the ladder in ONNX's nodes, and what its inputs are drawn from.

One file an operator, named as it is, which defines

    nodes(p, names, output)           the ONNX nodes from the inputs of these names to `output`, without the
                                      activation behind them, and the constants that they read
    drawn(p, place, values, random)   what is given to one input of its shape, out of normal values

and, where an element of its answer can be had without the others,

    elements(p, inputs, places)       float64 at flat places of y (bench.measure.answers.elements)
"""

from __future__ import annotations

from types import ModuleType

from bench.measure.answers.nodes._common import activate
from kernels.ops import Params, file_of

__all__ = ["activate", "of"]


def of(p: Params) -> ModuleType:
    """The file of this operator. Raises TypeError, one sentence, where there is none, or where it lacks
    something."""
    return file_of(__name__, p.op, "nodes", "drawn")
