"""Labelled images for accuracy: data sets by name, folders of the user, and random images.

A spec is a name of models/datasets.toml, "folder:PATH" or "random". With "@2of8" behind it, it is the second
of eight parts; each part has every eighth image. Images stay uint8 as stored; those of a folder stay in their
files until they are read. models.preprocessing makes a model's input of them, and models.labels brings labels
into the model's order.
"""

from __future__ import annotations

import csv
import functools
import gzip
import os
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kernels.errors import DataError, InputError
from kernels.nearest import did_you_mean
from models import download, names
from models import labels as orders
from models.labels import MOST_CLASSES, Matched
from models.pictures import Pictures
from models.preprocessing import preprocess, resize

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm"})
WHAT_WORKS = "give a folder with one sub-folder of images a class, or a CSV file with the columns file,label"
FILE_NAMES = frozenset({"file", "filename", "file_name", "image", "path", "img", "name"})
LABEL_NAMES = frozenset({"label", "class", "labels", "target", "category", "wnid", "class_name", "classname"})


@dataclass(frozen=True, eq=False)
class FolderLabels:
    """Images of a folder with labels. labels: int64 (N,), indices into `classes`; numbered: the class names
    are numbers, and these are the labels."""

    images: Pictures
    labels: np.ndarray
    classes: tuple[str, ...]
    numbered: bool


def load_folder(path: Path, images: int | None) -> FolderLabels:
    """At most `images` images of the folder, or of the CSV file, at `path`; they are decoded when they are
    read.

    A folder has one sub-folder for each class; a CSV file has the columns file,label. Sub-folders are mixed
    in a fixed random order, so that the first images are of all classes; a CSV keeps its order. Names that
    are all numbers are the labels; others are numbered in sorted order, which is the order of no model
    (models.labels). Raises DataError naming the file.
    """
    files, words = _listed(path)
    labels, names, numbered = _number(words, path)
    return FolderLabels(Pictures(files[:images]), np.array(labels[:images], np.int64), names, numbered)


def _listed(path: Path) -> tuple[list[Path], list[str]]:
    """Image files, and the word that each is labelled with."""
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
    """The columns of file and label, if this first line is a header; else None."""
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


__all__ = ["Dataset", "available", "load", "preprocess"]

Progress = download.Progress
SHIPPED = Path(__file__).parent / "data"
RANDOM_IMAGES = 256
RANDOM_SHAPE = (1, 28, 28)


