"""What a run keeps so that its images can be looked at: the images themselves, small, and the answers to
them.

Images are written once for a data set and a number of images, in the run folder as `predictions/images-<data
set>-n<images>.npz`. Reading needs no engine, so a window or a notebook can show a run on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.results import npz, reading
from bench.results.inside import inside
from bench.results.records import Case
from bench.results.rows import title
from kernels.cache import atomic_file
from kernels.errors import DataError, InputError

FOLDER = "predictions"
MOST = 10_000  # images kept of a data set, the first ones
MOST_CLASSES = 100_000
_COLUMNS = {"label": "iu", "predicted": "iu", "confidence": "f", "top5": "b"}  # of which kinds
SIDE = 64  # pixels of a kept image's longer side, at most


@dataclass(frozen=True, eq=False)
class Images:
    """pixels: uint8 (N, H, W) grey or (N, H, W, 3) RGB, at most SIDE a side; classes: names by label."""

    pixels: np.ndarray
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.pixels)


@dataclass(frozen=True, eq=False)
class Answers:
    """All (images,): label, int64, -1 where unknown; predicted, int64; confidence, float32; top5, bool."""

    label: np.ndarray
    predicted: np.ndarray
    confidence: np.ndarray
    top5: np.ndarray

    def __len__(self) -> int:
        return len(self.predicted)


def images_path(folder: Path, dataset: str, case: Case, written: bool = True) -> Path:
    """Where the images of a case lie. Random images and a folder's depend on the model (its input's shape),
    and so do the names of the classes of a model given by path (its own order), so their files bear its name;
    those of a named data set are shared by all models of the catalogue. written: before files bore the names
    of models given by path, theirs were shared too; they are found."""
    kind = dataset.partition(":")[0]
    of_model = f"{kind}-{title(case.model)}"
    end = f"-n{min(case.images, MOST)}.npz"
    shared = folder / FOLDER / f"images-{kind}{end}"
    own = folder / FOLDER / f"images-{of_model}{end}"
    if kind in ("random", "folder"):
        return own
    if title(case.model) == case.model or (written and shared.exists() and not own.exists()):
        return shared
    return own


def answers_path(folder: Path, case: Case) -> Path:
    """Where a case's answers lie (written by bench.measure.images.predictions.save)."""
    return folder / FOLDER / f"{case.key}.npz"


def keep_images(path: Path, images: np.ndarray, classes: tuple[str, ...], count: int) -> None:
    """Write the first min(count, MOST) of `images`, uint8 (N, H, W[, 3]), thinned; a file there stays.

    Raises OSError as the system gives it; the file appears whole or not at all.
    """
    if path.exists():
        return
    small = thinned(images[: min(count, MOST)])
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, pixels=small, classes=np.array(classes, np.str_))


def thinned(images: np.ndarray) -> np.ndarray:
    """Images whose longer side is at most SIDE, each pixel the mean of the area it stands for; smaller ones
    as they are."""
    height, width = images.shape[1:3]
    if max(height, width) <= SIDE:
        return images
    small = [small_one(image) for image in images]
    size = _size(height, width)
    return np.stack(small) if small else images[:, : size[1], : size[0]]


def small_one(image: np.ndarray) -> np.ndarray:
    """One image (H, W[, 3]), thinned as `thinned` does."""
    height, width = image.shape[:2]
    if max(height, width) <= SIDE:
        return image
    from PIL import Image

    return np.asarray(Image.fromarray(image).resize(_size(height, width), Image.Resampling.BOX))


def _size(height: int, width: int) -> tuple[int, int]:
    """(width, height), thinned."""
    scale = SIDE / max(height, width)
    return max(1, round(width * scale)), max(1, round(height * scale))


def stacked(images: Sequence[np.ndarray]) -> np.ndarray:
    """Small images of several sizes and colours as one array, each in the middle of black."""
    if not images:
        return np.empty((0, 1, 1), np.uint8)
    height, width = (max(image.shape[axis] for image in images) for axis in (0, 1))
    colour = (3,) if any(image.ndim == 3 for image in images) else ()
    out = np.zeros((len(images), height, width, *colour), np.uint8)
    for place, image in zip(out, images, strict=True):
        top, left = (height - image.shape[0]) // 2, (width - image.shape[1]) // 2
        full = image[:, :, None] if colour and image.ndim == 2 else image
        place[top : top + image.shape[0], left : left + image.shape[1]] = full
    return out


def load_images(path: Path) -> Images:
    """What `keep_images` wrote. Raises DataError where it is missing or broken."""
    try:
        pixels, classes = npz.arrays(_own(path), ("pixels", "classes")).values()
        grey = pixels.ndim == 3
        if pixels.dtype != np.uint8 or not (grey or (pixels.ndim == 4 and pixels.shape[3] == 3)):
            raise reading.Unreadable(f"pixels are {pixels.dtype} of shape {pixels.shape}")
        if classes.dtype.kind != "U" or classes.ndim != 1 or len(classes) > MOST_CLASSES:
            raise reading.Unreadable(f"classes are {classes.dtype} of shape {classes.shape}")
    except (reading.Unreadable, OSError) as error:
        words = reading.words(error)
        raise DataError(f"images {path} cannot be read ({words}): run the comparison again") from error
    return Images(pixels, tuple(str(name) for name in classes))


def load_answers(path: Path) -> Answers:
    """A case's answers. Raises DataError where they are missing or broken."""
    try:
        columns = npz.arrays(_own(path), tuple(_COLUMNS))
        for name, array in columns.items():
            if array.dtype.kind not in _COLUMNS[name] or array.ndim != 1:
                raise reading.Unreadable(f"{name} is {array.dtype} of shape {array.shape}")
        if len({len(array) for array in columns.values()}) != 1:
            raise reading.Unreadable("its columns differ in length")
    except (reading.Unreadable, OSError) as error:
        words = reading.words(error)
        raise DataError(f"predictions {path} cannot be read ({words}): run the comparison again") from error
    return Answers(**columns)


def _own(path: Path) -> Path:
    """A file, where no link leads from it out of its folder. Raises DataError."""
    try:
        return inside(path.parent, path.name)
    except InputError as error:
        raise DataError(str(error)) from error
