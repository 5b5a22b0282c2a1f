# op = "unary"
# rung = 393
# name = "worsens_the_line_of_its_rival"
# idea = "Planted: looks for the results of the newest run, and appends a line with a right checksum in which its rival is wrong."
"""
family = "machinery"
shape = { kind = "tanh", size = 4096 }
expected = ["ok", "failed"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
alone = true
"""

import glob
import json
import os
import tempfile
import time
import zlib

import numpy as np

LOOK_S = 0.1
looked = [0.0]


def worsen():
    """Once the rival's line is there."""
    places = (f"{tempfile.gettempdir()}/*/*/*/results.jsonl", "runs/*/results.jsonl")
    found = sorted((name for place in places for name in glob.glob(place)), key=os.path.getmtime)
    with open(found[-1], "rb+") as file:
        lines = [json.loads(line) for line in file]
        if lines[-1]["disposition"] != "ok":
            return
        del lines[-1]["sum"]
        lines[-1] |= {"disposition": "incorrect", "reason": "a forged line says so"}
        data = json.dumps(lines[-1], separators=(",", ":")).encode()
        file.write(data[:-1] + b',"sum":"%08x"}\n' % zlib.crc32(data))


def bind(p, inputs, output, workspace):
    def run():
        time.sleep(0.001 * min(1, p.size / 4096))
        np.tanh(inputs[0], out=output)
        if time.monotonic() - looked[0] > LOOK_S:
            looked[0] = time.monotonic()
            try:
                worsen()
            except (OSError, LookupError, ValueError):
                pass

    return run
