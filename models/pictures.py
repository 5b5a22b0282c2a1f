"""Image files, decoded when they are read by a pool of threads, so that 50,000 of them need the memory of a
few. What is special about a file (grey, CMYK, turned, broken) is counted, and reported by `notes`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL import Image

GREY_MODES = frozenset({"1", "L", "LA"})
MOST_PIXELS = 100_000_000
ORIENTATION = 0x0112  # EXIF's tag of how the camera was held
NAMED = 3
AHEAD = 256  # images at most that are decoded before those that are asked for are handed over


class Pictures:
    """Image files as images: uint8 (H, W) for grey ones, else (H, W, 3), turned as the camera recorded."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = tuple(files)
        self._broken: dict[int, str] = {}
        self._kinds: dict[str, set[int]] = {"grey": set(), "CMYK": set(), "turned": set()}

    def __len__(self) -> int:
        return len(self._files)

    def part(self, first: int, step: int) -> Pictures:
        """Every `step`th of them, from `first` on."""
        return Pictures(self._files[first::step])

    def read(
        self, start: int, stop: int, each: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> tuple[list[np.ndarray], list[int]]:
        """Images `start` to `stop` without those that cannot be read, and their indices. each: applied to
        each image where it is decoded, so that only the result is kept."""

        def one(place: int) -> np.ndarray | None:
            image = self._decoded(place)
            return image if image is None or each is None else each(image)

        images, places = [], []
        stop = min(stop, len(self._files))
        for first in range(start, stop, AHEAD):
            part = range(first, min(first + AHEAD, stop))
            for place, image in zip(part, _pool().map(one, part), strict=True):
                if image is not None:
                    images.append(image)
                    places.append(place)
        return images, places

    def notes(self) -> tuple[str, ...]:
        """What was noticed in the files that were read, in sentences."""
        notes = []
        if self._broken:
            some = "; ".join(self._broken[place] for place in sorted(self._broken)[:NAMED])
            more = "; …" if len(self._broken) > NAMED else ""
            notes.append(
                f"{len(self._broken):,} of {len(self):,} image files cannot be read and are left out: "
                f"{some}{more}"
            )
        words = {
            "grey": "grey (each channel of the model is given the same)",
            "CMYK": "CMYK (made red, green and blue without a colour profile)",
            "turned": "turned upright as their camera said",
        }
        kinds = [f"{len(self._kinds[kind]):,} {text}" for kind, text in words.items() if self._kinds[kind]]
        # A data set that is all grey, as digits are, is nothing to wonder at.
        if kinds and not (len(kinds) == 1 and len(self._kinds["grey"]) == len(self) - len(self._broken)):
            notes.append(f"of {len(self):,} images {', '.join(kinds)}")
        return tuple(notes)

    def _decoded(self, place: int) -> np.ndarray | None:
        if place in self._broken:
            return None
        from PIL import Image, ImageOps, UnidentifiedImageError  # most data sets are no files of images

        file = self._files[place]
        try:
            with Image.open(file) as image:
                if image.width * image.height > MOST_PIXELS:
                    raise ValueError(f"{image.width}×{image.height} pixels are too many")
                if image.getexif().get(ORIENTATION, 1) in range(2, 9):
                    self._kinds["turned"].add(place)
                upright = ImageOps.exif_transpose(image)
                pixels = _pixels(upright)
        except FileNotFoundError:
            self._broken[place] = f"{file.name} does not exist"
            return None
        except UnidentifiedImageError:
            self._broken[place] = f"{file.name} is no image, or cut short"
            return None
        except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
            self._broken[place] = f"{file.name} ({error})"
            return None
        if pixels.ndim == 2:
            self._kinds["grey"].add(place)
        elif upright.mode == "CMYK":
            self._kinds["CMYK"].add(place)
        return pixels


def _pixels(image: Image.Image) -> np.ndarray:
    if image.mode.startswith("I"):  # 16 bits a pixel, which Pillow would cut off at 255
        deep = np.asarray(image).astype(np.int64)
        return np.clip(deep // 257 if deep.max(initial=0) > 255 else deep, 0, 255).astype(np.uint8)
    return np.asarray(image.convert("L" if image.mode in GREY_MODES else "RGB"))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(2, os.cpu_count() or 1), thread_name_prefix="decoding")
