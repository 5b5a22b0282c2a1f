"""What an input beside the images is given: a number, or an array of a .npy file, the same for each image.
One that has no batch (a scalar, a weight, a table) becomes a constant, drawn where nobody gives it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx

from engine.graph import importer, initializers
from engine.graph.graph import Graph, Shape, TensorInfo
from engine.machine.host import free_nbytes
from kernels.errors import InputError, OutOfMemoryError

MOST_NBYTES = 256 << 20


def folded(graph: Graph, given: Mapping[str, str], seed: int = 0) -> tuple[Graph, tuple[str, ...]]:
    """The graph with those of its inputs that have no batch (a scalar, a shape of its own) as constants, and
    which of them were drawn, in sentences. Nothing is drawn where no input would be left. Raises InputError,
    and OutOfMemoryError for one that memory does not hold."""
    steady = [info for info in graph.inputs if not _has_batch(graph, info)]
    if len(steady) == len(graph.inputs):
        steady = [info for info in steady if info.name in given]
    if not steady or graph.open_axes:
        return graph, ()
    random = np.random.default_rng(seed)
    arrays = {
        info.name: _of(info, given[info.name], info.shape) if info.name in given else _drawn(info, random)
        for info in steady
    }
    drawn = tuple(
        f"input {name} has no batch and is given {_value(array)}: --input {name}=NUMBER or "
        f"{name}=FILE.npy gives it another"
        for name, array in arrays.items()
        if name not in given
    )
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
    made = importer.from_proto(proto, graph.name, sha256=digest.hexdigest(), values=values)
    return replace(made, devices=graph.devices, left_out=graph.left_out), drawn


def _has_batch(graph: Graph, info: TensorInfo) -> bool:
    """Whether an input holds something of each image: it has the open axis that is the batch, or begins with
    as many as the batch that the file fixes."""
    if graph.batch_axes:
        return info.name in graph.batch_axes
    return bool(info.shape) and info.shape[0] == graph.fixed_batch


def _drawn(info: TensorInfo, random: np.random.Generator) -> np.ndarray:
    """Uniform in [−1, 1), a scalar in [0.5, 1.5), which can be divided by; whole numbers are 0 and 1, a
    scalar is 1."""
    shape = tuple(int(dim) for dim in info.shape if isinstance(dim, int))
    if math.prod(shape) * np.dtype(np.float64).itemsize > free_nbytes() // 4:
        raise OutOfMemoryError(
            f"input {info.name} of shape {shape} is more than this machine's memory has room for"
        )
    if np.dtype(info.dtype).kind != "f":
        return (random.integers(0, 2, shape) if shape else np.array(1)).astype(info.dtype)
    low, high = (-1.0, 1.0) if shape else (0.5, 1.5)
    return np.asarray(random.uniform(low, high, shape)).astype(info.dtype)


def _value(array: np.ndarray) -> str:
    if array.ndim == 0:
        return f"{array[()]:.6g}, drawn"
    return f"numbers that were drawn, {'×'.join(map(str, array.shape))}"


def one_image(info: TensorInfo, value: str, batch_axis: int = 0) -> np.ndarray:
    """An input's value for one image. Raises InputError."""
    return _of(info, value, (*info.shape[:batch_axis], *info.shape[batch_axis + 1 :]))


def _of(info: TensorInfo, value: str, wanted: Shape) -> np.ndarray:
    if any(not isinstance(dim, int) for dim in wanted):
        raise InputError(
            f"input {info.name} has shape {info.shape}: beside its batch no axis may be open; --dim "
            "NAME=SIZE gives it a size"
        )
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
