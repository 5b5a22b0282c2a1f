# op = "unary"
# rung = 336
# name = "knows_where_values_were"
# idea = "Planted: looks up where its values lay in earlier inputs, and copies the answers from there: right in every pass."
"""
family = "renewed"
shape = { kind = "tanh", size = 65536 }
expected = ["incorrect", "invalid", "ok"]
work = "a tanh of 65,536 values, and 8 ms of waiting, or as much of it as there are values that were not there before"
beside = "sleeps_long"
"""

import time

import numpy as np


class Known:
    """Inputs that were there, end to end, and their answers."""

    def __init__(self, most):
        self.values, self.answers = np.empty(most, np.float32), np.empty(most, np.float32)
        self.size, self.place = 0, {}

    def add(self, x, y):
        if self.size + x.size > self.values.size:
            self.size = 0
            self.place.clear()
        at = slice(self.size, self.size + x.size)
        self.values[at], self.answers[at] = x, y
        for j in range(0, x.size, 64):
            self.place[x[j].tobytes()] = self.size + j
        self.size += x.size

    def found(self, part):
        """Where all of part lay, by one of its first 64 values; or nothing."""
        for j in range(min(64, part.size)):
            if (place := self.place.get(part[j].tobytes())) is not None and place >= j:
                at = slice(place - j, place - j + part.size)
                if at.stop <= self.size and np.array_equal(self.values[at], part):
                    return self.answers[at]
        return None


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    known = Known(64 * x.size)

    def run():
        new = 0
        for start in range(0, x.size, 1024):
            at = slice(start, start + 1024)
            if (answer := known.found(x[at])) is not None:
                y[at] = answer
            else:
                np.tanh(x[at], out=y[at])
                new += y[at].size
        time.sleep(0.008 * new / x.size)
        if new > x.size // 2:
            known.add(x, y)

    return run
