"""What came of ONNX's tests on a GPU: docs/results/conformance-cuda.json, counted where there is one."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kernels.cache import atomic_file

FILE = Path(__file__).resolve().parents[2] / "docs" / "results" / "conformance-cuda.json"


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """Of tests; the rest are refused. wrong: their names."""

    tests: int
    right: int
    wrong: tuple[str, ...] = ()


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """counts: by the words of the page's row."""

    onnx: str
    backend: str
    device: str
    day: str
    counts: dict[str, Count]


def load(path: Path = FILE) -> Kept | None:
    return msgspec.json.decode(path.read_bytes(), type=Kept) if path.is_file() else None


def save(kept: Kept, path: Path = FILE) -> None:
    with atomic_file(path) as temporary:
        temporary.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n")
