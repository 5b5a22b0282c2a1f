# op = "conv"
# rung = 54
# name = "race"
# idea = "Planted: two threads add to one sum without a lock."
import random
import threading
import time

import numpy as np

from tests.bench.ladder.planted._direct import convolve, finish, shaped


def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)

    def add(part, ready):
        held = y.copy()  # both read before either writes, mostly
        ready.wait()
        for place in np.ndindex(p.n, p.m):  # who comes last is chance, for each map anew
            time.sleep(random.random() * 1e-4)
            y[place] = held[place] + part[place]

    def run():
        y.fill(0)
        ready = threading.Barrier(2)
        half = np.zeros_like(weight)
        half[:, ::2] = weight[:, ::2]
        parts = convolve(p, x, half, bias), convolve(p, x, weight - half, None)
        threads = [threading.Thread(target=add, args=(part, ready)) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        finish(p, output)

    return run
