"""How long one judgement of a small kernel takes on a judge that is ready:

    python -m tests.api.latency --device cuda --op conv

The kernel is the template of that operator (`ladder --new`). First with a pause before each, as when somebody
writes a kernel; then one right after the other. Exit status: 1 where a judgement with a pause before it takes
more than `--most` seconds, or is not right.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import kernelscope as ks
from kernelscope.running import run


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--op", default="conv")
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--pause", type=float, default=8.0)
    parser.add_argument("--most", type=float, default=3.0)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, ks.Judge(device=asked.device) as judge:
        made = run(["ladder", "--new", asked.op, folder, "--device", asked.device]).output.decode().split()
        kernel = Path(made[-1])
        first = judge(kernel)
        print(f"the first, which measures what the machine reaches: {first.took_s:.2f} s, {first}")
        apart, at_once = [], []
        for taken, pause in ((apart, asked.pause), (at_once, 0.0)):
            for _ in range(asked.count):
                time.sleep(pause)
                began = time.monotonic()
                judgement = judge(kernel)
                taken.append(time.monotonic() - began)
                print(f"{taken[-1]:.2f} s, {judgement}", flush=True)
                if not judgement.right:
                    return 1
    for words, taken in (("with a pause before", apart), ("one after the other", at_once)):
        print(f"{words}: median {statistics.median(taken):.2f} s, {min(taken):.2f} to {max(taken):.2f} s")
    return int(statistics.median(apart) > asked.most)


if __name__ == "__main__":
    sys.exit(main())
