"""Images as a data set holds them (uint8, any size, grey or RGB) → what a model's input takes (float32).

Works on any slice of a data set, so that a caller with 10,000 AlexNet inputs (6 GB) goes batch by batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PIL import Image

from kernels.errors import InputError

WHAT_WORKS = "use raw (0–255), unit (0–1) or MEAN,STD as in 0.45,0.225"


def parse(spec: str) -> tuple[float, float]:
    """(scale, offset) of a preprocessing, so that input = scale · pixel + offset with pixels 0–255.

    "raw" leaves 0–255, "unit" gives 0–1, "MEAN,STD" gives (pixel / 255 − MEAN) / STD. Raises InputError.
    """
    if spec == "raw":
        return 1.0, 0.0
    if spec == "unit":
        return 1.0 / 255.0, 0.0
    parts = spec.split(",")
    try:
        mean, std = (float(part) for part in parts)
    except ValueError:
        raise InputError(f"preprocessing {spec!r} is not known: {WHAT_WORKS}") from None
    if not (math.isfinite(mean) and math.isfinite(std) and std > 0):
        raise InputError(f"preprocessing {spec!r} needs a finite mean and a positive deviation: {WHAT_WORKS}")
    return 1.0 / (255.0 * std), -mean / std


def resize(images: np.ndarray, height: int, width: int) -> np.ndarray:
    """uint8 (N, H, W) or (N, H, W, 3) at another size, bilinear (averaging where it shrinks).

    Pillow computes this in integers, so the pixels are the same on every machine.
    """
    if images.shape[1:3] == (height, width):
        return images
    out = np.empty((len(images), height, width, *images.shape[3:]), np.uint8)
    for index, image in enumerate(images):
        out[index] = Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR)
    return out


def planes_of(images: np.ndarray, channels: int) -> np.ndarray:
    """uint8 (N, 1, H, W) of grey images or where `channels` is 1 (ITU-R 601 luma), else (N, 3, H, W)."""
    if images.ndim == 3:
        return images[:, None]
    if channels == 3:
        return images.transpose(0, 3, 1, 2)
    grey = np.stack([np.asarray(Image.fromarray(image).convert("L")) for image in images])
    return grey[:, None]


def preprocess(images: np.ndarray, spec: str, input_shape: Sequence[int | str | None]) -> np.ndarray:
    """float32 (N, C, H, W), C-contiguous, of uint8 images (N, H, W) or (N, H, W, 3).

    `input_shape` is the model's, (C, H, W) or (N, C, H, W) with any N; a height or width that is no number
    (a dynamic axis) leaves the images' own. Raises InputError where the model does not take images.
    """
    scale, offset = parse(spec)
    shape = tuple(input_shape)
    channels, height, width = shape[-3:] if len(shape) in (3, 4) else (None, None, None)
    if channels not in (1, 3):
        raise InputError(
            f"the model's input has shape {shape}, which is not one of images; "
            "a model with an input (N, 1, H, W) or (N, 3, H, W) can be fed"
        )
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] != 3):
        raise InputError(
            f"images of type {images.dtype} and shape {images.shape} cannot be fed; "
            "uint8 of shape (N, H, W) or (N, H, W, 3) can"
        )
    height = height if isinstance(height, int) else images.shape[1]
    width = width if isinstance(width, int) else images.shape[2]
    if len(images) == 0:
        return np.empty((0, int(channels), height, width), np.float32)
    planes = planes_of(resize(images, height, width), int(channels))
    out = np.empty((len(images), int(channels), height, width), np.float32)
    own = out[:, : planes.shape[1]]
    np.multiply(planes, np.float32(scale), out=own)
    if offset:
        own += np.float32(offset)
    out[:, planes.shape[1] :] = own[:, :1]  # grey for a model of three channels: each is the same
    return out
