"""The user's own images: a folder with one sub-folder a class, or a CSV of file,label."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernels.errors import DataError
from models.labels import MOST_CLASSES
from models.pictures import Pictures

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm"})
WHAT_WORKS = "give a folder with one sub-folder of images a class, or a CSV file with the columns file,label"
FILE_NAMES = frozenset({"file", "filename", "file_name", "image", "path", "img", "name"})
LABEL_NAMES = frozenset({"label", "class", "labels", "target", "category", "wnid", "class_name", "classname"})


@dataclass(frozen=True, eq=False)
class FolderLabels:
    """labels int64 (N,), numbers of `classes`; numbered: whether the names are numbers, which are then the
    labels themselves."""

    images: Pictures
    labels: np.ndarray
    classes: tuple[str, ...]
    numbered: bool


def load(path: Path, images: int | None) -> FolderLabels:
    """At most `images` of the folder or CSV at `path`, decoded when they are asked for.

    Sub-folders are mixed by a fixed draw, so that the first images are of all classes; a CSV keeps its order.
    Names that are all numbers are labels as they are; others are numbered in sorted order, which is the order
    of no model (models.labels). Raises DataError naming the file.
    """
    files, words = _listed(path)
    labels, names, numbered = _number(words, path)
    return FolderLabels(Pictures(files[:images]), np.array(labels[:images], np.int64), names, numbered)


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
    files: list[Path] = []
    words: list[str] = []
    at = (0, 1)
    columns = 2
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            for number, row in enumerate(csv.reader(stream), 1):
                if not row:
                    continue
                if not files and (header := _header(row, path.parent)) is not None:
                    at, columns = header, len(row)
                    continue
                if len(row) != columns or not row[at[0]].strip() or not row[at[1]].strip():
                    raise DataError(f"{path}, line {number}, is not file,label: {','.join(row)!r}")
                files.append(path.parent / row[at[0]].strip())
                words.append(row[at[1]].strip())
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as a CSV file ({error}): {WHAT_WORKS}") from error
    if not files:
        raise DataError(f"{path} lists no images: {WHAT_WORKS}")
    if (gone := next((file for file in files if not file.is_file()), None)) is not None:
        raise DataError(f"image {gone} does not exist: correct the list or add the file")
    return files, words


def _header(row: Sequence[str], folder: Path) -> tuple[int, int] | None:
    """Where a first line says that file and label stand; None where it is no header."""
    names = [cell.strip().casefold() for cell in row]
    file = next((i for i, name in enumerate(names) if name in FILE_NAMES), None)
    label = next((i for i, name in enumerate(names) if name in LABEL_NAMES), None)
    if file is None or label is None or (folder / row[file].strip()).is_file():
        return None
    return file, label


def _number(words: Sequence[str], path: Path) -> tuple[list[int], tuple[str, ...], bool]:
    """Label of each word, the class names by label, and whether the words are numbers."""
    if all(word.isdecimal() for word in words):
        labels = [int(word) for word in words]
        if max(labels) >= MOST_CLASSES:
            raise DataError(f"{path} has a class {max(labels):,}; numbers below {MOST_CLASSES:,} work")
        return labels, tuple(str(i) for i in range(max(labels) + 1)), True
    names = tuple(sorted(set(words)))
    places = {name: place for place, name in enumerate(names)}
    return [places[word] for word in words], names, False
