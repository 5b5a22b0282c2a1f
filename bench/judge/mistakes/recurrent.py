"""Mistakes of recurrent layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bench.judge.mistakes import Mistake
from bench.measure.answers import one_node
from kernels.ops.recurrent import Recurrent


def mistakes(
    p: Recurrent,
    sums: np.ndarray,
    recurrence: np.ndarray,
    bias: np.ndarray,
    lengths: np.ndarray,
    first: np.ndarray,
    *more: np.ndarray,
) -> Iterator[Mistake]:
    wide = p.gates * p.hidden
    given: dict[str, Any] = {
        "sums": sums, "recurrence": recurrence, "bias": bias, "lengths": lengths, "first": first,
    }  # fmt: skip
    given |= dict(zip(("cell", "peepholes"), more, strict=False))

    def of(p: Recurrent = p, **changed: np.ndarray) -> partial[np.ndarray]:
        return partial(one_node.answer, p, tuple((given | changed).values()))

    of_x, of_h = bias.copy(), bias.copy()
    of_x[:, wide:], of_h[:, :wide] = 0, 0
    yield "bias", "the bias is missing", of(bias=np.zeros_like(bias))
    yield "bias", "the recurrence's bias is missing", of(bias=of_x)
    yield "bias", "the inputs' bias is missing", of(bias=of_h)
    yield "kind", "the state before the first step is taken to be 0", of(first=np.zeros_like(first))
    yield (
        "kind",
        "the lengths are ignored: all sequences have all steps",
        of(lengths=np.full_like(lengths, p.steps)),
    )
    yield "kind", "the state is left out of the gates", of(recurrence=np.zeros_like(recurrence))
    by_gate = recurrence.reshape(p.directions, p.gates, p.hidden, p.hidden)
    turned = by_gate.swapaxes(2, 3).reshape(recurrence.shape)
    yield "layout", "the recurrence is transposed", of(recurrence=turned)
    if p.directions == 1:
        way = "forward" if p.direction == "reverse" else "reverse"
        yield "layout", f"the steps are taken {way}", of(replace(p, direction=way))
    if p.kind == "gru":
        words = (
            "the reset gate is applied " + ("before" if p.linear_before_reset else "after") + " the product"
        )
        yield "kind", words, of(replace(p, linear_before_reset=not p.linear_before_reset))
    if p.gates > 2:
        order = [1, 0, *range(2, p.gates)]
        yield "layout", "the first two gates are swapped", of(
            sums=_gates(sums, order), recurrence=_gates(recurrence.swapaxes(1, 2), order).swapaxes(1, 2),
            bias=_gates(bias, [*order, *(k + p.gates for k in order)], 2 * p.gates),
        )  # fmt: skip
    if p.kind == "lstm":
        yield "kind", "the cell before the first step is taken to be 0", of(cell=np.zeros_like(more[0]))
        yield "kind", "the peepholes are left out", of(peepholes=np.zeros_like(more[1]))
        yield (
            "kind",
            "the forget gate is 1 less the input gate"
            if not p.coupled
            else ("the forget gate has its own weights"),
            of(replace(p, coupled=not p.coupled)),
        )


def _gates(array: np.ndarray, order: list[int], count: int = 0) -> np.ndarray:
    """The parts of the last axis in another order."""
    parts = np.split(array, count or len(order), axis=-1)
    return np.concatenate([parts[k] for k in order], axis=-1)
