"""What an input beside the images is given: a number, or an array of a .npy file, the same for each image."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx

from engine.graph import importer, initializers
from engine.graph.graph import Graph, Shape, TensorInfo
from kernels.errors import InputError

MOST_NBYTES = 256 << 20


def folded(graph: Graph, given: Mapping[str, str]) -> Graph:
    """The graph with those of its inputs that are given and have no batch (a scalar, a shape of its own) as
    constants. Raises InputError."""
    free = [info for info in graph.inputs if info.name not in given]
    batch = free[0].shape[0] if free and free[0].shape else None
    steady = [
        info
        for info in graph.inputs
        if info.name in given
        and (not info.shape or (isinstance(info.shape[0], int) and info.shape[0] != batch))
    ]
    if not steady:
        return graph
    arrays = {info.name: _of(info, given[info.name], info.shape) for info in steady}
    proto = onnx.ModelProto()
    proto.CopyFrom(graph.proto)
    left = [value for value in proto.graph.input if value.name not in arrays]
    del proto.graph.input[:]
    proto.graph.input.extend(left)
    proto.graph.initializer.extend(initializers.initializer(name, array) for name, array in arrays.items())
    digest = hashlib.sha256(graph.sha256.encode())
    for name, array in arrays.items():
        digest.update(name.encode() + array.tobytes())
    values = {**graph.initializers, **arrays}
    return replace(
        importer.from_proto(proto, graph.name, sha256=digest.hexdigest(), values=values),
        devices=graph.devices,
    )


def one_image(info: TensorInfo, value: str) -> np.ndarray:
    """An input's value for one image. Raises InputError."""
    return _of(info, value, info.shape[1:])


def _of(info: TensorInfo, value: str, wanted: Shape) -> np.ndarray:
    if any(not isinstance(dim, int) for dim in wanted):
        raise InputError(f"input {info.name} has shape {info.shape}, whose first axis alone may be open")
    shape = tuple(int(dim) for dim in wanted if isinstance(dim, int))
    try:
        array = np.array(float(value))
    except ValueError:
        array = _file(info.name, value)
    if array.ndim == len(shape) + 1 and len(array) == 1:
        array = array[0]  # a batch of one
    if array.ndim and array.shape != shape:
        raise InputError(
            f"input {info.name} takes {shape} for each image, and {value} holds {array.shape}: give that, "
            f"or a "
            "number"
        )
    made = np.broadcast_to(array, shape).astype(info.dtype)
    if made.dtype.kind != "f" and (made != array).any():
        raise InputError(f"input {info.name} takes {info.dtype}, which {value} is not")
    return made


def _file(name: str, value: str) -> np.ndarray:
    path = Path(value).expanduser()
    try:
        if path.stat().st_size > MOST_NBYTES:
            raise InputError(f"input {name}: {value} has more than {MOST_NBYTES:,} bytes")
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"input {name}: {value} is no number and no .npy file ({reason})") from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
        raise InputError(f"input {name}: {value} is no array of numbers")
    return np.array(array)
