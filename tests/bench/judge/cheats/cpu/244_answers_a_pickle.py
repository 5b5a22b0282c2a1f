# op = "unary"
# rung = 244
# name = "answers_a_pickle"
# idea = "Planted: answers with an object that runs code where it is read."
"""
family = "machinery"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import gc
import pickle
import socket
import struct
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

    def run():
        for o in gc.get_objects():
            if isinstance(o, socket.socket):
                evil = pickle.dumps(print)
                o.send(struct.pack("<BI", 1, len(evil)) + evil)

    return run
