"""`.pth` files of PyTorch (weights only): a pickle that names storages, and these behind it.

Since 1.6 that is a zip archive (`NAME/data.pkl`, `NAME/data/0`, …, nothing compressed), before it was pickles
one behind the other and then the storages; torchvision still serves both.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from bench.extras.weights import unpickler
from bench.extras.weights.parts import FilePart, Found, widened
from bench.extras.weights.pickled_arrays import RefusedPickle, sizes
from bench.extras.weights.torchvision_nets import recognised
from kernels.errors import ModelError

UNDERSTOOD = "or as .pth (weights only)"
EXPORT = "export the model with torch.onnx.export, or save model.state_dict()"
OLD_MAGIC = 0x1950A86A20F9469CFC6C
_OLD_START = b"\x80\x02\x8a\x0a" + OLD_MAGIC.to_bytes(10, "little")
MOST_DIRECTORY = 1 << 20  # bytes of an archive's list of members: there are some hundred
MOST_PICKLE = 1 << 24
_TYPES = {
    f"torch {name}Storage": dtype
    for name, dtype in {
        "Float": "<f4", "Double": "<f8", "Half": "<f2", "BFloat16": "bf16", "Long": "<i8", "Int": "<i4",
    }.items()
}  # fmt: skip
_INNER = ("state_dict", "model_state_dict", "model")  # where a training run keeps the weights beside its own


def matches(path: Path, head: bytes) -> bool:
    return head.startswith(_OLD_START) or (
        path.suffix in (".pth", ".pt", ".ckpt", ".bin") and head.startswith((b"PK\x03\x04", b"\x80"))
    )


def read(path: Path) -> Found:
    """Raises ModelError."""
    with path.open("rb") as stream:
        zipped = stream.read(2) == b"PK"
        stream.seek(0)
        return recognised(_from_archive(stream) if zipped else _from_old(stream))


# ------------------------------------------------------------------------------------------------- storages


class _Storage:
    """So many numbers of a type, to be read when a tensor is."""

    def __init__(self, dtype: str, count: int) -> None:
        self.dtype, self.count = dtype, count
        self.fetch: Callable[[], bytes] | None = None

    @property
    def nbytes(self) -> int:
        return self.count * (2 if self.dtype == "bf16" else np.dtype(self.dtype).itemsize)

    def values(self) -> np.ndarray:
        if self.fetch is None:
            raise ModelError("it names values that are not in it")
        data = self.fetch()
        if len(data) != self.nbytes:
            raise ModelError(f"it is cut off: {len(data):,} bytes are where {self.nbytes:,} should be")
        return widened(data, self.dtype)


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> FilePart:
    shape, strides = sizes(shape), sizes(strides)
    (offset,) = sizes((offset,))
    if not isinstance(storage, _Storage) or len(shape) != len(strides):
        raise RefusedPickle("it holds a tensor without values")
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    # More numbers than there are would be the same ones again and again, as many as anybody likes.
    if math.prod(shape) > storage.count or (0 not in shape and last >= storage.count):
        raise RefusedPickle("it holds a tensor that reaches beyond its values")

    def values() -> np.ndarray:
        flat = storage.values()[offset:]
        steps = tuple(stride * flat.itemsize for stride in strides)
        return np.lib.stride_tricks.as_strided(flat, shape, steps, writeable=False)

    return FilePart(shape, values)


def _names() -> dict[str, Any]:
    types = {name: name for name in _TYPES}
    return types | {
        "torch._utils _rebuild_tensor_v2": _tensor,
        "torch._utils _rebuild_tensor": _tensor,
        "torch._utils _rebuild_parameter": lambda part, *_: part,
    }


def _loaded(stream: BinaryIO, persistent: Callable[[Any], Any] | None = None) -> Any:
    try:
        return unpickler.load(stream, _names(), persistent)
    except RefusedPickle as error:
        raise ModelError(f"{error}; {EXPORT}") from None


def _storages(stream: BinaryIO) -> tuple[Any, dict[str, _Storage]]:
    """The object of the pickle there, and the storages that it names."""
    found: dict[str, _Storage] = {}

    def named(told: Any) -> _Storage:
        kind, dtype, key, _, count, *view = told
        texts = all(type(text) is str for text in (kind, dtype, key))
        if not texts or kind != "storage" or dtype not in _TYPES or any(item is not None for item in view):
            raise RefusedPickle("it names values in a way that is not understood")
        (count,) = sizes((count,))
        return found.setdefault(key, _Storage(_TYPES[dtype], count))

    return _loaded(stream, named), found


def _parts(whole: Any) -> dict[str, FilePart]:
    for name in _INNER:
        if isinstance(whole, dict) and isinstance(whole.get(name), dict):
            whole = whole[name]
    if not isinstance(whole, dict) or not whole:
        raise ModelError(f"it holds no weights by name; {EXPORT}")
    parts = {
        name: part for name, part in whole.items() if isinstance(part, FilePart) and isinstance(name, str)
    }
    if len(parts) != len(whole):
        raise ModelError(f"it holds more than weights by name; {EXPORT}")
    return parts


# ------------------------------------------------------------------------------------------- the two layouts


def _from_archive(stream: BinaryIO) -> dict[str, FilePart]:
    check_directory(stream)
    try:
        archive = zipfile.ZipFile(stream)
        members = {name.partition("/")[2]: archive.getinfo(name) for name in archive.namelist()}
        if any(name.startswith("code/") for name in members):
            raise ModelError(f"it is a scripted model, which is a program: {EXPORT}")
        if "data.pkl" not in members:
            raise ModelError(f"it is a zip archive, but not one of torch.save; {EXPORT}")
        with archive.open(_plain(members["data.pkl"])) as pickled:
            if members["data.pkl"].file_size > MOST_PICKLE:
                raise ModelError("its data.pkl is larger than names of weights are")
            whole, storages = _storages(io.BytesIO(pickled.read(MOST_PICKLE)))
        if "byteorder" in members and archive.read(_plain(members["byteorder"]))[:8] != b"little":
            raise ModelError(f"its numbers are big-endian; {EXPORT} on a usual machine")
        parts = _parts(whole)
        for key, storage in storages.items():
            member = members.get(f"data/{key}")
            if member is None or _plain(member).file_size != storage.nbytes:
                raise ModelError(f"it is damaged: the values {key[:20]} are not as many as it says")
            storage.fetch = partial(_member, stream.name, member.filename)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError, OSError, RuntimeError) as error:
        raise ModelError(f"its zip archive is damaged ({type(error).__name__})") from None
    return parts


def _member(path: str, name: str) -> bytes:
    """A member's bytes, checked by its CRC."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.read(name)
    except (zipfile.BadZipFile, EOFError, ValueError, KeyError) as error:
        raise ModelError(f"its zip archive is damaged ({type(error).__name__})") from None


