# op = "unary"
# rung = 354
# name = "leaves_timers_behind"
# idea = "Planted: sets thousands of timers when its last timed pass is over, which go off in the turns of others."
"""
family = "others"
shape = { kind = "tanh", size = 65536 }
expected = ["failed", "ok"]
work = "a tanh of 65,536 values"
beside = "honest_tanh"
alone = true
"""

import ctypes
import signal

import numpy as np

import engine.isolated.slots as slots

passes = slots.passes


def and_then(*given):
    passes(*given)
    leave()


slots.passes = and_then

libc = ctypes.CDLL(None)
COUNT, APART_NS = 8000, 1500
timers = []


def made():
    event = (ctypes.c_int * 16)(0, 0, signal.SIGURG)
    for number in range(COUNT):
        timer = ctypes.c_void_p()
        if libc.timer_create(1, event, ctypes.byref(timer)):
            break
        timers.append((timer, (ctypes.c_long * 4)(0, 0, 0, 200_000 + number * APART_NS)))


def leave():
    if not timers:
        made()
    for timer, when in timers:
        libc.timer_settime(timer, 0, when, None)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)

    def run():
        np.tanh(x, out=y)

    return run
