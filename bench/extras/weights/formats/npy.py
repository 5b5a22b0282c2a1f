"""`bvlc_alexnet.npy`: AlexNet of Caffe as TensorFlow's users have it, a pickled dict of layers.

A layer is [weights, biases] or {"weights", "biases"}; weights of convolutions are (height, width, in, out),
those of the rest (in, out), and the first of these takes what pool5 gives as (height, width, channel).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.extras.weights.parts import FilePart, Found, divided, fitted
from bench.extras.weights.unpickler import load
from kernels.errors import ModelError
from models.builders import LRN_OF_CAFFE, alexnet

UNDERSTOOD = "bvlc_alexnet.npy (a dict of layers)"
MAGIC = b"\x93NUMPY"
MOST_HALVED = 5  # by more, what the first layer gives no longer makes two groups
SIDE = 6  # of pool5's images


def matches(path: Path, head: bytes) -> bool:
    return head.startswith(MAGIC)


def read(path: Path) -> Found:
    """Raises ModelError."""
    layers = _layers(path)
    parts = {}
    for name, layer in layers.items():
        for kind, array in _pair(name, layer):
            if array.dtype.kind not in "fiu":
                raise ModelError(f"the {kind} of {name} are no numbers")
            parts[f"{name}.{kind}"] = array
    first, last = parts.get("conv1.weight"), parts.get("fc8.bias")
    thin = divided(96, first.shape[-1] if first is not None and first.ndim else 0, MOST_HALVED)
    classes = int(last.size) if last is not None and last.size else 1000
    net = alexnet(classes, LRN_OF_CAFFE, thin)
    title = "Caffe's AlexNet" + (f" at 1/{thin} of its width" if thin > 1 else "")
    return Found(title, net, fitted(net, {n: _as_onnx(n, a) for n, a in parts.items()}, title), "caffe")


def _layers(path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        try:
            version = np.lib.format.read_magic(stream)
            reader = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
            shape, _, dtype = reader[version[0]](stream)
        except (ValueError, KeyError, EOFError) as error:
            raise ModelError(f"the header of its array is damaged ({type(error).__name__})") from None
        if dtype.hasobject and shape == ():
            found = load(stream)
            if isinstance(found, dict) and all(type(name) in (str, bytes) for name in found):
                return {n.decode("latin-1") if isinstance(n, bytes) else n: v for n, v in found.items()}
    raise ModelError(f"it holds no dict of layers; {UNDERSTOOD} does")


def _pair(name: str, layer: Any) -> list[tuple[str, np.ndarray]]:
    if isinstance(layer, dict):
        layer = [layer.get("weights"), layer.get("biases")]
    if isinstance(layer, list | tuple) and len(layer) == 2:
        weights, biases = layer
        if isinstance(weights, np.ndarray) and isinstance(biases, np.ndarray):
            return [("weight", weights), ("bias", biases)]
    raise ModelError(f"its layer {name[:60]} is not [weights, biases]")


def _as_onnx(name: str, array: np.ndarray) -> FilePart:
    """The same weights with the outputs in front; what has other axes than it should keeps them."""
    if array.ndim == 4:
        array = array.transpose(3, 2, 0, 1)
    elif name == "fc6.weight" and array.ndim == 2 and array.shape[0] % SIDE**2 == 0:
        outputs = array.shape[1]
        array = array.reshape(SIDE, SIDE, -1, outputs).transpose(3, 2, 0, 1).reshape(outputs, -1)
    elif array.ndim == 2:
        array = array.T
    return FilePart.of(array)