def _plain(member: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """A member as torch writes them; one that is compressed may be of any size inside."""
    if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
        raise ModelError(f"its part {member.filename[:60]} is compressed, which torch.save never does")
    return member


def check_directory(stream: BinaryIO) -> None:
    """Raise ModelError where an archive's list of members is longer than weights need, before it is read."""
    size = stream.seek(0, 2)
    stream.seek(max(0, size - 65_557))
    tail = stream.read(65_557)
    place = tail.rfind(b"PK\x05\x06")
    if place < 0 or len(tail) - place < 22:
        raise ModelError("it is cut off: its zip archive has no end")
    (length,) = struct.unpack_from("<L", tail, place + 12)
    if length == 0xFFFFFFFF:
        wide = tail.rfind(b"PK\x06\x06", 0, place)
        length = struct.unpack_from("<Q", tail, wide + 40)[0] if 0 <= wide <= len(tail) - 48 else length
    if length > MOST_DIRECTORY:
        raise ModelError(f"its zip archive lists {length:,} bytes of members, which no weights need")
    stream.seek(0)


def _from_old(stream: BinaryIO) -> dict[str, FilePart]:
    if _loaded(stream) != OLD_MAGIC:
        raise ModelError(f"it is a pickle, but not one of torch.save; {EXPORT}")
    _loaded(stream)  # the protocol's number
    system = _loaded(stream)
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise ModelError(f"its numbers are big-endian; {EXPORT} on a usual machine")
    whole, storages = _storages(stream)
    parts = _parts(whole)
    order = _loaded(stream)
    listed = isinstance(order, list) and all(type(key) is str for key in order)
    if not listed or sorted(order) != sorted(storages):
        raise ModelError("it is damaged: it lists other values than its tensors name")
    for key in order:
        storage = storages[key]
        said = stream.read(8)
        if len(said) < 8 or struct.unpack("<q", said)[0] != storage.count:
            raise ModelError("it is cut off or damaged: the number of values is not as it says")
        storage.fetch = partial(_slice, Path(stream.name), stream.tell(), storage.nbytes)
        stream.seek(storage.nbytes, 1)
    return parts


def _slice(path: Path, start: int, length: int) -> bytes:
    with path.open("rb") as stream:
        stream.seek(start)
        return stream.read(min(length, max(0, path.stat().st_size - start)))
