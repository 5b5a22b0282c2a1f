"""Launch shapes by name: how a rung's parameters become a grid, a block and the kernel's scalar arguments.

The convention every CUDA rung keeps to: the file, or a header that it includes, defines
`extern "C" __global__ void <op>(…)`; its arguments are one pointer an input in the order of the params'
docstring (null for an optional input that is absent), the pointer of the output, then one struct of the
scalars that `params.scalars()` lists, the same for every rung of the op (kernels.arguments). So a new rung on
a known launch shape touches no Python.

A rung with `packs = true` has weights that its launch shape lays out anew (`Launch.packed`: rounded, halved,
split, in the order of its tiles); the kernel is given the packed ones.

A launch may carry defines of its own (a tile size fitted to the problem); they win over the header's.

A launch may have several stages: a launch shape may ask for scratch memory, whose pointer all kernels then
take after that of the output, and name further kernels, `<op>_<stage>(…)`, which take the same arguments and
run in order before or after the first (`Launch.before`, `Launch.then`). A stage may do some images of a batch
alone: it is then told of a smaller batch. A stage may be a `Product`, which a library does (a yardstick).
"""

from kernels.launch import (
    band,
    cluster,
    depthwise,
    direct,
    elements,
    image_rows,
    image_slices,
    library,
    nhwc,
    products,
    programs,
    row_strips,
    rows,
    sliced,
    spectral,
    tensor,
    whole_image,
    windows,
)
from kernels.launch.core import POINTERS, SHAPES, Launch, Matrix, Pack, Product, Stage, launch, refusal
from kernels.launch.products import TILES

__all__ = [
    "POINTERS",
    "SHAPES",
    "TILES",
    "Launch",
    "Matrix",
    "Pack",
    "Product",
    "Stage",
    "band",
    "cluster",
    "depthwise",
    "direct",
    "elements",
    "image_rows",
    "image_slices",
    "launch",
    "library",
    "nhwc",
    "products",
    "programs",
    "refusal",
    "row_strips",
    "rows",
    "sliced",
    "spectral",
    "tensor",
    "whole_image",
    "windows",
]
