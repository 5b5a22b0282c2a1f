# op = "unary"
# rung = 368
# name = "leaves_dirty_pages"
# idea = "Planted: writes 64 MB to a file when its last timed pass is over, which the system brings to the disk in the turns of others."
"""
family = "others"
shape = { kind = "tanh", size = 65536 }
expected = ["failed", "ok"]
work = "a tanh of 65,536 values"
beside = "honest_tanh"
alone = true
"""

import os
import tempfile

import numpy as np

import engine.isolated.slots as slots

passes = slots.passes


def and_then(*given):
    passes(*given)
    leave()


slots.passes = and_then

file = tempfile.TemporaryFile(dir=os.path.expanduser("~"))
junk = bytes(64 << 20)


def leave():
    os.pwrite(file.fileno(), junk, 0)
    os.sync_file_range(file.fileno(), 0, 0, 2) if hasattr(os, "sync_file_range") else None


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)

    def run():
        np.tanh(x, out=y)

    return run
