"""Images as a data set holds them (uint8, any size, grey or RGB) → what a model's input takes.

Works on any part of a data set, so that a caller with 10,000 AlexNet inputs (6 GB) goes batch by batch.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernels.errors import InputError
from models.preparation import Preparation, parse, words

CROPPED = 256 / 224  # of the model's size is the short side before the middle is cut out
Shape = Sequence[int | str | None]
Pictures = np.ndarray | Sequence[np.ndarray]


@dataclass(frozen=True)
class Layout:
    """How an input holds images. axes: "NCHW", "NHWC", "NHW" or "NF" (all values of an image in a row, as
    (height, width[, channels]) are laid out); height, width: None where they are open."""

    axes: str
    channels: int
    height: int | None
    width: int | None


def layout(shape: Shape, wanted: str = "", flat: bool = True) -> Layout | None:
    """How an input of this shape, (N, C, H, W), (C, H, W) of one image, (N, H, W, C), (N, H, W) or (N, H·W),
    takes images; None where it takes none. wanted: "NHWC" or "NCHW" where both would fit. flat: whether (N,
    H, W) and (N, H·W) are images, which a matrix need not be."""
    dims = [dim if isinstance(dim, int) else None for dim in shape]
    if len(dims) == 3 and dims[0] is not None:
        dims = [None, *dims] if dims[0] in (1, 3) else []
    if len(dims) == 4:
        first, last = dims[1] in (1, 3), dims[3] in (1, 3)
        if first and not (last and wanted == "NHWC"):
            return Layout("NCHW", int(dims[1] or 0), dims[2], dims[3])
        if last:
            return Layout("NHWC", int(dims[3] or 0), dims[1], dims[2])
    if flat and len(dims) == 3 and dims[1] and dims[2]:
        return Layout("NHW", 1, dims[1], dims[2])
    if flat and len(dims) == 2 and dims[1]:
        for channels in (1, 3):
            side = round((dims[1] / channels) ** 0.5)
            if side > 1 and side * side * channels == dims[1]:
                return Layout("NF", channels, side, side)
    return None


def resize(images: np.ndarray, height: int, width: int) -> np.ndarray:
    """uint8 (N, H, W) or (N, H, W, 3) at another size, bilinear (averaging where it shrinks).

    Pillow computes this in integers, so the pixels are the same on every machine.
    """
    if images.shape[1:3] == (height, width):
        return images
    from PIL import Image  # long to load, and images of the model's size have no need of it

    out = np.empty((len(images), height, width, *images.shape[3:]), np.uint8)
    for index, image in enumerate(images):
        out[index] = Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR)
    return out


def fitted(image: np.ndarray, prepared: Preparation, height: int, width: int) -> np.ndarray:
    """One image (H, W[, 3]) at the model's size, as the preparation says. Zeros are pixels of 0, which is
    black."""
    if prepared.fit == "stretch":
        return resize(image[None], height, width)[0]
    old = image.shape[:2]
    if prepared.fit == "pad":
        scale = min(height / old[0], width / old[1])
        new = tuple(max(1, round(side * scale)) for side in old) if scale < 1 else old
    elif prepared.resize is not None and len(prepared.resize) == 2:
        new = prepared.resize
    else:
        short = prepared.resize[0] if prepared.resize else round(min(height, width) * CROPPED)
        # torchvision's: the long side is cut down to whole pixels.
        new = tuple(short if side == min(old) else int(short * side / min(old)) for side in old)
    small = resize(image[None], *new)[0]
    out = np.zeros((height, width, *image.shape[2:]), np.uint8)
    # Of each axis the middle: of the image where it is larger, of what it is put into where it is smaller.
    cut, put = zip(
        *(_middle(have, want) for have, want in zip(new, (height, width), strict=True)), strict=True
    )
    out[put] = small[cut]
    return out


def _middle(have: int, want: int) -> tuple[slice, slice]:
    start, most = round(abs(have - want) / 2), min(have, want)
    inner, whole = slice(start, start + most), slice(0, most)
    return (inner, whole) if have > want else (whole, inner)


def planes_of(images: np.ndarray, channels: int) -> np.ndarray:
    """uint8 (N, 1, H, W) of grey images or where `channels` is 1 (ITU-R 601 luma), else (N, 3, H, W)."""
    if images.ndim == 3:
        return images[:, None]
    if channels == 3:
        return images.transpose(0, 3, 1, 2)
    from PIL import Image

    grey = np.stack([np.asarray(Image.fromarray(image).convert("L")) for image in images])
    return grey[:, None]


class Preprocessing:
    """What makes inputs of images, in two steps: `fit`, an image to the model's size, which pools can share
    out, and `fill`, many of these to an input. Raises InputError where the model does not take images, and
    for a preparation that is not for it."""

    def __init__(self, spec: str, input_shape: Shape, dtype: str = "float32", files: bool = True) -> None:
        self._prepared = prepared = parse(spec, files)
        wanted = layout(input_shape, prepared.layout)
        if wanted is None:
            raise InputError(
                f"the model's input has shape {tuple(input_shape)}, which is not one of images; a model "
                f"with an "
                "input (N, C, H, W) or (N, H, W, C) of 1 or 3 channels, (N, H, W) or (N, H·W) can be fed"
            )
        if np.dtype(dtype).kind != "f" and not prepared.as_it_is:
            raise InputError(
                f"the model's input is {dtype}, which takes pixels as they are, and preprocessing {spec} "
                f"makes "
                "fractions of them: use --preprocess raw"
            )
        self._taken, self._dtype = wanted, dtype
        self._factors = prepared.factors(wanted.channels)

    def fit(self, image: np.ndarray) -> np.ndarray:
        """uint8 (h, w[, 3]) of the model's size where it has one."""
        check_images(image[None])
        size = self._taken.height or image.shape[0], self._taken.width or image.shape[1]
        return fitted(image, self._prepared, *size)

    def fill(self, images: Pictures) -> np.ndarray:
        """The input of images that fit, of any colours. Those of several sizes, where the model leaves it
        open, are resized to the first's."""
        if len(images) == 0:
            height, width = self._taken.height or 1, self._taken.width or 1
        else:
            height, width = self._taken.height or images[0].shape[0], self._taken.width or images[0].shape[1]
        out = np.empty((len(images), self._taken.channels, height, width), np.float32)
        if isinstance(images, np.ndarray):
            if len(images):
                self._put(resize(images, height, width), out)
        else:
            for index, image in enumerate(images):
                self._put(resize(image[None], height, width), out[index : index + 1])
        return _laid_out(out, self._taken).astype(self._dtype, copy=False)

    def __call__(self, images: Pictures) -> np.ndarray:
        if isinstance(images, np.ndarray):
            check_images(images)
            if self._prepared.fit == "stretch":
                return self.fill(images)
        return self.fill([self.fit(image) for image in images])

    def planes(self, made: np.ndarray) -> np.ndarray:
        """An input as it was made here, as (N, C, H, W) in the model's order of channels, to be looked at."""
        wanted = self._taken
        if wanted.axes == "NCHW":
            return made
        if wanted.axes == "NF":
            assert wanted.height is not None
            assert wanted.width is not None
            made = made.reshape(len(made), wanted.height, wanted.width, wanted.channels)
        return made[:, None] if wanted.axes == "NHW" else made.transpose(0, 3, 1, 2)

    def as_bytes(self, images: Pictures) -> np.ndarray:
        """uint8, laid out as the input: what `affine` makes it of."""
        raw = copy.copy(self)
        channels = self._taken.channels
        raw._factors, raw._dtype = ([1.0] * channels, [0.0] * channels), "uint8"
        return raw.fill(images)

    @property
    def affine(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """(factor, offset) a channel, in the model's order: input = factor · pixel + offset."""
        factors, offsets = self._factors
        return tuple(factors), tuple(offsets)

    @property
    def planar(self) -> bool:
        """Whether all values of a channel lie in a row."""
        return self._taken.axes in ("NCHW", "NHW") or self._taken.channels == 1

    @property
    def blue_first(self) -> bool:
        """Whether the model's first channel of three is blue."""
        return self._taken.channels == 3 and self._prepared.order == "BGR"

    def _put(self, images: np.ndarray, out: np.ndarray) -> None:
        factors, offsets = self._factors
        _put(planes_of(images, self._taken.channels), self._prepared.order, factors, offsets, out)


def preprocess(images: Pictures, spec: str, input_shape: Shape, dtype: str = "float32") -> np.ndarray:
    """(N, C, H, W) or as the model's input has it (`layout`), C-contiguous, of uint8 images (N, H, W) or
    (N, H, W, 3), or of a list of images of any sizes and colours.

    `input_shape` is the model's, (C, H, W) or with any N; a height or width that is no number (a dynamic
    axis) leaves the images' own. dtype: the input's; where it is an integer type the preparation must leave
    the pixels as they are. Raises InputError as `Preprocessing` does.
    """
    return Preprocessing(spec, input_shape, dtype)(images)


def check_images(images: np.ndarray) -> None:
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] != 3):
        raise InputError(
            f"images of type {images.dtype} and shape {images.shape} cannot be fed; "
            "uint8 of shape (N, H, W) or (N, H, W, 3) can"
        )


