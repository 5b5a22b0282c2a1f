# op = "recurrent"
# rung = 1
# name = "steps"
# idea = "Step after step one product of the state with the recurrence, and NumPy's functions of it."
"""RNN, GRU and LSTM, their inputs' products given; sequences that have ended keep their state."""

from typing import Any

import numpy as np

from kernels.cpu.common import carve, scratch_nbytes


def _sigmoid(v):
    return np.float32(1) / (np.float32(1) + np.exp(-v))


FUNCTIONS: dict[str, Any] = {
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "relu": lambda v: np.maximum(v, np.float32(0)),
    "hard_sigmoid": lambda v: np.clip(np.float32(0.2) * v + np.float32(0.5), np.float32(0), np.float32(1)),
}


def _shapes(p):
    wide = p.gates * p.hidden
    return (p.n, wide), (p.n, p.hidden), (p.n, p.hidden)


def workspace(p):
    return scratch_nbytes(*_shapes(p))


def bind(p, inputs, output, workspace):
    sums, recurrence, bias, lengths, first, *more = (
        array.reshape(shape) for array, shape in zip(inputs, p.input_shapes, strict=True)
    )
    y = output.reshape(p.output_shape)
    product, h, cell = carve(workspace, *_shapes(p))
    step = {"rnn": _rnn, "gru": _gru, "lstm": _lstm}[p.kind]

    def run():
        ends = np.clip(lengths, 0, p.steps)
        if (ends < p.steps).any():
            y[: p.steps] = 0
        for d in range(p.directions):
            reverse = d == 1 or p.direction == "reverse"
            layer = _Layer(p, recurrence[d], bias[d], more[1][d] if p.kind == "lstm" else None)
            np.copyto(h, first[d])
            if p.kind == "lstm":
                np.copyto(cell, more[0][d])
            for s in range(ends.max(initial=0)):
                going = np.flatnonzero(s < ends)
                t = ends[going] - 1 - s if reverse else np.full(going.size, s)
                if going.size == p.n and (t == t[0]).all():
                    step(layer, sums[d, t[0]], h, cell, product)
                    y[t[0], d] = h
                    continue
                some, of_cell = h[going], cell[going]
                step(layer, sums[d, t, going], some, of_cell, product[: going.size])
                h[going], cell[going] = some, of_cell
                y[t, d, going] = some
            y[p.steps, d] = h
            if p.kind == "lstm":
                y[p.steps + 1, d] = cell

    return run


class _Layer:
    """One direction's weights, and what its gates go through."""

    def __init__(self, p, recurrence, bias, peepholes):
        wide = p.gates * p.hidden
        self.p, self.weights = p, recurrence.T
        self.of_x, self.of_h = bias[:wide], bias[wide:]
        self.peepholes = None if peepholes is None else peepholes.reshape(3, p.hidden)
        self.gate, self.candidate = self._clipped(p.gate), self._clipped(p.candidate)
        self.last = FUNCTIONS[p.last]

    def _clipped(self, name):
        function, limit = FUNCTIONS[name], np.float32(self.p.clip)
        return (lambda v: function(np.clip(v, -limit, limit))) if limit > 0 else function


def _rnn(layer, x, h, cell, product):
    np.matmul(h, layer.weights, product)
    h[...] = layer.candidate(x + product + layer.of_x + layer.of_h)


def _gru(layer, x, h, cell, product):
    hidden = layer.p.hidden
    np.matmul(h, layer.weights, product)
    x = x + layer.of_x
    gates = layer.gate(x[:, : 2 * hidden] + product[:, : 2 * hidden] + layer.of_h[: 2 * hidden])
    update, reset = gates[:, :hidden], gates[:, hidden:]
    of_h = layer.of_h[2 * hidden :]
    if layer.p.linear_before_reset:
        more = reset * (product[:, 2 * hidden :] + of_h)
    else:
        more = (reset * h) @ layer.weights[:, 2 * hidden :] + of_h
    h[...] = (np.float32(1) - update) * layer.candidate(x[:, 2 * hidden :] + more) + update * h


def _lstm(layer, x, h, cell, product):
    hidden = layer.p.hidden
    np.matmul(h, layer.weights, product)
    v = x + product + layer.of_x + layer.of_h
    i, o, f, c = (v[:, k * hidden : (k + 1) * hidden] for k in range(4))
    of_i, of_o, of_f = layer.peepholes
    taken = layer.gate(i + of_i * cell)
    kept = np.float32(1) - taken if layer.p.coupled else layer.gate(f + of_f * cell)
    cell[...] = kept * cell + taken * layer.candidate(c)
    h[...] = layer.gate(o + of_o * cell) * layer.last(cell)
