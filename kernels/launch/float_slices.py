"""The launch shape of convolutions of small images in float32 whose blocks have a slice of the channels each
(cuda/conv/44_slices.cu)."""

from __future__ import annotations

from kernels.errors import UnsupportedError
from kernels.estimates.float_slices import SHARED_NBYTES, Cut, Sums, fit, nbytes
from kernels.launch.core import MAX_YZ, Launch, Pack, define, shape
from kernels.launch.whole_image import pack
from kernels.nvrtc import Define
from kernels.occupancy import WARP, ceil
from kernels.ops import code
from kernels.ops.conv import Conv
from kernels.registry import Rung

_WEIGHT = 1  # the place of the weights among the inputs
MOST_IMAGES = 16  # of a batch: of more, the tiles of other kernels are enough
_COMPILED_IN = ("h", "w", "kh", "kw", "out_h", "out_w", "stride_h", "stride_w", "pad_top", "pad_left")


@shape
def conv_float_slices(params: Conv, rung: Rung) -> Launch:
    """A cluster of RANKS blocks for MAPS maps of a group and a band of BAND rows of an image, each with a
    slice of the channels of x: grid = (groups · blocks of maps · RANKS, bands, images), the shape of the
    image and of the window compiled in. Dynamic shared memory: a block's weights, its part of the image, and
    what the others tell it. The header's MAPS and RANKS are the most, its
    LEAST_WARPS the least. Raises UnsupportedError for larger batches, and where nothing fits."""
    p = params
    if p.n > MOST_IMAGES:
        raise UnsupportedError(f"{rung.label} is for batches of up to {MOST_IMAGES} images; {p} has more")
    of = sums(p)
    cut = fit(of, *limits(rung))
    if cut is None or ceil(p.out_h, cut.band) > MAX_YZ:
        raise UnsupportedError(
            f"{rung.label} keeps weights and pixels in {SHARED_NBYTES} bytes of shared memory; {p} needs more"
        )
    held = nbytes(of, cut)
    defines: dict[str, Define] = {name.upper(): getattr(p, name) for name in _COMPILED_IN}
    defines |= {"DILATION_H": p.dilation_h, "DILATION_W": p.dilation_w, "C": of.channels, "M": of.m}
    defines |= {name.upper(): value for name, value in cut._asdict().items()} | {"KEPT_NBYTES": held}
    defines |= {"AFTER": code("ACTIVATION", p.activation)}
    return Launch(
        grid(of, cut),
        (WARP * cut.warps, 1, 1),
        p.scalars(),
        shared_nbytes=held,
        defines=defines,
        packed={_WEIGHT: Pack(pack, (p.group, cut.maps))},
    )


def limits(rung: Rung) -> tuple[int, int, int]:
    """Of the header."""
    return define(rung, "MAPS"), define(rung, "RANKS"), define(rung, "LEAST_WARPS")


def sums(p: Conv) -> Sums:
    """The convolution as the estimate sees it."""
    window = (p.kh, p.kw, p.stride_h, p.stride_w, p.dilation_h, p.dilation_w)
    return Sums(p.n, p.group, p.m // p.group, p.c // p.group, p.out_h, p.out_w, *window)


def grid(of: Sums, cut: Cut) -> tuple[int, int, int]:
    """Of blocks."""
    return of.group * ceil(of.m, cut.maps) * cut.ranks, ceil(of.out_h, cut.band), of.images
