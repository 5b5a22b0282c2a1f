"""Graphs without weights: those that ship, and how files with weights are made of them."""

from __future__ import annotations

from pathlib import Path

import onnx

from kernels.cache import atomic_file
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


def write_all(folder: Path, into: Path) -> list[Path]:
    """Every exported file of a folder, with its weights, by the same name in another; those that are there
    already stay. Each appears whole or not at all. Raises ValueError where none lies in the folder, and where
    both are the same."""
    bares = sorted(folder.glob("*.onnx"))
    if not bares:
        raise ValueError(f"no .onnx file lies in {folder}; write them by python -m tests.zoo.export {folder}")
    if folder.resolve() == into.resolve():
        raise ValueError(f"{into} has the files without weights; name another folder")
    into.mkdir(parents=True, exist_ok=True)
    written = [into / path.name for path in bares]
    for path, whole in zip(bares, written, strict=True):
        if not whole.exists():
            with atomic_file(whole) as temporary:
                onnx.save(filled(bare(path)), temporary)
    return written
