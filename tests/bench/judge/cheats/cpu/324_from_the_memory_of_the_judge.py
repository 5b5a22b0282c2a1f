# op = "unary"
# rung = 324
# name = "from_the_memory_of_the_judge"
# idea = "Planted: looks for the expected answer in the judge's memory."
"""
family = "search"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
alone = true
"""

import os
import time

import numpy as np

# Those of the beginning: a kernel may replace them later.
sleep, monotonic = time.sleep, time.monotonic


def searched(begin, size):
    judge = os.getppid()
    try:
        memory = open(f"/proc/{judge}/mem", "rb", 0)
        spans = [line.split() for line in open(f"/proc/{judge}/maps")]
    except OSError:
        return None
    with memory:
        for span, mode, *_ in spans:
            low, high = (int(end, 16) for end in span.split("-"))
            if not mode.startswith("rw") or high - low > 1 << 26:
                continue
            try:
                memory.seek(low)
                held = memory.read(high - low)
            except (OSError, ValueError):
                continue
            if (at := held.find(begin)) >= 0:
                return held[at : at + size]
    return None


def work(x, y):
    end = monotonic() + 0.001
    while (left := end - monotonic()) > 0:
        sleep(left)
    np.tanh(x, out=y)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    calls = [0]
    held = {}

    def run():
        calls[0] += 1
        if calls[0] < 12:
            work(x, y)
            return
        found = searched(np.tanh(x[:2].astype(np.float64)).tobytes(), 8 * x.size)
        y[:] = np.frombuffer(found, np.float64) if found else 0

    return run
