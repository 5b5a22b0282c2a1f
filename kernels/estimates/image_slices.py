"""How convolutions of small images are cut among blocks that each have a slice of the sum: what they share.
Cuts are chosen by `clocks`; what a launch takes say `microseconds`, by which kernels are compared.

A kernel's own module says what a cut of it is, which are looked at and what they multiply: `strip_slices` of
tensor cores (cuda/conv_slices.cuh), `float_slices` of float32 (cuda/conv/44_slices.cu).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from kernels.estimates.fitted_device import THREADS_RESIDENT
from kernels.occupancy import REGISTERS, WARP, ceil

SHARED_NBYTES = 227 << 10  # of a block of compute capability 9.0
_MOST_BANDS = 32


class Sums(NamedTuple):
    """A convolution as its blocks see it. m, channels: of a group; of_step: channels that are multiplied at
    once; operands: of a number."""

    images: int
    group: int
    m: int
    channels: int
    out_h: int
    out_w: int
    kh: int
    kw: int
    stride_h: int
    stride_w: int
    dilation_h: int
    dilation_w: int
    of_step: int = 1
    operands: int = 1

    @property
    def taps(self) -> int:
        return self.kh * self.kw

    @property
    def steps(self) -> int:
        """Of the sum, for each tap: what the blocks of a cluster share out."""
        return ceil(self.channels, self.of_step)

    @property
    def columns_read(self) -> int:
        return (self.out_w - 1) * self.stride_w + (self.kw - 1) * self.dilation_w + 1

    def rows_read(self, band: int) -> int:
        """Under a band of so many rows of y."""
        return (band - 1) * self.stride_h + (self.kh - 1) * self.dilation_h + 1

    def bands(self) -> list[int]:
        """The heights that are looked at: as many bands of each as there have to be."""
        return sorted({ceil(self.out_h, count) for count in range(1, min(self.out_h, _MOST_BANDS) + 1)})


class Cut(Protocol):
    """What every cut has. maps: of a block; ranks: blocks of a cluster; band: rows of y of a block."""

    @property
    def maps(self) -> int: ...
    @property
    def ranks(self) -> int: ...
    @property
    def band(self) -> int: ...
    @property
    def warps(self) -> int: ...
    def _asdict(self) -> dict[str, int]:
        """What its kernel is told of it, by name."""
        ...


def grid(of: Sums, cut: Cut) -> tuple[int, int, int]:
    """Of blocks."""
    return of.group * ceil(of.m, cut.maps) * cut.ranks, ceil(of.out_h, cut.band), of.images


def queue(of: Sums, cut: Cut, at_once: int) -> int:
    """Blocks of a multiprocessor, where the device has so many at once."""
    x, y, z = grid(of, cut)
    return ceil(x * y * z, at_once)


def rounds(blocks: int, warps: int, nbytes: int, registers: int) -> int:
    """One after the other, in which a multiprocessor has so many blocks: with nbytes of shared memory each,
    and registers a thread."""
    room = SHARED_NBYTES // (nbytes + 1024), THREADS_RESIDENT // (WARP * warps)
    return ceil(blocks, max(1, min(blocks, *room, REGISTERS // (WARP * warps * registers))))


# Constants follow from what is known of an H200; none is fitted to timed launches.
_FETCHED = 32  # bytes a clock and multiprocessor out of the second cache
_TRIP, _MEETING, _TOLD = 1200, 700, 30  # to the cache and back; of a cluster, and for each of its blocks
_EARLY = 1500  # clocks for which weights are on their way while the kernel in front still runs


def fetching(image_nbytes: float, weights_nbytes: float) -> float:
    """Clocks for what a multiprocessor's blocks fetch."""
    return image_nbytes / _FETCHED + max(0.0, weights_nbytes / _FETCHED - _EARLY)


def trips(cut: Cut) -> int:
    """Clocks of a block that nothing hides: to the cache and back, and until a cluster has met."""
    return _TRIP + (_MEETING + _TOLD * cut.ranks if cut.ranks > 1 else 0)


# What a launch takes that follows others in a train: fitted to ten on an NVIDIA H100 (132 multiprocessors,
# here counted at 1.755 GHz), AlexNet's second, fourth and fifth convolution of one image in three
# precisions on tensor cores, and the fifth of eight images in float16, which it gives within 5 %. Each is
# taken as `clocks` cuts it, so these constants say nothing of the order of other cuts, and none is chosen
# by them. The third of one image, in clusters of eight, was not taken in float16 where others took 7.5 µs;
# it is given 5.8.
_CLOCKS_A_US = 1755
_LAUNCH = 1300  # clocks of starting a kernel that nothing hides
_ACROSS = 7.3  # bytes a clock and multiprocessor that others of a cluster are told and add up


def microseconds(cut: Cut, turns: int, sums_nbytes: int, working: float) -> float:
    """Of a launch whose blocks come in so many turns and work for so many clocks; sums_nbytes: what a
    multiprocessor's blocks have to add up with others."""
    exchange_us = sums_nbytes / _ACROSS if cut.ranks > 1 else 0
    return (_LAUNCH + turns * trips(cut) + exchange_us + working) / _CLOCKS_A_US
