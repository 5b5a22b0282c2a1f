"""How a net in one kernel is shared out, as records: a way, and the places in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.net.layers import Extent
from kernels.occupancy import ceil

# How values lie in shared memory, as net_maps.cuh says it.
AS_FLOATS, AS_TF32, AS_NEIGHBOURS, AS_CHANNELS = range(4)
FRAGMENT = 128  # floats that a warp takes of weights for an instruction


@dataclass(frozen=True)
class Way:
    """ranks: blocks of a team, a cluster where there are several; images: of a group, that a team computes at
    once; threads: of a block; blocks: that are to be on a multiprocessor at once; most: maps that a thread
    computes of a convolution, as many of them as leave none over (0: as an estimate says); tensor: whether
    convolutions and products are on tensor cores, in TF32, where their form allows it; half: the type
    of 16 bits that products are in ("": none), whose weights are half as many bytes, and all of it where a
    team is one block; sent: blocks of a team wait for the values that they are told, not for each other,
    which takes a team that has one group alone, so more than two blocks; beside: images for which a thread of
    a convolution reads weights once, and then it takes two outputs of a product."""

    ranks: int
    images: int
    threads: int
    blocks: int = 1
    most: int = 0
    tensor: bool = False
    half: str = ""
    sent: bool = False
    beside: int = 1

    @property
    def deep(self) -> int:
        """Steps of a product's sum that are one instruction of a tensor core."""
        return 16 if self.half else 8

    @property
    def halves(self) -> bool:
        """Whether what tensor cores read has 16 bits in shared memory, which no block tells another."""
        return bool(self.half) and self.ranks == 1

    @property
    def words(self) -> str:
        team = f"{self.ranks} blocks" if self.ranks > 1 else "a block"
        group = f"{self.images} images" if self.images > 1 else "an image"
        cores = (" on tensor cores" + self._half) if self.tensor else ""
        sent = ", values sent" * self.sent + f", {self.beside} a thread" * (self.beside > 1)
        return f"{team} of {self.threads} threads for {group}{cores}{sent}"

    @property
    def _half(self) -> str:
        if not self.half:
            return ""
        return f" in {self.half}" if self.halves else f", products in {self.half}"


@dataclass(frozen=True)
class Tile:
    """Of a convolution: down × across outputs a thread in `many` maps, whose weights lie `stride` apart;
    `shares` lanes share its channels. tensor: on tensor cores, a column's (kernels.net.tensor); joined: so
    many of them down and across are rows of the same instructions; kind: how what it reads lies; beside: of
    so many images; slices: warps that share a sum's steps."""

    down: int
    across: int
    many: int
    shares: int
    tensor: bool = False
    joined: tuple[int, int] = (1, 1)
    kind: int = AS_FLOATS
    beside: int = 1
    slices: int = 1

    @property
    def stride(self) -> int:
        return self.many if self.many <= 2 else ceil(self.many, 4) * 4


@dataclass(frozen=True)
class Buffer:
    """What one layer hands to the next in shared memory, as net_maps.cuh has it: `at` in floats, the rest of
    one image. bordered: there is something round the values that nobody writes. kind: how values lie; of two
    in a word rows and planes are counted in values."""

    extent: Extent
    rows: int
    row: int
    plane: int
    top: int = 0
    left: int = 0
    apart: int = 1
    kind: int = AS_FLOATS
    at: int = 0

    @property
    def bordered(self) -> bool:
        alone = self.kind == AS_CHANNELS and self.extent[0] % 2
        alone = alone or (self.kind == AS_NEIGHBOURS and self.extent[0] * self.plane % 2)
        return bool(alone) or (self.rows, self.row) != self.extent[1:]

    @property
    def floats(self) -> int:
        if self.kind == AS_CHANNELS:
            return ceil(self.extent[0], 2) * self.plane
        return (
            ceil(self.extent[0] * self.plane, 2)
            if self.kind == AS_NEIGHBOURS
            else self.extent[0] * self.plane
        )


@dataclass(frozen=True)
class Shared:
    """Where a product reads its weights. at: in shared memory (None: in global memory); bias: place of its
    biases; each block has `rows` rows of `lead` floats. slices: warps that share a sum, whose parts lie at
    `parts`; team: blocks that share its outputs; tensor: a row is what a warp reads for one instruction."""

    at: int | None
    bias: int
    lead: int
    rows: int
    slices: int = 1
    parts: int = 0
    team: int = 1
    tensor: bool = False
    half: str = ""

    @property
    def nfloats(self) -> int:
        """Floats of one block, rounded up to a multiple of four."""
        return fours(self.rows * self.lead)


@dataclass(frozen=True)
class Room:
    """Floats of shared memory: buffers in the order of the layers that read them, the first `bordered`
    cleared at the start; weights of convolutions and biases, `common` floats from `weights` on; by layer the
    tile of a convolution and where its weights lie, or where a product's do; parts: where those of a
    convolution's sums lie that warps share. solo: the layers from there on
    are done by the first block of the team alone. staged: where images come in that are then made 16 bits."""

    buffers: tuple[Buffer, ...]
    bordered: int
    weights: int
    common: int
    tiles: dict[int, tuple[Tile, int]]
    products: dict[int, Shared]
    solo: int
    floats: int
    staged: int | None = None
    parts: int = 0

    @property
    def nbytes(self) -> int:
        return 4 * self.floats


def fours(floats: int) -> int:
    """Rounded up to a multiple of four."""
    return ceil(floats, 4) * 4
