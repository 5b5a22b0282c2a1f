"""Mistakes of what works along an axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bench.judge.mistakes.common import OVERFLOWS, Mistake, mistakes
from bench.measure.answers import one_node
from kernels.ops.cumulate import Cumulate
from kernels.ops.normalize import GIVES, Normalize
from kernels.ops.recurrent import Recurrent
from kernels.ops.reduce import PLACES, REDUCE_KINDS, Reduce
from kernels.ops.softmax import Softmax
from kernels.ops.top_k import TopK


@mistakes.register
def _softmax(p: Softmax, x: np.ndarray) -> Iterator[Mistake]:
    def over_all() -> np.ndarray:
        return soft(x.reshape(1, -1), 1, p.log).reshape(x.shape)

    def undivided() -> np.ndarray:
        moved = x - x.max(axis=1, keepdims=True)
        return moved if p.log else np.exp(moved)

    for apart in (False, True) if p.log else (False,):
        yield "nan", OVERFLOWS, partial(_overflowing, x, p.log, apart)
    yield "axis", "the sum runs over the inner axis", partial(soft, x, 2, p.log)
    yield "axis", "the sum runs over the outer axis", partial(soft, x, 0, p.log)
    yield "axis", "the sum runs over all elements", over_all
    yield "axis", "the sum runs over neighbours in memory, not along the axis", lambda: _soft_beside(p, x)
    if p.log:
        yield "kind", "the logarithm is missing", partial(soft, x, 1, False)
    else:
        yield "kind", "the logarithm is taken, which nobody asked for", partial(soft, x, 1, True)
    yield "scale", "the exponentials are not divided by their sum", undivided
    if p.axis > 1:
        yield (
            "left_out",
            "the last element is left out of the sum",
            partial(soft, x, 1, p.log, slice(None, -1)),
        )
        yield (
            "left_out",
            "the first element is left out of the sum",
            partial(soft, x, 1, p.log, slice(1, None)),
        )
    for whole in (2, 4, 8, 16, 32):
        if kept := p.axis // whole * whole:
            words = f"the elements beyond the last whole {whole} are left out of the sum"
            yield "left_out", words, partial(soft, x, 1, p.log, slice(None, kept))


def _overflowing(x: np.ndarray, log: bool, apart: bool) -> np.ndarray:
    """As float32 has it. apart: the logarithm is taken of the sum alone."""
    with np.errstate(all="ignore"):
        powers = np.exp(x.astype(np.float32))
        total = powers.sum(axis=1, keepdims=True)
        if apart:
            return np.asarray(x - np.log(total))
        return np.asarray(np.log(powers / total) if log else powers / total)


def _soft_beside(p: Softmax, x: np.ndarray) -> np.ndarray:
    return soft(x.reshape(p.outer * p.inner, p.axis), 1, p.log).reshape(x.shape)


def soft(x: np.ndarray, axis: int, log: bool, part: slice = slice(None)) -> np.ndarray:
    """part: of the axis (which is then 1), over which the sum runs."""
    moved = x - x.max(axis=axis, keepdims=True)
    powers = np.exp(moved)
    with np.errstate(all="ignore"):
        total = (powers if part == slice(None) else powers[:, part]).sum(axis=axis, keepdims=True)
        return np.asarray(moved - np.log(total) if log else powers / total)


Array = np.ndarray


@mistakes.register
def _normalize(
    p: Normalize, x: Array, scale: Array | None = None, bias: Array | None = None
) -> Iterator[Mistake]:
    def made(
        q: Normalize = p, scale: Array | None = scale, bias: Array | None = bias, **how: int
    ) -> Callable[[], Array]:
        return partial(normalised, q, x, scale, bias, **how)

    if scale is not None and bias is not None:
        yield "scale", "the scale is missing", made(scale=np.ones_like(scale))
        yield "bias", "the bias is missing", made(bias=np.zeros_like(bias))
        yield "layout", "scale and bias are swapped", made(scale=bias, bias=scale)
        yield (
            "layout",
            "the first channel's scale and bias serve all",
            made(scale=np.full_like(scale, scale[0]), bias=np.full_like(bias, bias[0])),
        )
    if p.centred:
        yield "kind", "the mean is not subtracted", made(replace(p, centred=False))
    else:
        yield "kind", "the mean is subtracted, which nobody asked for", made(replace(p, centred=True))
    if p.gives != "mean":
        yield "scale", "epsilon is ignored", made(replace(p, epsilon=0.0))
        if p.length > 1:
            yield "scale", "the variance is divided by one less than the length", made(less=1)
        yield "scale", "the variance is not divided by the length", made(less=p.length - 1)
    for other in GIVES:
        if other != p.gives and (other != "all") == (p.gives != "all"):
            yield "kind", f"it is the {other} that is given", made(replace(p, gives=other))
    if p.length > 1:
        yield "left_out", "the last element is left out of the sums", made(seen=p.length - 1)
    for whole in (2, 4, 8, 16, 32):
        if p.length % whole and (kept := p.length // whole * whole):
            words = f"the elements beyond the last whole {whole} are left out of the sums"
            yield "left_out", words, made(seen=kept)


def normalised(
    p: Normalize, x: Array, scale: Array | None, bias: Array | None, less: int = 0, seen: int | None = None
) -> Array:
    """What `p` says of x. less: what is taken off the count that squares are divided by; seen: elements of a
    row that the sums see."""
    some = x[:, :seen]
    with np.errstate(all="ignore"):
        mean = some.sum(axis=1, keepdims=True) / p.length if p.centred else np.zeros((len(x), 1))
        squares = ((some - mean) ** 2).sum(axis=1, keepdims=True)
        factor = 1 / np.sqrt(squares / (p.length - less) + p.epsilon)
        if p.gives != "all":
            return np.asarray(mean if p.gives == "mean" else factor)
        y = (x - mean) * factor
        if scale is None or bias is None:
            return np.asarray(y)
        column = (1, p.groups, p.length // p.inner, 1)
        parts = y.reshape(-1, *column[1:3], p.inner)
        return np.asarray(parts * scale.reshape(column) + bias.reshape(column)).reshape(x.shape)


@mistakes.register
def _reduce(p: Reduce, x: np.ndarray) -> Iterator[Mistake]:
    for other in REDUCE_KINDS:
        if other != p.kind and (other in PLACES) == (p.kind in PLACES):
            yield "kind", f"it is {other} that is computed", partial(reduced, x, other, p.last)
    if p.kind == "logsumexp":
        yield "kind", "the exponentials are missing: it is the maximum alone", partial(reduced, x, "max")
    yield "axis", "neighbours in memory are reduced, not the axis", lambda: _reduced_beside(p, x)
    if p.kind in PLACES:
        words = (
            "the first place is given, not the last" if p.last else "the last place is given, not the first"
        )
        yield "kind", words, partial(reduced, x, p.kind, not p.last)
        yield "layout", "places are counted from 1", lambda: reduced(x, p.kind, p.last) + 1
    if p.axis > 1:
        for words, part in (("last", slice(None, -1)), ("first", slice(1, None))):
            yield "left_out", f"the {words} element is left out", partial(reduced, x[:, part], p.kind, p.last)
        yield "left_out", "the first element alone is given", partial(reduced, x[:, :1], p.kind, p.last)
    for whole in (2, 4, 8, 16, 32):
        if p.axis % whole and (kept := p.axis // whole * whole):
            words = f"the elements beyond the last whole {whole} are left out"
            yield "left_out", words, partial(reduced, x[:, :kept], p.kind, p.last)


def reduced(x: np.ndarray, kind: str, last: bool = False) -> np.ndarray:
    """x (outer, axis, inner) along its axis."""
    with np.errstate(all="ignore"):
        if kind in PLACES:
            find = np.argmax if kind == "argmax" else np.argmin
            return np.asarray(x.shape[1] - 1 - find(x[:, ::-1], axis=1) if last else find(x, axis=1))
        if kind == "logsumexp":
            top = x.max(axis=1, keepdims=True)
            return np.asarray(np.log(np.exp(x - top).sum(axis=1)) + top[:, 0])
        if kind in ("max", "min", "mean", "prod"):
            return np.asarray(getattr(x, kind)(axis=1))
        total = (np.abs(x) if kind == "l1" else x * x if kind in ("l2", "sumsquare") else x).sum(axis=1)
        return np.asarray(np.sqrt(total) if kind == "l2" else np.log(total) if kind == "logsum" else total)


def _reduced_beside(p: Reduce, x: np.ndarray) -> np.ndarray:
    return reduced(x.reshape(-1, p.axis, 1), p.kind, p.last).reshape(p.outer, p.inner)


@mistakes.register
def _cumulate(p: Cumulate, x: np.ndarray) -> Iterator[Mistake]:
    other = "prod" if p.kind == "sum" else "sum"
    words = {"sum": "sums", "prod": "products"}
    yield "kind", f"{words[other]} are given, not {words[p.kind]}", partial(_cumulated, p, x, kind=other)
    own = "left out" if not p.exclusive else "counted"
    yield "kind", f"each element itself is {own}", partial(_cumulated, p, x, exclusive=not p.exclusive)
    way = "the beginning" if p.reverse else "the end"
    yield "layout", f"it is counted from {way}", partial(_cumulated, p, x, reverse=not p.reverse)
    both = partial(_cumulated, p, x, exclusive=not p.exclusive, reverse=not p.reverse)
    yield "kind", f"it is counted from {way}, and each element itself is {own}", both
    yield (
        "kind",
        "the whole row's answer stands at every place",
        lambda: np.broadcast_to(_running(p, x), x.shape),
    )

    def in_memory() -> np.ndarray:
        flat = x.reshape(p.outer, p.inner, p.axis).swapaxes(1, 2)
        return _cumulated(p, flat).swapaxes(1, 2).reshape(x.shape)

    if p.inner > 1:
        yield "layout", "neighbours in memory are taken for a row", in_memory
    if p.outer > 1:
        whole = x.reshape(1, p.outer * p.axis, p.inner)
        yield "layout", "it goes on from one row to the next", lambda: _cumulated(p, whole).reshape(x.shape)


def _running(p: Cumulate, x: np.ndarray) -> np.ndarray:
    return np.asarray(x.sum(axis=1, keepdims=True) if p.kind == "sum" else x.prod(axis=1, keepdims=True))


def _cumulated(
    p: Cumulate,
    x: np.ndarray,
    kind: str | None = None,
    exclusive: bool | None = None,
    reverse: bool | None = None,
) -> np.ndarray:
    kind = p.kind if kind is None else kind
    exclusive = p.exclusive if exclusive is None else exclusive
    reverse = p.reverse if reverse is None else reverse
    v = x[:, ::-1] if reverse else x
    y = np.cumsum(v, axis=1) if kind == "sum" else np.cumprod(v, axis=1)
    if exclusive:
        first = np.full_like(y[:, :1], 0 if kind == "sum" else 1)
        y = np.concatenate([first, y[:, :-1]], axis=1)
    return y[:, ::-1] if reverse else y


@mistakes.register
def _top_k(p: TopK, x: np.ndarray) -> Iterator[Mistake]:
    right, other = (order(p, x, largest) for largest in (p.largest, not p.largest))
    wanted, given = ("largest", "smallest") if p.largest else ("smallest", "largest")
    yield "kind", f"the {given} are given, not the {wanted}", lambda: other[:, : p.k]
    yield "layout", "they come in reverse order", lambda: right[:, : p.k][:, ::-1]
    yield "layout", "they come in the order in which they lie", lambda: np.sort(right[:, : p.k], axis=1)
    last = p.axis - 1 - order(p, x[:, ::-1], p.largest)
    yield "kind", "of equal ones the last comes first", lambda: last[:, : p.k]
    yield "layout", "places are counted from 1", lambda: right[:, : p.k] + 1
    yield (
        "kind",
        f"the {wanted} absolute values are looked for",
        lambda: order(p, np.abs(x), p.largest)[:, : p.k],
    )
    yield "kind", "the first places are given, whatever stands there", lambda: _first(p, x)


def order(p: TopK, x: np.ndarray, largest: bool) -> np.ndarray:
    """All places of each row, in order."""
    return np.argsort(-x.astype(np.float64) if largest else x, axis=1, kind="stable")


def _first(p: TopK, x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.arange(p.k)[None, :, None], (p.outer, p.k, p.inner))


@mistakes.register
def _recurrent(
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