def _put(
    planes: np.ndarray, order: str, factors: Sequence[float], offsets: Sequence[float], out: np.ndarray
) -> None:
    """`planes`, uint8 (n, 1 or 3, H, W), into `out`, float32 (n, C, H, W); a grey one into each channel."""
    if order == "BGR":
        planes = planes[:, ::-1]
    if len(set(factors)) == len(set(offsets)) == 1:
        own = out[:, : planes.shape[1]]
        np.multiply(planes, np.float32(factors[0]), out=own)
        if offsets[0]:
            own += np.float32(offsets[0])
        out[:, planes.shape[1] :] = own[:, :1]
        return
    for channel, (factor, offset) in enumerate(zip(factors, offsets, strict=True)):
        plane = planes[:, channel if planes.shape[1] > 1 else 0]
        np.multiply(plane, np.float32(factor), out=out[:, channel])
        out[:, channel] += np.float32(offset)


def _laid_out(planes: np.ndarray, taken: Layout) -> np.ndarray:
    if taken.axes == "NCHW":
        return planes
    last = np.ascontiguousarray(planes.transpose(0, 2, 3, 1))
    if taken.axes == "NHWC":
        return last
    return last[..., 0] if taken.axes == "NHW" else last.reshape(len(last), -1)


def described(spec: str, shape: Shape, files: bool = True) -> str:
    """What will be done to an image for an input of this shape, in words; "" where the input takes no
    image."""
    prepared = parse(spec, files)
    wanted = layout(shape, prepared.layout)
    return "" if wanted is None else words(prepared, wanted.height, wanted.width, wanted.channels)
