"""The launch shapes of convolutions of small images in which each block has a slice of the channels: on
tensor cores (cuda/conv_slices.cuh), and in float32 (cuda/conv/44_slices.cu)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from kernels import layouts, packing
from kernels.errors import UnsupportedError
from kernels.estimates import float_slices, strip_slices
from kernels.estimates.image_slices import SHARED_NBYTES, Cut, Sums, grid
from kernels.header import Define
from kernels.launch.core import MAX_YZ, Launch, Pack, define, shape
from kernels.launch.whole_image import pack
from kernels.occupancy import WARP, ceil
from kernels.ops import code
from kernels.ops.conv import Conv
from kernels.registry import Rung

_WEIGHT = 1  # the place of the weights among the inputs
MOST_IMAGES = 16  # of a batch: of more, the tiles of other kernels are enough
_OF_STEP = 2  # chunks of a step of the sum, on tensor cores
_LIMITS = {
    "conv_image_slices": ("STRIPS", "RANKS"),
    "conv_float_slices": ("MAPS", "RANKS", "LEAST_WARPS"),
}
_COMPILED_IN = (
    *("h", "w", "kh", "kw", "out_h", "out_w", "stride_h", "stride_w", "pad_top", "pad_left"),
    *("dilation_h", "dilation_w"),
)


@shape
def conv_image_slices(params: Conv, rung: Rung) -> Launch:
    """A cluster of RANKS blocks for STRIPS · 16 channels of a group and a band of BAND rows of an image, each
    with a slice of the channels of x: grid = (groups · blocks of channels · RANKS, bands, images), the shape
    of the image and of the window compiled in. A block has WARPS warps, each TILES tiles of eight pixels.
    Dynamic shared memory: a block's weights, its part of the image, and what the others tell it. The header's
    STRIPS and RANKS are the most. Raises UnsupportedError for larger batches, for groups that are no whole
    chunks where x or y lies in chunks, and where nothing fits."""
    p, of, each = params, sums(params, rung), define(rung, "EACH")
    for layout, count in ((rung.read_layout, of.channels), (rung.written_layout, of.m)):
        if layout != layouts.PLAIN and p.group > 1 and count % each:
            raise UnsupportedError(f"{rung.label} takes whole chunks of channels; {p} has groups of {count}")
    cut = _fitting(p, rung, strip_slices.fit(of, *limits(rung)))
    packed = Pack(packing.strips, (p.group, rung.precision, cut.maps))
    beside = {name: rung.defines.get(name, 0) for name in ("READS", "WRITES")}
    us = strip_slices.microseconds(of, cut)
    return _launch(p, of, cut, strip_slices.nbytes(of, cut), us, packed, beside)


@shape
def conv_float_slices(params: Conv, rung: Rung) -> Launch:
    """As conv_image_slices, for MAPS maps of a group; how its threads share a block's work out says the
    estimate. The header's MAPS and RANKS are the most, its LEAST_WARPS the least. Raises UnsupportedError for
    larger batches, and where nothing fits."""
    p, of = params, sums(params, rung)
    cut = _fitting(p, rung, float_slices.fit(of, *limits(rung)))
    packed = Pack(pack, (p.group, cut.maps))
    us = float_slices.microseconds(of, cut)
    return _launch(p, of, cut, float_slices.nbytes(of, cut), us, packed, {"M": of.m})


def limits(rung: Rung) -> tuple[int, ...]:
    """The limits in the header, in the order of the rung's estimate."""
    return tuple(define(rung, name) for name in _LIMITS[rung.launch])


def sums(p: Conv, rung: Rung) -> Sums:
    """The convolution as the estimate needs it. Raises UnsupportedError for larger batches."""
    if p.n > MOST_IMAGES:
        raise UnsupportedError(f"{rung.label} is for batches of up to {MOST_IMAGES} images; {p} has more")
    of_step = _OF_STEP * define(rung, "EACH") if rung.launch == "conv_image_slices" else 1
    of_y = (p.n, p.group, p.m // p.group, p.c // p.group, p.out_h, p.out_w)
    window = (p.kh, p.kw, p.stride_h, p.stride_w, p.dilation_h, p.dilation_w)
    return Sums(*of_y, *window, of_step, define(rung, "OPERANDS", 1))


# --- helpers ---

_C = TypeVar("_C", bound=Cut)


def _fitting(p: Conv, rung: Rung, cut: _C | None) -> _C:
    if cut is None or ceil(p.out_h, cut.band) > MAX_YZ:
        raise UnsupportedError(
            f"{rung.label} keeps weights and pixels in {SHARED_NBYTES} bytes of shared memory; {p} needs more"
        )
    return cut


def _launch(
    p: Conv, of: Sums, cut: Cut, held: int, us: float, packed: Pack, beside: Mapping[str, Define]
) -> Launch:
    """held: bytes of shared memory; us: the estimate; beside: further defines."""
    defines: dict[str, Define] = {name.upper(): getattr(p, name) for name in _COMPILED_IN}
    defines |= {name.upper(): value for name, value in cut._asdict().items()}
    defines |= {"C": of.channels, "KEPT_NBYTES": held, "AFTER": code("ACTIVATION", p.activation)}
    return Launch(
        grid(of, cut),
        (WARP * cut.warps, 1, 1),
        p.scalars(),
        shared_nbytes=held,
        defines={**defines, **beside},
        packed={_WEIGHT: packed},
        microseconds=us,
    )
