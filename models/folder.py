"""The user's own images: a folder with one sub-folder a class, or a CSV of file,label."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from kernels.errors import DataError
from models.preprocessing import resize

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm"})
GREY_MODES = frozenset({"1", "L", "LA"})
WHAT_WORKS = "give a folder with one sub-folder of images a class, or a CSV file with the columns file,label"


@dataclass(frozen=True, eq=False)
class Found:
    """images uint8 (N, H, W) or (N, H, W, 3), labels int64 (N,), class names by label."""

    images: np.ndarray
    labels: np.ndarray
    classes: tuple[str, ...]


def load(
    path: Path,
    images: int | None,
    size: tuple[Any, ...] | None,
    classes: Sequence[str] = (),
    progress: Callable[[str, float | None], None] | None = None,
) -> Found:
    """At most `images` of the folder or CSV at `path`.

    Sub-folders are mixed by a fixed draw, so that the first images are of all classes; a CSV keeps its order.
    Images of one size stay as they are; others take the last two of `size` (C, H, W), else the size of the
    first. Names that are `classes` of the model (case and punctuation aside) or numbers are labels as they
    are; others are numbered in sorted order. Raises DataError naming the file.
    """
    files, words = _listed(path)
    labels, names = _number(words, classes)
    files, labels = files[:images], labels[:images]
    pictures = []
    for index, file in enumerate(files):
        pictures.append(_read(file))
        if progress and index % 64 == 0:
            progress(f"reading {path}", index / len(files))
    return Found(_stack(pictures, size), np.array(labels, np.int64), names)


def _listed(path: Path) -> tuple[list[Path], list[str]]:
    """Image files and the word each is labelled with."""
    if path.is_file() and path.suffix.lower() == ".csv":
        return _from_csv(path)
    if not path.is_dir():
        raise DataError(f"{path} is neither a folder nor a CSV file: {WHAT_WORKS}")
    pairs = [
        (file, sub.name)
        for sub in sorted(p for p in path.iterdir() if p.is_dir())
        for file in sorted(sub.iterdir())
        if file.suffix.lower() in SUFFIXES
    ]
    if not pairs:
        tables = sorted(path.glob("*.csv"))
        if len(tables) == 1:
            return _from_csv(tables[0])
        raise DataError(f"{path} holds no images in sub-folders and no single CSV file: {WHAT_WORKS}")
    order = np.random.RandomState(0).permutation(len(pairs))
    return [pairs[i][0] for i in order], [pairs[i][1] for i in order]


def _from_csv(path: Path) -> tuple[list[Path], list[str]]:
    files, words = [], []
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            for number, row in enumerate(csv.reader(stream), 1):
                if not row or (number == 1 and [c.strip().lower() for c in row[:2]] == ["file", "label"]):
                    continue
                if len(row) != 2 or not row[0].strip() or not row[1].strip():
                    raise DataError(f"{path}, line {number}, is not file,label: {','.join(row)!r}")
                files.append(path.parent / row[0].strip())
                words.append(row[1].strip())
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as a CSV file ({error}): {WHAT_WORKS}") from error
    if not files:
        raise DataError(f"{path} lists no images: {WHAT_WORKS}")
    return files, words


def _number(words: Sequence[str], classes: Sequence[str]) -> tuple[list[int], tuple[str, ...]]:
    """Label of each word, and the class names by label."""

    def plain(word: str) -> str:
        return "".join(c for c in word.lower() if c.isalnum())

    known = {plain(name): index for index, name in enumerate(classes)}
    if known and all(plain(word) in known for word in words):
        return [known[plain(word)] for word in words], tuple(classes)
    if all(word.isdecimal() for word in words):
        labels = [int(word) for word in words]
        return labels, tuple(classes) or tuple(str(i) for i in range(max(labels) + 1))
    names = tuple(sorted(set(words)))
    return [names.index(word) for word in words], names


def _read(file: Path) -> np.ndarray:
    """uint8 (H, W) of a grey image, (H, W, 3) of any other, turned as its camera said."""
    try:
        with Image.open(file) as image:
            upright = ImageOps.exif_transpose(image)
            return np.asarray(upright.convert("L" if upright.mode in GREY_MODES else "RGB"))
    except FileNotFoundError:
        raise DataError(f"image {file} does not exist: correct the list or add the file") from None
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"image {file} cannot be read ({error}): replace or remove it") from error


def _stack(pictures: list[np.ndarray], size: tuple[Any, ...] | None) -> np.ndarray:
    if any(p.ndim == 3 for p in pictures):
        pictures = [p if p.ndim == 3 else np.repeat(p[:, :, None], 3, axis=2) for p in pictures]
    if len({p.shape for p in pictures}) == 1:
        return np.stack(pictures)
    height, width = pictures[0].shape[:2]
    if size is not None and all(isinstance(d, int) for d in size[1:]):
        height, width = size[1:]
    return np.concatenate([resize(p[None], height, width) for p in pictures])
