"""`python -m tests.conformance`: run ONNX's own tests and print what came of them; --write FILE keeps it.
--cuda counts engine-cuda's answers on this machine's GPU for that page."""

from __future__ import annotations

import argparse
import datetime
import sys
import warnings
from pathlib import Path

import onnx

from engine.machine import driver, host
from tests.conformance import kept, report


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help="where to, instead of standard output")
    parser.add_argument("--cuda", action="store_true", help=f"count on a GPU, into {kept.FILE.name}")
    wanted = parser.parse_args()
    if wanted.cuda:
        return _count()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite overflows on purpose
        text = report.text()
    if wanted.write is None:
        sys.stdout.write(text)
    else:
        wanted.write.write_text(text, encoding="utf-8")
    return 0


def _count() -> int:
    gpu = driver.device()
    if gpu is None:
        print(f"nothing was counted: {driver.unavailable()}", file=sys.stderr)
        return 1
    backend = "engine-cuda"
    counts = report.counts(backend, processes=max(2, host.physical_cores()))
    of = kept.Kept(
        onnx=onnx.__version__,
        backend=backend,
        device=gpu.name,
        day=datetime.date.today().isoformat(),
        counts=counts,
    )
    kept.save(of)
    print(f"kept in {kept.FILE}")
    for words, count in counts.items():
        print(
            f"{words}: {count.right} of {count.tests} right, {len(count.wrong)} wrong {' '.join(count.wrong)}"
        )
    return 1 if any(count.wrong for count in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
