"""Weights as a file holds them, and whether they are those that a net needs.

A part is known by its shape first; its values are read when the shape is right, so that nothing larger than
the net is ever read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from kernels.errors import ModelError
from models.builders import Net

TOLD = 3  # names that a sentence lists


@dataclass(frozen=True)
class FilePart:
    """A tensor of a file: its shape, and what reads it."""

    shape: tuple[int, ...]
    read: Callable[[], np.ndarray]

    @classmethod
    def of(cls, array: np.ndarray) -> FilePart:
        return cls(array.shape, lambda: array)


@dataclass(frozen=True)
class Found:
    """What a file turned out to be. title: the net in words; preprocess: what its images go through, by name
    (models.preprocessing); scores: the output that holds them."""

    title: str
    net: Net
    weights: dict[str, np.ndarray]
    preprocess: str

    @property
    def scores(self) -> str:
        return self.net.tensor


def fitted(net: Net, parts: Mapping[str, FilePart], title: str) -> dict[str, np.ndarray]:
    """The values of a net's parameters, float32. Raises ModelError, in words that fit behind the file's name
    and a colon, where one is missing, too many, of another shape or not finite."""
    for what, names in (
        ("lacks", [name for name in net.parameters if name not in parts]),
        ("also holds", [name for name in parts if name not in net.parameters]),
    ):
        if names:
            told = ", ".join(name[:60] for name in names[:TOLD])
            more = f" and {len(names) - TOLD} more" if len(names) > TOLD else ""
            raise ModelError(f"it {what} {told}{more}, so it is not {title}")
    for name, shape in net.parameters.items():
        if parts[name].shape != shape:
            raise ModelError(
                f"{name} has the shape {words(parts[name].shape)} where {title} has {words(shape)}"
            )
    values = {}
    for name in net.parameters:
        # Overflow of float64 ends in an infinity, and is told as one.
        with np.errstate(over="ignore"):
            value = np.ascontiguousarray(parts[name].read(), np.float32)
        if not np.isfinite(value).all():
            raise ModelError(f"{name} holds values that are not finite, so the file is damaged")
        values[name] = value
    return values


def words(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape[:8])) or "of one number"


def divided(width: int, found: int, most: int) -> int:
    """By what a net's widths are divided whose first layer has `found` maps of `width`; 1 where it is by no
    power of two up to `most`, as of the net itself."""
    return next((by for by in (2**power for power in range(most)) if found * by == width), 1)


def widened(data: bytes | memoryview, dtype: str) -> np.ndarray:
    """The numbers of a type's name; bfloat16, which NumPy does not have, as float32."""
    if dtype == "bf16":
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    return np.frombuffer(data, dtype)
