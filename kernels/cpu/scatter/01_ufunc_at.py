# op = "scatter"
# rung = 1
# name = "ufunc_at"
# idea = "Copies x, then puts the updates at their places, or joins them there one after the other."
# [needs]
# dtype = ["float32", "float64", "int32", "int64", "uint8", "int8", "bool"]
"""y = x, with y[places] replaced by the updates or joined with them."""

import numpy as np

UFUNCS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(p.size, p.inner), output.reshape(p.size, p.inner)
    given, updates = inputs[1].reshape(-1), inputs[2].reshape(p.count, p.inner)

    def run():
        np.copyto(y, x)
        places = np.where(given < 0, given + p.size, given)
        kept = (places >= 0) & (places < p.size)
        rows, values = (places, updates) if kept.all() else (places[kept], updates[kept])
        if p.kind == "put":
            y[rows] = values  # of a row that is named several times NumPy keeps the last
        else:
            UFUNCS[p.kind].at(y, rows, values)

    return run
