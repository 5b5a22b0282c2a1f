"""Launch shapes by name: how a rung's parameters become a grid, a block and the kernel's arguments.

The convention for every CUDA rung: the file, or a header that it includes, defines `extern "C" __global__
void <op>(…)`. Its arguments are one pointer for each input in the order of the params' docstring (null for an
optional input that is absent), the pointer of the output, then one struct of the scalars that
`params.scalars()` lists, the same for every rung of the op (kernels.arguments). So a new rung with a known
launch shape needs no Python.

A rung with `packs = true` has weights that its launch shape rearranges (`Launch.packed`: rounded, halved,
split, in the order of its tiles); the kernel gets the packed ones.

A header may instead say grid, block and the order of its kernels itself, as expressions of the sizes
(`given`).

A launch may have defines of its own (a tile size that fits the problem); they override the header's.

A launch may have several stages. A launch shape may ask for scratch memory, whose pointer all kernels then
take after that of the output. It may name further kernels, `<op>_<stage>(…)`, which take the same arguments
and run in order before or after the first (`Launch.before`, `Launch.then`). A stage may compute only some
images of a batch: then its batch size is smaller. A stage may be a `Product`, which a library computes (a
yardstick).
"""

from kernels.launch import (
    cluster,
    direct,
    elements,
    given,
    image_rows,
    image_slices,
    nhwc,
    products,
    quantized,
    row_strips,
    rows,
    sliced,
    spectral,
    tensor,
    whole_image,
    windows,
)
from kernels.launch.core import SHAPES, Launch, Matrix, Pack, Product, Stage, launch, refusal
from kernels.launch.products import TILES

__all__ = [
    "SHAPES",
    "TILES",
    "Launch",
    "Matrix",
    "Pack",
    "Product",
    "Stage",
    "cluster",
    "direct",
    "elements",
    "given",
    "image_rows",
    "image_slices",
    "launch",
    "nhwc",
    "products",
    "quantized",
    "refusal",
    "row_strips",
    "rows",
    "sliced",
    "spectral",
    "tensor",
    "whole_image",
    "windows",
]
