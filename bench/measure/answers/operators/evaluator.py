"""ONNX's evaluator, with everything in float64.

What a node makes itself (a constant, zeros, the weights of trees, the values inside a function or the graph
of a Loop) is converted to float64, as a model's inputs are, because most operators of the evaluator refuse
two inputs of different types. Functions and inner graphs are evaluated in the same way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx.reference import ReferenceEvaluator

from bench.measure.answers.operators import control, mended, quantized, recurrent, sampling, transformers


def operators() -> tuple[Any, ...]:
    """Ours in the place of the evaluator's, and those that it lacks."""
    modules = (mended, control, quantized, recurrent, sampling, transformers)
    return tuple(op for module in modules for op in module.OPERATORS)


class Evaluator(ReferenceEvaluator):
    """As ReferenceEvaluator, which makes the one of a function without any operators of ours."""

    def __init__(self, proto: Any, *, new_ops: Sequence[Any] | None = None, **named: Any) -> None:
        super().__init__(proto, new_ops=list(operators() if new_ops is None else new_ops), **named)

    def _init(self) -> None:
        super()._init()
        self.rt_inits_ = {name: _wide(value) for name, value in self.rt_inits_.items()}
        for node in self.rt_nodes_:
            node._run = _widening(node._run)


def _wide(value: Any) -> Any:
    narrow = isinstance(value, np.ndarray) and value.dtype in (np.float16, np.float32)
    return value.astype(np.float64) if narrow else value


def _widening(run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(run)
    def wide(*inputs: Any, **named: Any) -> Any:
        results = run(*inputs, **named)
        return tuple(map(_wide, results)) if isinstance(results, tuple) else results

    return wide
