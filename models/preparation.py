"""What is done to an image before a model gets it, as data: a name, MEAN,STD, or a few lines of TOML.

A preparation says how an image is brought to the model's size, what each channel is divided by, what is
subtracted, and the order of the channels. models.preprocessing does it.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from kernels.errors import InputError
from kernels.nearest import did_you_mean

FITS = ("stretch", "crop", "pad")
ORDERS = ("RGB", "BGR")
LAYOUTS = ("NCHW", "NHWC")
MOST_NBYTES = 10_000
TOML = ".toml"


@dataclass(frozen=True)
class Preparation:
    """input = (pixel / divide − mean) / std, pixels 0–255; mean and std one for all channels or one a
    channel, in the order of the model's channels.

    fit: "stretch" to the model's size; "crop": the short side becomes `resize` (or both sides (height,
    width); None: 256/224 of the model's), then the middle is cut out; "pad": the whole image with zeros
    (black) around it. layout: of the model's input where its shape leaves it open.
    """

    divide: float = 255.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    order: str = "RGB"
    fit: str = "stretch"
    resize: tuple[int, ...] | None = None
    layout: str = ""

    def factors(self, channels: int) -> tuple[list[float], list[float]]:
        """(factor, offset) for each channel: input = factor · pixel + offset."""
        means, stds = (v * channels if len(v) == 1 else v for v in (self.mean, self.std))
        if len(means) != channels or len(stds) != channels:
            raise InputError(
                f"the preprocessing has {max(len(self.mean), len(self.std))} means or deviations and the "
                f"model "
                f"{channels} channel{'s' if channels > 1 else ''}: give one for all or one a channel"
            )
        factors = [1.0 / (self.divide * std) for std in stds]
        return factors, [-mean / std for mean, std in zip(means, stds, strict=True)]

    @property
    def as_it_is(self) -> bool:
        """Whether the pixels keep their values."""
        return self.divide == 1.0 and set(self.mean) == {0.0} and set(self.std) == {1.0}


NAMED = {
    "unit": Preparation(),
    "raw": Preparation(divide=1.0),
    "imagenet": Preparation(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), fit="crop"),
    "caffe": Preparation(
        divide=1.0, mean=(104.00699, 116.66877, 122.67892), order="BGR", fit="crop", resize=(256, 256)
    ),
}
TITLES = {
    "unit": "0 to 1",
    "raw": "0 to 255, as the images are",
    "imagenet": "torchvision's: short side to 256/224, the middle, ImageNet's means and deviations",
    "caffe": "Caffe's: to 256×256, the middle, 0 to 255, blue first, ImageNet's means taken off",
    "0.5,0.5": "MEAN,STD on 0 to 1",
}
WHAT_WORKS = "use raw (0–255), unit (0–1), imagenet, caffe, MEAN,STD as in 0.45,0.225, or a .toml file"
KEYS = ("base", "divide", "mean", "std", "order", "fit", "resize", "layout")


def parse(spec: str, files: bool = True) -> Preparation:
    """The preparation of a text: a name, MEAN,STD, TOML, or, if `files` may be read, the path of a .toml
    file. Raises InputError."""
    if spec in NAMED:
        return NAMED[spec]
    if files and spec.endswith(TOML) and "\n" not in spec:
        return _of_file(Path(spec).expanduser())
    if "=" in spec:
        return of_toml(spec, "the preprocessing")
    parts = spec.split(",")
    try:
        mean, std = (float(part) for part in parts)
    except ValueError:
        raise InputError(
            f"preprocessing {spec[:80]!r} is not known{did_you_mean(spec[:80], NAMED)}: {WHAT_WORKS}"
        ) from None
    if not (math.isfinite(mean) and math.isfinite(std) and std > 0):
        raise InputError(f"preprocessing {spec!r} needs a finite mean and a positive deviation: {WHAT_WORKS}")
    return Preparation(mean=(mean,), std=(std,))


def _of_file(path: Path) -> Preparation:
    try:
        stat = path.stat()
        return _read(path, stat.st_mtime_ns, stat.st_size)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"preprocessing {path} cannot be read ({reason}): {WHAT_WORKS}") from None


@lru_cache(maxsize=16)
def _read(path: Path, mtime_ns: int, size: int) -> Preparation:
    if size > MOST_NBYTES:
        raise InputError(f"preprocessing {path} has {size:,} bytes, and at most {MOST_NBYTES:,} are read")
    return of_toml(path.read_text(encoding="utf-8"), str(path))


def of_toml(text: str, where: str) -> Preparation:
    """The preparation of a few lines of TOML: `base`, a name to begin with, and what differs from it. Raises
    InputError naming the key."""
    if len(text) > MOST_NBYTES:
        raise InputError(f"{where} has {len(text):,} characters, and at most {MOST_NBYTES:,} are read")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where} is no TOML ({error}): {WHAT_WORKS}") from None
    for key in table:
        if key not in KEYS:
            raise InputError(
                f"{where}: the key {key!r} is not known{did_you_mean(key, KEYS)}; known are {', '.join(KEYS)}"
            )
    base = table.pop("base", "unit")
    if base not in NAMED:
        raise InputError(f"{where}: base is {base!r}; known are {', '.join(NAMED)}")
    try:
        values: dict[str, Any] = {key: _READERS[key](value) for key, value in table.items()}
        return replace(NAMED[base], **values)
    except _Wrong as wrong:
        raise InputError(f"{where}: {wrong}") from None


class _Wrong(ValueError):
    pass


def _numbers(key: str, value: Any, positive: bool) -> tuple[float, ...]:
    values = value if isinstance(value, list) else [value]
    good = len(values) in (1, 3) and all(
        isinstance(v, int | float)
        and not isinstance(v, bool)
        and math.isfinite(v)
        and (v > 0 or not positive)
        for v in values
    )
    if not good:
        raise _Wrong(f"{key} is {value!r}; one {'positive ' * positive}number works, or three in a list")
    return tuple(float(v) for v in values)


def _divide(value: Any) -> float:
    divisors = _numbers("divide", value, True)
    if len(divisors) != 1:
        raise _Wrong(f"divide is {value!r}; one positive number works")
    return divisors[0]


def _sides(value: Any) -> tuple[int, ...]:
    sides = value if isinstance(value, list) else [value]
    whole = all(isinstance(side, int) and not isinstance(side, bool) and 0 < side <= 10_000 for side in sides)
    if len(sides) not in (1, 2) or not whole:
        raise _Wrong(f"resize is {value!r}; the short side's pixels work, or [height, width]")
    return tuple(sides)


def _one_of(key: str, known: Sequence[str], value: Any) -> str:
    if value not in known:
        raise _Wrong(f"{key} is {value!r}; {' and '.join(known)} work")
    return str(value)


_READERS: dict[str, Callable[[Any], Any]] = {
    "divide": _divide,
    "mean": lambda value: _numbers("mean", value, False),
    "std": lambda value: _numbers("std", value, True),
    "order": lambda value: _one_of("order", ORDERS, value),
    "fit": lambda value: _one_of("fit", FITS, value),
    "resize": _sides,
    "layout": lambda value: _one_of("layout", LAYOUTS, value),
}


def words(prepared: Preparation, height: int | None, width: int | None, channels: int) -> str:
    """What is done to an image, in a sentence's part."""
    size = f"{height}×{width}" if height and width else "the model's size"
    if prepared.fit == "crop":
        sides = prepared.resize
        short = (
            "short side to 256/224 of that" if sides is None
            else f"short side to {sides[0]}" if len(sides) == 1
            else f"resized to {sides[0]}×{sides[1]}"
        )  # fmt: skip
        fit = f"{short}, the middle {size} cut out"
    elif prepared.fit == "pad":
        fit = f"fitted into {size} with zeros around it"
    else:
        fit = f"resized to {size}"
    colour = (
        "grey" if channels == 1 else "blue, green, red" if prepared.order == "BGR" else "red, green, blue"
    )
    values = f"pixels divided by {prepared.divide:g}" if prepared.divide != 1 else "pixels 0 to 255"
    if any(prepared.mean):
        values += f", minus {_list(prepared.mean)}"
    if set(prepared.std) != {1.0}:
        values += f", over {_list(prepared.std)}"
    return f"{fit}; {colour}; {values}"


def _list(values: Sequence[float]) -> str:
    return "/".join(f"{value:g}" for value in values)
