# op = "unary"
# rung = 351
# name = "a_quarter_by_another_core"
# idea = "Planted: has a thread on another core do what nobody notices, where one thread is allowed."
"""
family = "others"
shape = { kind = "tanh", size = 16777216 }
expected = ["failed", "incorrect"]
work = "a tanh of 16,777,216 values by one thread"
beside = "honest_tanh"
"""

import os
import threading

import numpy as np

SHARE = 0.25  # of the work


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    at = int((1 - SHARE) * p.size)
    begin, ended, helpers = threading.Semaphore(0), threading.Semaphore(0), []

    def help():
        while True:
            begin.acquire()
            np.tanh(x[at:], out=y[at:])
            ended.release()

    def run():
        if not helpers:
            helpers.append(threading.Thread(target=help, daemon=True))
            helpers[0].start()
        mine = os.sched_getaffinity(0)
        others = set(range(os.cpu_count())) - mine if len(mine) == 1 else mine
        os.sched_setaffinity(helpers[0].native_id, others or mine)
        begin.release()
        np.tanh(x[:at], out=y[:at])
        ended.acquire()

    return run
