"""RNN, GRU and LSTM for the oracle: `onnx.reference` has only one direction, and no sequence lengths.

Written from the equations in ONNX's text of these operators, one step of one direction after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.measure.answers.operators.mended import Mended

Array = np.ndarray
Function = Callable[[Array], Array]


def _function(name: str, alpha: float | None, beta: float | None) -> Function:
    """By ONNX's name, with its parameters or what they usually are."""

    def of(value: float | None, usual: float) -> float:
        return usual if value is None else value

    table: dict[str, Function] = {
        "relu": lambda v: np.maximum(v, 0),
        "tanh": np.tanh,
        "sigmoid": lambda v: np.exp(-np.logaddexp(0, -v)),
        "affine": lambda v: of(alpha, 1.0) * v + of(beta, 0.0),
        "leakyrelu": lambda v: np.where(v >= 0, v, of(alpha, 0.01) * v),
        "thresholdedrelu": lambda v: np.where(v >= of(alpha, 1.0), v, 0),
        "scaledtanh": lambda v: of(alpha, 1.0) * np.tanh(of(beta, 1.0) * v),
        "hardsigmoid": lambda v: np.clip(of(alpha, 0.2) * v + of(beta, 0.5), 0, 1),
        "elu": lambda v: np.where(v >= 0, v, of(alpha, 1.0) * np.expm1(v)),
        "softsign": lambda v: v / (1 + np.abs(v)),
        "softplus": lambda v: np.logaddexp(0, v),
    }
    return table[name.lower()]


class _Recurrent(Mended):
    """X (steps, n, inputs) → Y (steps, directions, n, hidden), Y_h, and Y_c of an LSTM."""

    usual: tuple[str, ...] = ()

    def _run(
        self,
        x: Array,
        w: Array,
        r: Array,
        b: Array | None = None,
        lengths: Array | None = None,
        h0: Array | None = None,
        c0: Array | None = None,
        p: Array | None = None,
        **_: Any,
    ) -> tuple[Array, ...]:
        if self._get("layout", 0):
            x = np.swapaxes(x, 0, 1)
            h0, c0 = (None if first is None else np.swapaxes(first, 0, 1) for first in (h0, c0))
        steps, n, _inputs = x.shape
        directions, _wide, hidden = r.shape
        names = self._get("activations", None) or [*self.usual] * directions
        names = [name.decode() if isinstance(name, bytes) else name for name in names]
        functions = self._functions(names)
        each = len(self.usual)
        ends = np.full(n, steps) if lengths is None else np.clip(lengths, 0, steps)
        y = np.zeros((steps, directions, n, hidden), x.dtype)
        last = np.zeros((2, directions, n, hidden), x.dtype)
        for d in range(directions):
            self.w, self.r = w[d].T, r[d].T
            self.of_x, self.of_h = np.zeros((2, w.shape[1])) if b is None else b[d].reshape(2, -1)
            self.p = np.zeros((3, hidden)) if p is None else p[d].reshape(3, hidden)
            self.f = functions[each * d : each * (d + 1)]
            reverse = d == 1 or self._get("direction", "forward") == "reverse"
            for i in range(n):
                h = np.zeros(hidden) if h0 is None else h0[d, i]
                c = np.zeros(hidden) if c0 is None else c0[d, i]
                places = range(int(ends[i]))
                for t in reversed(places) if reverse else places:
                    h, c = self._step(x[t, i], h, c)
                    y[t, d, i] = h
                last[:, d, i] = h, c
        if self._get("layout", 0):
            y, last = y.transpose(2, 0, 1, 3), last.swapaxes(1, 2)
        return (y, *last)[: len(self.onnx_node.output)]

    def _functions(self, names: list[str]) -> list[Function]:
        """Parameters come in the order of the functions that take some."""
        left = {key: list(self._get(f"activation_{key}", None) or ()) for key in ("alpha", "beta")}
        takes = {
            "alpha": ("affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu"),
            "beta": ("affine", "scaledtanh", "hardsigmoid"),
        }
        made = []
        for name in names:
            given = {
                key: left[key].pop(0) if left[key] and name.lower() in takes[key] else None for key in left
            }
            made.append(_function(name, given["alpha"], given["beta"]))
        return made

    def _held(self, v: Array) -> Array:
        """What goes into an activation, held within the clip."""
        clip = self._get("clip", 0.0) or math.inf
        return np.clip(v, -clip, clip)

    def _step(self, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        raise NotImplementedError

    w: Any
    r: Any
    of_x: Any
    of_h: Any
    p: Any
    f: Any


class RNN(_Recurrent):
    """ "Ht = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Wbi + Rbi)"."""

    usual = ("Tanh",)

    def _step(self, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        return self.f[0](self._held(x @ self.w + h @ self.r + self.of_x + self.of_h)), c


class GRU(_Recurrent):
    """ "zt = f(Xt*(Wz^T) + Ht-1*(Rz^T) + Wbz + Rbz)", rt alike, "ht = g(Xt*(Wh^T) + (rt (.) Ht-1)*(Rh^T) +
    Rbh + Wbh)", or with linear_before_reset "ht = g(Xt*(Wh^T) + (rt (.) (Ht-1*(Rh^T) + Rbh)) + Wbh)", and "Ht
    = (1 - zt) (.) ht + zt (.) Ht-1"."""

    usual = ("Sigmoid", "Tanh")

    def _step(self, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        f, g = self.f
        xz, xr, xh = np.split(x @ self.w + self.of_x, 3)
        rz, rr, rh = np.split(self.r, 3, axis=1)
        bz, br, bh = np.split(self.of_h, 3)
        z, r = f(self._held(xz + h @ rz + bz)), f(self._held(xr + h @ rr + br))
        linear = self._get("linear_before_reset", 0)
        more = r * (h @ rh + bh) if linear else (r * h) @ rh + bh
        return (1 - z) * g(self._held(xh + more)) + z * h, c


class LSTM(_Recurrent):
    """ "it = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Pi (.) Ct-1 + Wbi + Rbi)", ft alike (1 − it where both are coupled),
    "ct = g(Xt*(Wc^T) + Ht-1*(Rc^T) + Wbc + Rbc)", "Ct = ft (.) Ct-1 + it (.) ct", "ot = f(Xt*(Wo^T) +
    Ht-1*(Ro^T) + Po (.) Ct + Wbo + Rbo)", "Ht = ot (.) h(Ct)"."""

    usual = ("Sigmoid", "Tanh", "Tanh")

    def _step(self, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        f, g, last = self.f
        i, o, forget, candidate = np.split(x @ self.w + h @ self.r + self.of_x + self.of_h, 4)
        pi, po, pf = self.p
        taken = f(self._held(i + pi * c))
        kept = 1 - taken if self._get("input_forget", 0) else f(self._held(forget + pf * c))
        cell = kept * c + taken * g(self._held(candidate))
        return f(self._held(o + po * cell)) * last(cell), cell


OPERATORS = (RNN, GRU, LSTM)
