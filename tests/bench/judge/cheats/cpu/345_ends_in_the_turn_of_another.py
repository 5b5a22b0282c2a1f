# op = "unary"
# rung = 345
# name = "ends_in_the_turn_of_another"
# idea = "Planted: ends by a timer in the turn of another, which is then suspected."
"""
family = "processes"
shape = { kind = "tanh", size = 65536 }
expected = ["crashed", "failed", "ok"]
work = "a tanh of 65,536 values"
beside = "honest_tanh"
alone = true
"""

import ctypes
import random
import signal

import numpy as np

libc = ctypes.CDLL(None)


def meddle():
    event = (ctypes.c_int * 16)(0, 0, signal.SIGKILL)
    timer = ctypes.c_void_p()
    libc.timer_create(1, event, ctypes.byref(timer))
    libc.timer_settime(timer, 0, (ctypes.c_long * 4)(0, 0, 0, int(2e7 + 1e8 * random.random())), None)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    calls = [0]

    def run():
        calls[0] += 1
        if calls[0] % 64 == 20:
            try:
                meddle()
            except OSError:
                pass
        np.tanh(x, out=y)

    return run
