"""Targets with faults, to see that each is found and told."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path


def fails(folder: Path, drawn: random.Random) -> int:
    if drawn.random() < 0.1:
        raise ValueError("planted")
    return 1


def dies(folder: Path, drawn: random.Random) -> int:
    if drawn.random() < 0.1:
        os.kill(os.getpid(), signal.SIGSEGV)
    return 1


def hangs(folder: Path, drawn: random.Random) -> int:
    if drawn.random() < 0.1:
        while True:
            try:
                time.sleep(100)
            except BaseException:  # whatever is raised in it, it goes on
                continue
    return 1


def grows(folder: Path, drawn: random.Random) -> int:
    if drawn.random() < 0.1:
        held = []
        while True:
            held.append(bytearray(1 << 31))
    return 1


def fine(folder: Path, drawn: random.Random) -> int:
    return 2


TARGETS = {made.__name__: (__name__, 1.0) for made in (fails, dies, hangs, grows, fine)}
