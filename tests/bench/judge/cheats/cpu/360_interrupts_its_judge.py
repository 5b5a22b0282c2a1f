# op = "unary"
# rung = 360
# name = "interrupts_its_judge"
# idea = "Planted: sends its judge the signal of Ctrl-C."
"""
family = "processes"
shape = { kind = "tanh", size = 65536 }
expected = ["failed", "crashed", "ok"]
work = "a tanh of 65,536 values"
beside = "honest_tanh"
alone = true
"""

import os
import signal

import numpy as np


def meddle():
    if os.getppid() > 1:
        os.kill(os.getppid(), signal.SIGINT)


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
