"""The launch shape of convolutions of small images whose blocks have a slice of the channels each
(cuda/conv_slices.cuh)."""

from __future__ import annotations

from kernels import layouts, packing
from kernels.errors import UnsupportedError
from kernels.estimates.image_slices import SHARED_NBYTES, STRIP, Cut, Sums, fit, nbytes
from kernels.launch.core import MAX_YZ, Launch, Pack, define, shape
from kernels.nvrtc import Define
from kernels.occupancy import WARP, ceil
from kernels.ops import code
from kernels.ops.conv import Conv
from kernels.registry import Rung

_WEIGHT = 1  # the place of the weights among the inputs
MOST_IMAGES = 16  # of a batch: of more, the tiles of other kernels are enough
_OF_STEP = 2  # chunks of a step of the sum
_COMPILED_IN = ("h", "w", "kh", "kw", "out_h", "out_w", "stride_h", "stride_w", "pad_top", "pad_left")


@shape
def conv_image_slices(params: Conv, rung: Rung) -> Launch:
    """A cluster of RANKS blocks for STRIPS · 16 channels of a group and a band of BAND rows of an image, each
    with a slice of the channels of x: grid = (groups · blocks of channels · RANKS, bands, images), the shape
    of the image and of the window compiled in. A block has WARPS warps, each TILES tiles of eight pixels.
    Dynamic shared memory: a block's weights, its part of the image, and what the others tell it. The header's
    STRIPS and RANKS are the most. Raises UnsupportedError for larger batches, for groups that are no whole
    chunks where x or y lies in chunks, and where nothing fits."""
    p, each = params, define(rung, "EACH")
    channels, wide = p.c // p.group, p.m // p.group
    if p.n > MOST_IMAGES:
        raise UnsupportedError(f"{rung.label} is for batches of up to {MOST_IMAGES} images; {p} has more")
    for layout, count in ((layouts.reads(rung), channels), (layouts.writes(rung), wide)):
        if layout != layouts.PLAIN and p.group > 1 and count % each:
            raise UnsupportedError(f"{rung.label} takes whole chunks of channels; {p} has groups of {count}")
    of = sums(p, rung)
    cut = fit(of, define(rung, "STRIPS"), define(rung, "RANKS"))
    if cut is None or ceil(p.out_h, cut.band) > MAX_YZ:
        raise UnsupportedError(
            f"{rung.label} keeps weights and pixels in {SHARED_NBYTES} bytes of shared memory; {p} needs more"
        )
    held = nbytes(of, cut)
    defines: dict[str, Define] = {name.upper(): getattr(p, name) for name in _COMPILED_IN}
    defines |= {"DILATION_H": p.dilation_h, "DILATION_W": p.dilation_w, "C": channels}
    defines |= {name.upper(): value for name, value in cut._asdict().items()} | {"KEPT_NBYTES": held}
    defines |= {"AFTER": code("ACTIVATION", p.activation)}
    defines |= {name: rung.defines.get(name, 0) for name in ("READS", "WRITES")}
    return Launch(
        grid(p, cut),
        (WARP * cut.warps, 1, 1),
        p.scalars(),
        shared_nbytes=held,
        defines=defines,
        packed={_WEIGHT: Pack(packing.strips, (p.group, rung.precision, STRIP * cut.strips))},
    )


def sums(p: Conv, rung: Rung) -> Sums:
    """The convolution as the estimate sees it."""
    steps = ceil(ceil(p.c // p.group, define(rung, "EACH")), _OF_STEP)
    window = (p.kh, p.kw, p.stride_h, p.stride_w, p.dilation_h, p.dilation_w)
    return Sums(p.n, p.group, p.m // p.group, steps, p.out_h, p.out_w, *window, define(rung, "OPERANDS", 1))


def grid(p: Conv, cut: Cut) -> tuple[int, int, int]:
    """Of blocks."""
    across = ceil(p.m // p.group, STRIP * cut.strips)
    return p.group * across * cut.ranks, ceil(p.out_h, cut.band), p.n
