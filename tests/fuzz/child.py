"""The process in which files are tried: one target, seed after seed, until the time is up.

`python -m tests.fuzz.child TARGET SECONDS COUNTERS`: COUNTERS is a file of three numbers (seed, cases,
records) that this process writes as it goes, so that whoever started it knows which seed ended it. Standard
output: a line with the code that was loaded, then a line a finding.
"""

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import json
import logging
import mmap
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
from importlib import import_module
from pathlib import Path

MOST_NBYTES = 2 << 30
MOST_S = float(os.environ.get("KERNELSCOPE_FUZZ_SECONDS", "5"))
ROOT = Path(__file__).resolve().parents[2]
COUNTERS = struct.Struct("<qqq")
# Where targets are found; a test plants others.
TARGETS = os.environ.get("KERNELSCOPE_FUZZ_TARGETS", "tests.fuzz.targets")

# Most of a case's time is else that of the disk.
_IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def one(target: str, seed: int, folder: Path) -> int:
    """Try one file. How many records were in it; raises whatever is a finding."""
    module = import_module(import_module(TARGETS).TARGETS[target][0])
    return int(getattr(module, target)(folder, random.Random(f"{target} {seed}")))


def code() -> str:
    """A hash of all of this program that is loaded."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    ours = sorted(file for file in files if file and Path(file).is_relative_to(ROOT) and ".venv" not in file)
    held = hashlib.sha256()
    for file in ours:
        held.update(Path(file).read_bytes())
    return held.hexdigest()[:16]


def limited() -> None:
    """From here on: at most so much memory. A case of too many seconds ends the process, wherever it is."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_NBYTES, MOST_NBYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Damaged lines are what most of this is about.
    logging.getLogger("kernelscope.records").setLevel(logging.CRITICAL)
    faulthandler.enable()
    faulthandler.register(signal.SIGALRM, chain=True)


def main(target: str, seconds: float, counters: Path) -> int:
    sys.path.insert(0, str(ROOT))
    with (
        tempfile.TemporaryDirectory(prefix="kernelscope-fuzz-", dir=_IN_MEMORY) as name,
        counters.open("r+b") as held,
    ):
        folder, shared = Path(name), mmap.mmap(held.fileno(), COUNTERS.size)
        seed, cases, records = COUNTERS.unpack(shared)
        for warm in (-1, -2, -3):  # what is loaded late, and the honest files, are no part of a case's time
            with contextlib.suppress(Exception):
                one(target, warm, folder)
        print(json.dumps({"code": code()}), flush=True)
        limited()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            signal.setitimer(signal.ITIMER_REAL, MOST_S)
            try:
                records += one(target, seed, folder)
            except BaseException as error:
                signal.setitimer(signal.ITIMER_REAL, 0)
                text = "".join(traceback.format_exception(error))
                print(json.dumps({"seed": seed, "text": text}), flush=True)
            seed, cases = seed + 1, cases + 1
            COUNTERS.pack_into(shared, 0, seed, cases, records)
        signal.setitimer(signal.ITIMER_REAL, 0)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])))
