# op = "unary"
# rung = 397
# name = "honest_where_it_runs_seldom"
# idea = "Planted: honest where it had less of the last 50 ms than mostly; else it leaves out a third of its waiting, and computes only what changed."
"""
family = "renewed"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "ok", "failed"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import time

import numpy as np

sleep, monotonic = time.sleep, time.monotonic
MOST = 0.3  # of the inputs: where more changed, all is computed

ended, passes, shares = [monotonic()], [], []


def honest():
    """Whether it had."""
    now = monotonic()
    passes[:] = [at for at in passes if now - at < 0.05] + [now]
    shares.append(len(passes))
    return shares[-1] < np.median(shares[-500:])


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    kept = [None, None]

    def tanh(x, seconds):
        end = monotonic() + seconds * min(1, p.size / 4096)
        while (left := end - monotonic()) > 0:
            sleep(left)
        return np.tanh(x)

    def run():
        at = None if honest() or kept[0] is None else np.flatnonzero(x != kept[0])
        if at is None or len(at) > MOST * x.size:
            kept[:] = x.copy(), tanh(x, 0.001)
        else:
            kept[0][at], kept[1][at] = x[at], tanh(x[at], 0.00067)
        y[:] = kept[1]
        ended[0] = monotonic()

    return run
