"""`python -m tests.zoo.export DIR [NET…]`: every net as an ONNX file without weights.

Needs the `train` extra, in an environment of its own. A file says how each of its weights is drawn
(tests.zoo.drawn), so that it is small, and the same net wherever it is filled.
"""

from __future__ import annotations

import argparse
import importlib
import tempfile
import time
from pathlib import Path

import onnx

from tests.zoo import scaling
from tests.zoo.drawn import emptied
from tests.zoo.nets import Export, exports

SEED = 14
MODULES = {
    "torchscript": "pytorch",
    "dynamo": "pytorch",
    "keras": "keras_onnx",
    "scikit": "scikit",
    "built": "built",
}


def write(wanted: Export, folder: Path) -> Path:
    """Export one, and keep it without its weights. Raises whatever the exporter does."""
    exporter = importlib.import_module(f"tests.zoo.exporters.{MODULES[wanted.exporter]}")
    with tempfile.TemporaryDirectory() as temporary:
        whole = Path(temporary) / f"{wanted.stem}.onnx"
        exporter.export(wanted, whole)
        proto = onnx.load(whole)
    bare = emptied(proto, scaling.recipes(proto, SEED), SEED)
    path = folder / f"{wanted.stem}.onnx"
    onnx.save(bare, path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("nets", nargs="*", metavar="NET", help="all if none is given")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    failed = []
    for wanted in exports(tuple(arguments.nets)):
        began = time.monotonic()
        try:
            path = write(wanted, arguments.folder)
        except Exception as error:  # an exporter's own fault costs its file alone
            failed.append(wanted.stem)
            print(f"{wanted.stem}: {type(error).__name__}: {error}", flush=True)
            continue
        print(f"{path}: {path.stat().st_size:,} bytes, {time.monotonic() - began:.0f} s", flush=True)
    raise SystemExit(f"not exported: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
