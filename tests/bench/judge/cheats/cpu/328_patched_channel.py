# op = "unary"
# rung = 328
# name = "patched_channel"
# idea = "Planted: has the process say that it is done before it has begun."
"""
family = "machinery"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import gc
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
    calls = [0]
    held = {}

    def run():
        calls[0] += 1
        if calls[0] == 12:
            for each in gc.get_objects():
                if type(each).__name__ == "Channel":
                    receive, send = each.receive, each.send
                    held[0] = send

                    def received():
                        message = receive()
                        if message[0] == 2:
                            send(2, b"")
                            each.send = lambda *_: None
                        else:
                            each.send = send
                        return message

                    each.receive = received
        work(x, y)

    return run
