"""What an input beside the images is given: a number, or an array of a .npy file, the same for each image."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine.graph.graph import TensorInfo
from kernels.errors import InputError

MOST_NBYTES = 256 << 20


def one_image(info: TensorInfo, value: str) -> np.ndarray:
    """An input's value for one image, of a number that all of it is, or of a .npy file. Raises InputError."""
    rest = info.shape[1:]
    if not info.shape or any(not isinstance(dim, int) for dim in rest):
        raise InputError(f"input {info.name} has shape {info.shape}, whose first axis alone may be open")
    shape = tuple(int(dim) for dim in rest if isinstance(dim, int))
    try:
        number = float(value)
    except ValueError:
        array = _file(info.name, value)
    else:
        array = np.array(number)
    if array.shape[:1] == (1,) and array.ndim == len(shape) + 1:
        array = array[0]  # a batch of one
    if array.ndim and array.shape != shape:
        raise InputError(
            f"input {info.name} takes {shape} for each image, and {value} holds {array.shape}: give that, "
            f"or a number"
        )
    made = np.broadcast_to(array, shape).astype(info.dtype)
    if not np.array_equal(
        made.astype(np.float64), np.broadcast_to(array, shape).astype(np.float64), equal_nan=True
    ):
        kind = np.dtype(info.dtype).kind
        if kind != "f":
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
