"""What a run keeps for looking at its images: the images themselves, small, and the answers to them.

Images are written once for a data set and a number of images, in the run folder as
`predictions/images-<data set>-n<images>.npz`. Reading needs no engine, so that a window or a notebook shows a
run on any machine.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.records import Case
from bench.rows import title
from kernels.errors import DataError
from models.cache import atomic_file

FOLDER = "predictions"
MOST = 10_000  # images kept of a data set, the first ones
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


def images_path(folder: Path, dataset: str, case: Case) -> Path:
    """Where the images of a case lie. Random images and a folder's depend on the model (its input's shape,
    its classes), so their files bear its name; those of a named data set are shared by all models."""
    kind = dataset.partition(":")[0]
    stem = f"{kind}-{title(case.model)}" if kind in ("random", "folder") else kind
    return folder / FOLDER / f"images-{stem}-n{min(case.images, MOST)}.npz"


def answers_path(folder: Path, case: Case) -> Path:
    """Where a case's answers lie (written by bench.predictions.save)."""
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
    from PIL import Image

    scale = SIDE / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = [np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BOX)) for image in images]
    return np.stack(small) if small else images[:, : size[1], : size[0]]


def load_images(path: Path) -> Images:
    """What `keep_images` wrote. Raises DataError where it is missing or broken."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            pixels, classes = file["pixels"], file["classes"]
        if pixels.dtype != np.uint8 or pixels.ndim not in (3, 4):
            raise ValueError(f"pixels are {pixels.dtype} of shape {pixels.shape}")
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"images {path} cannot be read ({error}): run the comparison again") from error
    return Images(pixels, tuple(str(name) for name in classes))


def load_answers(path: Path) -> Answers:
    """A case's answers. Raises DataError where they are missing or broken."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            found = Answers(file["label"], file["predicted"], file["confidence"], file["top5"])
        if len({array.shape for array in (found.label, found.predicted, found.confidence, found.top5)}) != 1:
            raise ValueError("its columns differ in length")
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"predictions {path} cannot be read ({error}): run the comparison again") from error
    return found
