"""PyTorch with kernels of the ladder in the place of some nodes: each is the module that `export-op --to
torch` writes. They run in processes of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from engine.backend import Options, Session, check_runs
from engine.backends import _swaps
from engine.backends.torch import BACKENDS as PLAIN
from engine.backends.torch import Torch
from engine.graph.graph import Graph
from engine.isolated import pool
from engine.rivals.torch_translation import Swap
from kernels.exported import library, torch_module
from kernels.exported.operator import Operator
from kernels.precision import FP32

PRECISIONS = (FP32, "tf32")  # operators are exported in these


class TorchSwapped(_swaps.Swapped):
    """See engine.backend.Backend and Swapping. invited: whether a comparison that names no backends has it
    where PyTorch is installed."""

    def __init__(self, plain: Torch, invited: bool) -> None:
        kind = pool.KINDS[plain.apart]
        apart = pool.register(
            f"{plain.apart} swapped", replace(kind, words=f"{kind.words}, with our kernels in it")
        )
        precisions = tuple(name for name in plain.precisions if name in PRECISIONS)
        super().__init__(plain, precisions, apart)
        self.invited = invited

    def supports(self, graph: Graph, batch: int, precision: str) -> str | None:
        if precision not in self.precisions:
            return f"{self.name} offers {' and '.join(self.precisions)}, and no {precision}"
        refused: str | None = self._plain.supports(graph, batch, precision)
        return refused

    def prepare(
        self, graph: Graph, batch: int, precision: str = FP32, options: Options | None = None
    ) -> Session:
        """As the plain one's, with the kernels of `options.rungs` in the place of their nodes; a part of a
        model that has none of these is the plain one's. Raises as that and as _swaps.built."""
        check_runs(self, graph, batch, precision)
        options = options or Options()
        # PyTorch knows an operator by its name, in the whole process.
        found = _swaps.built(graph, batch, options, self.device, _written, alone=True)
        swaps = tuple(map(_swap, found))
        plain = replace(options, rungs={})
        session: Session = self._plain.opened(graph, batch, precision, plain, swaps, self.apart)
        session.backend = self.name
        how = " in one thread" if self.device == "cpu" else ""
        session.facts = {**session.facts, **_swaps.fact(found, how)}
        return session


def _written(operator: Operator, folder: Path) -> None:
    """Its weights go to the process by themselves."""
    library.written(operator, folder)
    _module(operator, folder).write_text(torch_module.text(operator), encoding="utf-8")


def _module(operator: Operator, folder: Path) -> Path:
    return folder / f"{operator.name}.py"


def _swap(it: _swaps.Built) -> Swap:
    of = it.replacement
    op = of.operator
    return Swap(
        module=str(_module(op, it.folder)),
        nodes=of.nodes,
        inputs=tuple(of.inputs[place] for place in op.data_inputs),
        weights=tuple(np.ascontiguousarray(one.array) for one in op.inputs if one.array is not None),
        output=of.output,
    )


# Beside ONNX Runtime, which runs on a GPU as a CUDA graph: the same form of PyTorch.
BACKENDS = tuple(TorchSwapped(plain, plain.name in ("torch-cpu", "torch-cuda-graph")) for plain in PLAIN)
