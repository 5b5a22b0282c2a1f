"""A kernel of a test's own as a user's file: a tanh that takes WORK_S at least, by sleeping."""

from __future__ import annotations

import textwrap
from pathlib import Path

WORK_S = 0.001

_HEAD = """# op = "{op}"
# rung = {number}
# name = "{name}"
# idea = "A test's own."
import os
import signal
import sys
import time

import numpy as np

sleep, monotonic = time.sleep, time.monotonic


def work(x, y):
    end = monotonic() + {work}
    while (left := end - monotonic()) > 0:
        sleep(left)
    np.tanh(x, out=y)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)

    def run():
"""


def write(folder: Path, name: str, run: str, number: int = 90, op: str = "unary") -> None:
    """The kernel's file. run: what it does, with `work`, x and y at hand."""
    folder.mkdir(exist_ok=True)
    body = textwrap.indent(textwrap.dedent(run).strip(), " " * 8)
    head = _HEAD.format(op=op, number=number, name=name, work=WORK_S)
    (folder / f"{number}_{name}.py").write_text(f"{head}{body}\n\n    return run\n")
