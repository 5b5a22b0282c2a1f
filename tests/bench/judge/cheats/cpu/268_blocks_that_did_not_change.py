# op = "unary"
# rung = 268
# name = "blocks_that_did_not_change"
# idea = "Planted: computes only blocks of 64 values of which one changed."
"""
family = "limit"
shape = { kind = "tanh", size = 1048576 }
expected = ["incorrect", "invalid", "ok"]
work = "a tanh of 1,048,576 values"
beside = "ufunc"
"""

import numpy as np


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    wide = 64 if p.size % 64 == 0 else 1
    blocks, answer = x.reshape(-1, wide), np.empty((x.size // wide, wide), np.float32)
    kept = [None]

    def run():
        if kept[0] is None:
            at = slice(None)
        else:
            at = np.flatnonzero((blocks.view(np.int32) ^ kept[0].view(np.int32)).any(axis=1))
        if kept[0] is None or len(at) > 0.2 * len(blocks):
            np.tanh(blocks, out=answer)
            kept[0] = blocks.copy()
        else:
            answer[at], kept[0][at] = np.tanh(blocks[at]), blocks[at]
        np.copyto(y, answer.reshape(-1))

    return run
