"""`deploy.prototxt` and `.caffemodel`: the net in the one, its weights in the other, both in one folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.extras.weights.caffe_text import net_of, parsed
from bench.extras.weights.caffe_wire import blobs
from bench.extras.weights.parts import FilePart, Found, fitted
from kernels.errors import ModelError

UNDERSTOOD = "deploy.prototxt with its .caffemodel"
WEIGHTS, TEXT = ".caffemodel", ".prototxt"
MOST_TEXT, MOST_WEIGHTS = 1 << 20, 1 << 31


def matches(path: Path, head: bytes) -> bool:
    return path.suffix in (WEIGHTS, TEXT)


def read(path: Path) -> Found:
    """Raises ModelError."""
    text, weights = (path if path.suffix == suffix else _beside(path, suffix) for suffix in (TEXT, WEIGHTS))
    if text.stat().st_size > MOST_TEXT:
        raise ModelError(f"{text.name} is larger than the description of a net is")
    net, name = net_of(parsed(text.read_text(encoding="utf-8", errors="replace")))
    title = f"{''.join(filter(str.isprintable, name[:60])) or text.stem} of Caffe"
    if weights.stat().st_size > MOST_WEIGHTS:
        raise ModelError(f"{weights.name} is larger than an ONNX file can be")
    parts = {}
    for layer, held in blobs(memoryview(weights.read_bytes())).items():
        if not 1 <= len(held) <= 2:
            raise ModelError(
                f"its layer {layer[:60]} has {len(held)} arrays of weights; one or two are known"
            )
        for kind, array in zip(("weight", "bias"), held, strict=False):
            key = f"{layer}.{kind}"
            parts[key] = FilePart.of(_without_ones(array, net.parameters.get(key, ())))
    net_has = {key.rpartition(".")[0] for key in net.parameters}
    known = {key: part for key, part in parts.items() if key.rpartition(".")[0] in net_has}
    return Found(title, net, fitted(net, known, title), "caffe" if net.input_shape[0] == 3 else "unit")


def _without_ones(array: np.ndarray, wanted: tuple[int, ...]) -> np.ndarray:
    """Caffe's old blobs have four axes always, those of ones in front."""
    extra = array.ndim - len(wanted)
    if wanted and extra > 0 and array.shape[:extra] == (1,) * extra:
        return array.reshape(array.shape[extra:])
    return array


def _beside(path: Path, suffix: str) -> Path:
    found = sorted(other for other in path.parent.iterdir() if other.suffix == suffix)
    if len(found) > 1 and suffix == TEXT:
        found = [other for other in found if "deploy" in other.name] or found
    if len(found) > 1:
        found = [other for other in found if other.stem == path.stem] or found
    if len(found) != 1:
        raise ModelError(f"beside it lie {len(found) or 'no'} files {suffix}; one is needed, as {UNDERSTOOD}")
    return found[0]
