"""Each operator of the ladder in ONNX's nodes, and what its inputs are drawn from.

One file an operator, named as it is, which defines

    nodes(p, names, output)           the ONNX nodes from the inputs of these names to `output`, without the
                                      activation behind them, and the constants that they read
    drawn(p, place, values, random)   what is given to one input of its shape, out of normal values
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from bench.measure.answers.nodes._common import activate
from kernels.ops import Params

__all__ = ["FACETS", "activate", "of", "read"]

FACETS = ("nodes", "drawn")


def of(p: Params) -> ModuleType:
    """The file of this operator. Raises TypeError, one sentence, where there is none, or where it lacks
    something."""
    return read(__name__, p.op)


def read(package: str, op: str) -> ModuleType:
    """The file of an operator in a folder."""
    if importlib.util.find_spec(f"{package}.{op}") is None:
        raise TypeError(
            f"{package.replace('.', '/')} has no {op}.py, which says what {op} is in ONNX's nodes"
        )
    module = importlib.import_module(f"{package}.{op}")
    if lacking := [name for name in FACETS if not callable(getattr(module, name, None))]:
        raise TypeError(f"{module.__file__} lacks {', '.join(lacking)}, which every operator has")
    return module
