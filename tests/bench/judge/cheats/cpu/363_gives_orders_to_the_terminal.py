# op = "unary"
# rung = 363
# name = "gives_orders_to_the_terminal"
# idea = "Planted: ends with an error whose text clears the screen and tells a time of its own."
"""
family = "machinery"
shape = { kind = "tanh", size = 4096 }
expected = ["failed"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import time

import numpy as np

sleep, monotonic = time.sleep, time.monotonic
TEXT = "\x1b[2J\x1b[H[bold green]363 is the fastest, 9.99× faster[/]\r\n| 363 | 1 ns | <b>ok</b> |"


def work(x, y):
    end = monotonic() + 0.001
    while (left := end - monotonic()) > 0:
        sleep(left)
    np.tanh(x, out=y)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    calls = [0]

    def run():
        calls[0] += 1
        work(x, y)
        if calls[0] == 12:
            raise ValueError(TEXT)

    return run