@dataclass(frozen=True, eq=False)
class Dataset:
    """images: uint8 (N, H, W) grey or (N, H, W, 3) RGB, or image files; labels: int64 (N,), indices into
    `classes`, or None where there is no right answer (random images).

    numbers: what the labels are as numbers: "published", those of a data set that everybody has; "model's",
    folders that the user named by number; "": nothing, the classes are names.
    """

    name: str
    images: np.ndarray | Pictures
    labels: np.ndarray | None
    classes: tuple[str, ...]
    numbers: str = "published"

    def __len__(self) -> int:
        return len(self.images)

    @property
    def labelled(self) -> bool:
        return self.labels is not None

    def read(
        self, start: int, stop: int, each: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> tuple[Sequence[np.ndarray], list[int]]:
        """Images `start` to `stop` without those that cannot be read, and their indices. each: applied to
        each image as soon as it is decoded (models.pictures)."""
        if isinstance(self.images, Pictures):
            return self.images.read(start, stop, each)
        part = list(self.images[start:stop])
        return [each(image) for image in part] if each else part, list(range(start, start + len(part)))

    @property
    def array(self) -> np.ndarray:
        """All images as one array. Raises DataError for image files."""
        if isinstance(self.images, Pictures):
            raise DataError(f"the images of {self.name} are files of their own sizes: use a named data set")
        return self.images

    def first(
        self, count: int, each: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> Sequence[np.ndarray]:
        """The first `count` readable images, or fewer. Raises DataError where there is none."""
        pictures, _ = self.read(0, count, each)
        while isinstance(self.images, Pictures) and len(pictures) < count < len(self):
            count, wanted = min(2 * count, len(self)), count
            pictures = self.read(0, count, each)[0][:wanted]
        if isinstance(self.images, Pictures) and not pictures:
            raise self.unreadable()
        return pictures

    def unreadable(self) -> DataError:
        """The error for a set in which no image can be read."""
        reason = next(iter(self.notes()), "there is none")
        return DataError(f"no image of {self.name} can be read ({reason}): replace or remove what is broken")

    def part(self, number: int, of: int) -> Dataset:
        """Every `of`th image from the `number`th on. Raises DataError where a class would have no image:
        labels would then mean something else."""
        images = (
            self.images.part(number - 1, of)
            if isinstance(self.images, Pictures)
            else self.images[number - 1 :: of]
        )
        labels = None if self.labels is None else self.labels[number - 1 :: of]
        lacks = labels is not None and np.unique(labels).size < np.unique(self.labels).size  # type: ignore[arg-type]
        if not len(images) or lacks:
            raise DataError(
                f"part {number} of {of} of data set {self.name} lacks images of a class: ask for fewer parts"
            )
        return replace(self, images=images, labels=labels)

    def start_of(self, images: int | None) -> Dataset:
        """The first `images` images, all where None. Files are not read yet."""
        if images is None or isinstance(self.images, Pictures):
            return self
        labels = None if self.labels is None else self.labels[:images]
        return replace(self, images=self.images[:images], labels=labels)

    def notes(self) -> tuple[str, ...]:
        """What was noticed in the files that were read, in sentences."""
        return self.images.notes() if isinstance(self.images, Pictures) else ()

    def matched(self, order: Sequence[str] | None, outputs: int, model: str) -> Matched:
        """The model's class number for each of `classes`. order: the model's classes, () where nothing says
        them, None for the sorted order of the names (--labels alphabetical); outputs: how many classes the
        model scores."""
        assert self.labels is not None
        count = len(self.classes)
        present = sorted({self.classes[label] for label in np.unique(self.labels)})
        if order is None:
            order = present
        if order and len(order) != outputs:
            return Matched(
                None,
                f"the labels name {len(order):,} classes and model {model} scores {outputs:,}: {orders.GIVE}",
            )
        if order:
            match = orders.matched(present, order, model)
            if match.numbers is not None:
                places = dict(zip(present, match.numbers, strict=True))
                return Matched(np.array([places.get(name, -1) for name in self.classes], np.int64))
            if self.numbers != "model's":
                return match
        if self.numbers == "model's":
            if count <= outputs:
                return Matched(np.arange(count))
            return Matched(
                None,
                f"the data set has a class {count - 1:,} and model {model} scores {outputs:,} classes, "
                f"0 to {outputs - 1:,}: number the folders from 0 as the model does, or give --labels "
                f"FILE, a class "
                "a line",
            )
        if not self.numbers:
            return Matched(
                None,
                f"the classes of the data set are names ({orders.named(self.classes)}) and nothing says "
                f"in which "
                f"order model {model} answers them: {orders.GIVE}",
            )
        if count == outputs:
            return Matched(np.arange(count))
        return Matched(
            None,
            f"data set {self.name} has {count:,} classes and model {model} scores {outputs:,}: use a data "
            f"set of "
            "its classes, or give --labels FILE, a class a line",
        )


_PART = re.compile(r"(.+)@(\d+)of(\d+)")


def parted(spec: str) -> tuple[str, tuple[int, int] | None]:
    """A spec without its part, and the part as (number, of how many). Raises InputError for a part that does
    not exist."""
    match = _PART.fullmatch(spec)
    if match is None:
        return spec, None
    number, of = int(match[2]), int(match[3])
    if not 1 <= number <= of:
        raise InputError(f"data set {spec!r}: of {of} parts there are those from 1 to {of}")
    return match[1], (number, of)


def load(
    spec: str,
    images: int | None = None,
    progress: Progress | None = None,
    *,
    split: str = "test",
    shape: Sequence[int | str | None] | None = None,
    seed: int = 0,
) -> Dataset:
    """The first `images` images of a data set (all where None; fewer where it has fewer).

    split: "test", or "train" where the data set has one. shape: the model's (C, H, W) or (N, C, H, W), which
    random images take. seed: of random images. `progress` gets words and a fraction or None.
    Raises DataError, and InputError for an unknown spec.
    """
    if images is not None and images < 1:
        raise InputError(f"{images} images cannot be loaded: ask for 1 or more")
    spec, part = parted(spec)
    if part is not None:
        whole = load(spec, None, progress, split=split, shape=shape, seed=seed)
        return whole.part(*part).start_of(images)
    size = tuple(shape)[-3:] if shape and len(tuple(shape)) in (3, 4) else None
    if spec.startswith("folder:"):
        labelled = load_folder(Path(spec.removeprefix("folder:")).expanduser(), images)
        numbers = "model's" if labelled.numbered else ""
        return Dataset(spec, labelled.images, labelled.labels, labelled.classes, numbers)
    if spec == "random":
        return _random(images or RANDOM_IMAGES, size, seed)
    entry = names.datasets().get(spec)
    if entry is None:
        known = list(names.dataset_titles())
        raise InputError(
            f"data set {spec!r} is not known{did_you_mean(spec, known)}; known are {', '.join(known)}"
        )
    if "shipped" in entry:
        pixels, labels = _shipped(spec, entry["shipped"], entry["held_out"], split)
    else:
        pixels, labels = _idx_pair(spec, entry, split, progress)
    if images is not None:
        pixels, labels = pixels[:images], labels[:images]
    return Dataset(spec, pixels, labels.astype(np.int64), tuple(entry["classes"]))


def available(name: str) -> str | None:
    """Why the test images of a named data set are not on this machine yet; None if they are."""
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
    """Random pixels at the model's own size, so that no resizing smooths them."""
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


@functools.cache
def _shipped(name: str, shipped: str, held_out: int, split: str) -> tuple[np.ndarray, np.ndarray]:
    """A shipped data set of small images with values 0–16, scaled to 0–255 and 28×28; the last `held_out` are
    the test images. The arrays are shared and read-only."""
    with np.load(SHIPPED / shipped) as file:
        small, labels = file["images"], file["labels"]
    if split not in ("train", "test"):
        raise _split_error(name, split)
    part = slice(-held_out, None) if split == "test" else slice(0, -held_out)
    bytes_0_255 = np.round(small[part] * (255.0 / 16.0)).astype(np.uint8)
    part_of_set = resize(bytes_0_255, 28, 28), labels[part]
    for array in part_of_set:
        array.flags.writeable = False
    return part_of_set


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
    """The uint8 array in a gzipped IDX file (LeCun's MNIST format). Raises DataError where it is none."""
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
