"""What a rung's wrong answer looks like, as arrays: reads what the judge kept of it. Nothing of Qt."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bench.results import npz
from kernels.errors import InputError, system_words


def _empty() -> np.ndarray:
    return np.zeros((0, 0, 0, 0), np.float32)


@dataclass(frozen=True)
class ErrorPictures:
    """error_map: (rows, columns), the largest |error| over all images and channels. expected, got: (k, c,
    rows, columns) of the images and channels of these numbers, from the answer's row `row` on; empty where
    only the map was kept. at: where the finding is (image, channel, row, column). tolerance: what is further
    off is wrong."""

    error_map: np.ndarray
    expected: np.ndarray = field(default_factory=_empty)
    got: np.ndarray = field(default_factory=_empty)
    images: tuple[int, ...] = ()
    channels: tuple[int, ...] = ()
    row: int = 0
    at: tuple[int, ...] = (0, 0, 0, 0)
    tolerance: float = 0.0

    @property
    def whole(self) -> bool:
        """Whether there are images of the answer, and not the map alone."""
        return self.got.size > 0

    def wrong(self, image: int, channel: int) -> np.ndarray:
        """Where (rows, columns) an image and channel, by their places, is wrong."""
        got, expected = self.got[image, channel], self.expected[image, channel]
        with np.errstate(all="ignore"):
            return ~(np.abs(got.astype(np.float64) - expected) <= self.tolerance)

    def counts(self) -> np.ndarray:
        """(k, c): how many elements are wrong in each image and channel."""
        with np.errstate(all="ignore"):
            off = ~(np.abs(self.got - self.expected) <= self.tolerance)
        return off.sum(axis=(2, 3))


def read(path: Path) -> ErrorPictures:
    """Raises InputError where the file is missing or broken."""
    try:
        kept = npz.arrays(path)
        if "got" not in kept:
            return ErrorPictures(kept["error_map"])
        made = ErrorPictures(
            error_map=kept["error_map"],
            expected=kept["expected"],
            got=kept["got"],
            images=tuple(int(i) for i in kept["images"]),
            channels=tuple(int(i) for i in kept["channels"]),
            row=int(kept["row"]),
            at=tuple(int(i) for i in kept["at"]),
            tolerance=float(kept["tolerance"]),
        )
    except OSError as error:
        raise InputError(f"the error map cannot be read: {system_words(error)}") from error
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise InputError(f"the error map {path.name} is broken ({error})") from error
    known = (len(made.images), len(made.channels))
    if made.got.ndim != 4 or made.got.shape != made.expected.shape or made.got.shape[:2] != known:
        raise InputError(f"the error map {path.name} is broken (its arrays do not fit each other)")
    return made
