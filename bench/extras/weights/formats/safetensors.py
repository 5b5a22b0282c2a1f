"""`.safetensors` files: the length of a header, the header as JSON, and the tensors' bytes."""

from __future__ import annotations

import json
import math
import struct
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.extras.weights.parts import FilePart, Found, widened
from bench.extras.weights.pickled_arrays import sizes
from bench.extras.weights.torchvision_nets import recognised
from kernels.errors import ModelError

UNDERSTOOD = "AlexNet and VGG of torchvision as .safetensors"
MOST_HEADER = 1 << 22
_TYPES = {"F32": ("<f4", 4), "F16": ("<f2", 2), "F64": ("<f8", 8), "BF16": ("bf16", 2), "I64": ("<i8", 8)}


def matches(path: Path, head: bytes) -> bool:
    return path.suffix == ".safetensors" or head[8:10] == b'{"'


def read(path: Path) -> Found:
    """Raises ModelError."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        start = stream.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= min(MOST_HEADER, size - 8):
            raise ModelError(f"it is cut off or damaged: its header is said to have {length:,} bytes")
        try:
            header = json.loads(stream.read(length))
        except (ValueError, RecursionError):
            raise ModelError("its header is no JSON, so it is damaged") from None
    if not isinstance(header, dict):
        raise ModelError("its header lists no tensors")
    header.pop("__metadata__", None)
    return recognised({name: _part(path, name, told, 8 + length, size) for name, told in header.items()})


def _part(path: Path, name: str, told: Any, start: int, size: int) -> FilePart:
    try:
        dtype, width = _TYPES[told["dtype"]]
        shape, (begin, end) = sizes(told["shape"]), sizes(told["data_offsets"])
    except (KeyError, TypeError, ValueError):
        known = ", ".join(_TYPES)
        raise ModelError(f"{name[:60]} is described in a way that is not understood ({known} are)") from None
    if end - begin != math.prod(shape) * width or start + end > size:
        raise ModelError(f"it is cut off or damaged: {name[:60]} does not lie where its header says")
    return FilePart(shape, partial(_values, path, start + begin, end - begin, dtype, shape))


def _values(path: Path, start: int, length: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    with path.open("rb") as stream:
        stream.seek(start)
        data = stream.read(length)
    if len(data) != length:
        raise ModelError("it was cut off while it was read")
    return widened(data, dtype).reshape(shape)
