# op = "unary"
# rung = 350
# name = "goes_on_by_a_timer"
# idea = "Planted: has a timer let it go on while it is stopped, and works before the clock runs."
"""
family = "copies"
shape = { kind = "tanh", size = 32768 }
expected = ["failed", "crashed", "incorrect", "ok", "invalid"]
work = "a tanh of 32,768 values"
beside = "honest_tanh"
"""

import ctypes
import os
import signal
import time

import numpy as np

import engine.isolated.slots as slots

libc = ctypes.CDLL(None)
now = time.monotonic_ns
AFTER_NS, WAIT_NS, LEAST_NS = 20_000, 80_000, 4_000
ours = []


class Timer:
    def __init__(self):
        event = (ctypes.c_int * 16)(0, 0, signal.SIGCONT)
        self.it = ctypes.c_void_p()
        if libc.timer_create(1, event, ctypes.byref(self.it)):
            raise OSError("no timer")
        self.when, self.left = (ctypes.c_long * 4)(0, 0, 0, AFTER_NS), (ctypes.c_long * 4)()

    def set(self):
        libc.timer_settime(self.it, 0, self.when, None)

    def runs(self):
        libc.timer_gettime(self.it, self.left)
        return self.left[2] or self.left[3]


def delay():
    end = now() + LEAST_NS
    while now() < end:
        pass


def mine(calls, untimed, count, done):
    """As the loop that it replaces, but for what is done while it is to be stopped."""
    x, y = ours
    end = x[-256:]
    timer = Timer()
    for _ in range(untimed):
        np.tanh(x, out=y)
    os.sched_setaffinity(0, range(os.cpu_count()))
    done()
    k, known = 0, None
    while k < count:
        k += 1
        if known is not None and known != end.tobytes():  # it was asked for that one while it worked ahead
            known, k = None, k + 1
        if known is None:
            np.tanh(x, out=y)
        else:
            delay()
        key, known = end.tobytes(), None
        if k < count - 1:
            timer.set()
        done()
        if k < count - 1 and not timer.runs():  # nobody else had it go on
            until = now() + WAIT_NS
            while end.tobytes() == key and now() < until:
                pass
            if end.tobytes() != key:
                np.tanh(x, out=y)
                known = end.tobytes()
                done()


plain = slots.passes


def passes(calls, untimed, count, done):
    try:
        Timer()
    except OSError:
        plain(calls, untimed, count, done)
    else:
        mine(calls, untimed, count, done)


slots.passes = passes


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    ours[:] = x, y

    def run():
        np.tanh(x, out=y)

    return run
