"""Labelled images for accuracy: data sets by name, the user's own folders, and random images.

A spec is a name of models/datasets.toml, "folder:PATH" or "random". Images stay uint8 as stored; `preprocess`
turns any slice of them into a model's input.
"""

from __future__ import annotations

import gzip
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernels.errors import DataError, InputError
from kernels.nearest import did_you_mean
from models import download, folder, names
from models.preprocessing import preprocess, resize

__all__ = ["Dataset", "available", "load", "preprocess"]

Progress = download.Progress
SHIPPED = Path(__file__).parent / "data"
RANDOM_IMAGES = 256
RANDOM_SHAPE = (1, 28, 28)


@dataclass(frozen=True, eq=False)
class Dataset:
    """images: uint8 (N, H, W) grey or (N, H, W, 3) RGB; labels: int64 (N,), indices into `classes`, or None
    where there is no right answer (random images)."""

    name: str
    images: np.ndarray
    labels: np.ndarray | None
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.images)

    @property
    def labelled(self) -> bool:
        return self.labels is not None


def load(
    spec: str,
    images: int | None = None,
    progress: Progress | None = None,
    *,
    split: str = "test",
    shape: Sequence[int | str | None] | None = None,
    classes: Sequence[str] = (),
    seed: int = 0,
) -> Dataset:
    """The first `images` images of a data set (all where None; fewer where it has fewer).

    split: "test", or "train" where the data set has one. shape: the model's (C, H, W) or (N, C, H, W), which
    random images take, and a folder's images where their sizes differ. classes: the model's own, by which
    a folder's class names are numbered. seed: of random images. `progress` gets words and a fraction or None.
    Raises DataError, and InputError for an unknown spec.
    """
    if images is not None and images < 1:
        raise InputError(f"{images} images cannot be loaded: ask for 1 or more")
    size = tuple(shape)[-3:] if shape and len(tuple(shape)) in (3, 4) else None
    if spec.startswith("folder:"):
        found = folder.load(Path(spec.removeprefix("folder:")).expanduser(), images, size, classes, progress)
        return Dataset(spec, found.images, found.labels, found.classes)
    if spec == "random":
        return _random(images or RANDOM_IMAGES, size, seed)
    entry = names.datasets().get(spec)
    if entry is None:
        known = list(names.dataset_titles())
        raise InputError(
            f"data set {spec!r} is not known{did_you_mean(spec, known)}; known are {', '.join(known)}"
        )
    if "shipped" in entry:
        pixels, labels = _shipped(spec, entry, split)
    else:
        pixels, labels = _idx_pair(spec, entry, split, progress)
    if images is not None:
        pixels, labels = pixels[:images], labels[:images]
    return Dataset(spec, pixels, labels.astype(np.int64), tuple(entry["classes"]))


def available(name: str) -> str | None:
    """Why the test images of a named data set are not on this machine yet, or None if they are."""
    entry = names.datasets()[name]
    if "shipped" in entry:
        return None
    offline = os.environ.get("KERNELSCOPE_DATA")
    root = Path(offline).expanduser() if offline else download.cache_dir() / "data"
    missing = [file for file in entry["test"].values() if not (root / name / file).is_file()]
    if not missing:
        return None
    what = ", ".join(str(root / name / file) for file in missing)
    return f"missing {what}" if offline else "not downloaded yet; it will be at first use"


def _random(count: int, size: tuple[Any, ...] | None, seed: int) -> Dataset:
    """Uniform pixels at the model's own size, so that no resizing makes them smooth."""
    pick = size or RANDOM_SHAPE
    channels, height, width = (
        wanted if isinstance(wanted, int) and wanted > 0 else usual
        for wanted, usual in zip(pick, RANDOM_SHAPE, strict=True)
    )
    # One draw an image: the first images are the same however many are asked for.
    random = np.random.RandomState(seed)
    one = (height, width, 3) if channels == 3 else (height, width)
    pixels = np.empty((count, *one), np.uint8)
    for index in range(count):
        pixels[index] = random.randint(0, 256, one, dtype=np.uint8)
    return Dataset("random", pixels, None, ())


def _split_error(name: str, split: str) -> DataError:
    return DataError(f"data set {name} has no {split!r} part: use 'test'")


def _shipped(name: str, entry: dict[str, Any], split: str) -> tuple[np.ndarray, np.ndarray]:
    """Small images 0–16 that ship as one file, brought to 0–255, 28×28; the last `held_out` are the test."""
    with np.load(SHIPPED / entry["shipped"]) as file:
        small, labels = file["images"], file["labels"]
    held_out = entry["held_out"]
    if split not in ("train", "test"):
        raise _split_error(name, split)
    part = slice(-held_out, None) if split == "test" else slice(0, -held_out)
    bytes_0_255 = np.round(small[part] * (255.0 / 16.0)).astype(np.uint8)
    return resize(bytes_0_255, 28, 28), labels[part]


def _idx_pair(
    name: str, entry: dict[str, Any], split: str, progress: Progress | None
) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(entry.get(split), dict) or split == "sha256":
        raise _split_error(name, split)
    arrays = []
    for kind in ("images", "labels"):
        path = download.fetch(name, entry[split][kind], entry["sha256"], entry["mirrors"], progress)
        arrays.append(read_idx(path))
    return arrays[0], arrays[1]


def read_idx(path: Path) -> np.ndarray:
    """uint8 array of a gzipped IDX file (LeCun's MNIST format). Raises DataError where it is not one."""
    try:
        with gzip.open(path) as stream:
            data = stream.read()
        zero, kind, rank = struct.unpack(">HBB", data[:4])
        dims = struct.unpack(f">{rank}I", data[4 : 4 + 4 * rank])
        if zero or kind != 0x08:
            raise ValueError("not an IDX file of bytes")
        return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(dims)
    except (OSError, EOFError, ValueError, struct.error) as error:
        raise DataError(f"{path} is not a whole gzipped IDX file ({error}): replace it") from error
