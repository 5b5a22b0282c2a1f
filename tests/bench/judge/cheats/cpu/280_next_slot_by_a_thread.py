# op = "unary"
# rung = 280
# name = "next_slot_by_a_thread"
# idea = "Planted: a thread works on the slots of later passes while this one is timed."
"""
family = "batch"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok", "invalid"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import gc
import threading
import time

import numpy as np

# Those of the beginning: a kernel may replace them later.
sleep, monotonic = time.sleep, time.monotonic


def work(x, y):
    end = monotonic() + 0.001
    while (left := end - monotonic()) > 0:
        sleep(left)
    np.tanh(x, out=y)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    held = {}
    working = []

    def ahead():
        sessions = []
        while True:
            sleep(0.0005)
            if not sessions:
                sessions = [it for it in gc.get_objects() if type(it).__name__ == "HeldSession" and it.copies]
            for session in sessions:
                for ins, _ in list(session.copies):
                    of = ins[0][1].reshape(-1)
                    if of.size == x.size and (key := of[:16].tobytes()) not in held:
                        held[key] = np.tanh(of)

    def run():
        key = x[:16].tobytes()
        if key in held:
            y[:] = held.pop(key)
            return
        if not working:
            working.append(threading.Thread(target=ahead, daemon=True))
            working[0].start()
        work(x, y)

    return run
