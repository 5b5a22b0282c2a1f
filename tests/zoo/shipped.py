"""The nets that ship, as graphs without weights."""

from __future__ import annotations

from pathlib import Path

import onnx

from tests.zoo.drawn import bare, filled

GRAPHS = Path(__file__).parent / "graphs"


def nets() -> dict[str, Path]:
    """By name: the part of the file's before the exporter's."""
    return {path.stem.partition("-")[0]: path for path in sorted(GRAPHS.glob("*.onnx"))}


def model(name: str) -> onnx.ModelProto:
    """One of them with its weights. Raises ValueError for an unknown name."""
    found = nets()
    if name not in found:
        raise ValueError(f"no net {name} ships; those that do are {', '.join(found)}")
    return filled(bare(found[name]))


def write(name: str, file: Path) -> None:
    """As an ONNX file with its weights. Raises ValueError for an unknown name."""
    onnx.save(model(name), file)
