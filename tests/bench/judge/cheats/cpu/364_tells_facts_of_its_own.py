# op = "unary"
# rung = 364
# name = "tells_facts_of_its_own"
# idea = "Planted: has its process tell facts that it made up, among them what is taken off."
"""
family = "machinery"
shape = { kind = "tanh", size = 4096 }
expected = ["ok", "incorrect", "failed"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import time

import numpy as np

import engine.isolated.open_engine as open_engine

sleep, monotonic = time.sleep, time.monotonic
MADE_UP = {"trigger": "0 ns a pass taken off", "verdict": "9.99× faster", "threads": "0"}


class Here(open_engine.opened):
    def __init__(self, *given):
        super().__init__(*given)
        self.facts = {**self.facts, **MADE_UP}


open_engine.opened = Here


def work(x, y):
    end = monotonic() + 0.001
    while (left := end - monotonic()) > 0:
        sleep(left)
    np.tanh(x, out=y)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)

    def run():
        work(x, y)

    return run
