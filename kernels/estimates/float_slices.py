"""How a convolution of small images in float32 is cut among blocks that each have a slice of its sum
(cuda/conv/44_slices.cu).

Constants follow from the machine code and from what is known of an H200; none but those of `microseconds` is
fitted to timed launches.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kernels.estimates import image_slices
from kernels.estimates.fitted_device import MULTIPROCESSORS, SCHEDULERS
from kernels.estimates.image_slices import SHARED_NBYTES, Sums, fetching, queue, rounds, trips
from kernels.occupancy import REGISTERS, WARP, ceil

_BANKS = 32
_MAPS, _OF_THREAD, _TEAMS = (16, 24, 32), (16, 12, 8), (1, 2, 3, 4, 6, 8)
_SPREAD = (1, 2)
_MOST_WARPS = 16  # of a block
_MOST_EACH = 12
_MOST_PIXELS = 1024  # of a band: more bands, rather
_MOST_REGISTERS = 232  # of a thread
UNROLLED = 1200  # multiplications whose instructions are written out: the same number as in the kernel
_PITCHES = 6  # that are looked at, from the shortest on


class Cut(NamedTuple):
    """maps: of a block; ranks: blocks of a cluster; of_thread, each: maps and pixels of a thread; teams: of a
    block, which share out its channels; spread: sets of maps that the lanes of a warp have; band: rows of y
    of a block; pitch: numbers from row to row of the image in shared memory; slots: 32 / spread pixels each,
    of a band."""

    maps: int
    ranks: int
    of_thread: int
    each: int
    teams: int
    spread: int
    band: int
    pitch: int
    slots: int

    @property
    def warps(self) -> int:
        return self.maps // (self.of_thread * self.spread) * (self.slots // self.each) * self.teams

    @property
    def lines(self) -> int:
        """Of four maps by lane: sums of a block."""
        return self.maps // (4 * self.spread) * self.slots


@functools.lru_cache(maxsize=4096)
def fit(of: Sums, most_maps: int, most_ranks: int, least_warps: int) -> Cut | None:
    """What should take least time; None where nothing fits into shared memory."""
    return min(cuts(of, most_maps, most_ranks, least_warps), key=lambda cut: clocks(of, cut), default=None)


def cuts(of: Sums, most_maps: int, most_ranks: int, least_warps: int) -> Iterator[Cut]:
    """Those that are looked at."""
    maps = [count for count in _MAPS if count <= min(most_maps, max(_MAPS[0], 2 * of.m - 1))]
    ranks = range(1, min(most_ranks, of.channels) + 1)
    for band in of.bands():
        if band * of.out_w > _MOST_PIXELS:
            break
        for wide, blocks, spread in itertools.product(maps, ranks, _SPREAD):
            pitch, needed = places(of, band, spread)
            if nbytes(of, Cut(wide, blocks, wide, 1, 1, spread, band, pitch, needed)) > SHARED_NBYTES:
                continue
            of_threads = [count for count in _OF_THREAD if wide % (count * spread) == 0]
            # Pixels of a thread, and threads across: of those that need as many of these, the fewest.
            each_across = [(ceil(needed, across), across) for across in range(1, needed + 1)]
            each_across = [
                (each, across)
                for each, across in each_across
                if each <= _MOST_EACH and ceil(needed, each) == across
            ]
            most_teams = _most_teams(ceil(of.channels, blocks))
            few_teams = [teams for teams in _TEAMS if teams <= most_teams]
            for of_thread, (each, across), teams in itertools.product(of_threads, each_across, few_teams):
                cut = Cut(wide, blocks, of_thread, each, teams, spread, band, pitch, each * across)
                warps = cut.warps
                if warps > _MOST_WARPS or (warps < least_warps and teams < most_teams):
                    continue
                if registers(cut) > min(_MOST_REGISTERS, REGISTERS // (WARP * warps)):
                    continue
                if nbytes(of, cut) <= SHARED_NBYTES:
                    yield cut


def _most_teams(channels: int) -> int:
    """That have one of a block's channels each: more warps there are not, even if they are fewer than
    wanted."""
    return max(count for count in _TEAMS if count <= channels)


@functools.lru_cache(maxsize=4096)
def _places(band: int, out_w: int, shortest: int, lanes: int) -> tuple[int, int]:
    """The pitch, and the slots where a lane has pixels of one bank alone: as many as the bank with most."""
    choices = []
    for pitch in range(shortest, shortest + _PITCHES):
        place = np.arange(band)[:, None] * pitch + np.arange(out_w)
        choices.append((int(np.bincount(place.reshape(-1) % lanes, minlength=lanes).max()), pitch))
    slots, pitch = min(choices)
    return pitch, slots


def places(of: Sums, band: int, spread: int) -> tuple[int, int]:
    """The pitch of the image in shared memory, and the slots of a band."""
    if of.stride_h > 1 or of.stride_w > 1:
        return of.columns_read, ceil(band * of.out_w, WARP // spread)
    return _places(band, of.out_w, of.columns_read, WARP // spread)


def nbytes(of: Sums, cut: Cut) -> int:
    """Shared memory of a block."""
    channels, lines = ceil(of.channels, cut.ranks), cut.lines
    pieces = channels * of.taps * cut.maps // 4 + ceil(channels * of.rows_read(cut.band) * cut.pitch, 4)
    if cut.teams > 1:
        pieces = max(pieces, cut.teams * lines * WARP)
    if cut.ranks > 1:
        pieces += cut.ranks * ceil(lines, cut.ranks) * WARP
    return 16 * pieces + 4 * (cut.slots * WARP // cut.spread + cut.maps)


def registers(cut: Cut) -> int:
    """Of a thread: sums, two turns of what is multiplied, places, and what the loop counts."""
    return cut.of_thread * cut.each + 2 * cut.of_thread + 3 * cut.each + 32


_READ = 1.0  # clocks of a multiprocessor for 32 numbers out of shared memory
_READ_FOUR = 2.0  # for four weights, the same for all lanes
_FIRST = 35  # clocks of a warp before it has the first numbers of what is written out
_SHARED, _PUT = 128, 32  # bytes a clock and multiprocessor within shared memory, and to that of others
_PART = 16  # multiprocessors at least of each of the device's parts, within which a cluster stands


def at_once(ranks: int) -> int:
    """Blocks that have a multiprocessor each."""
    return MULTIPROCESSORS if ranks == 1 else MULTIPROCESSORS // _PART * (_PART // ranks * ranks)


class _Work(NamedTuple):
    """Of a multiprocessor, in clocks. blocks: that it has; turns: in which it has them."""

    blocks: int
    turns: int
    loop: float
    fetching: float


def _work(of: Sums, cut: Cut) -> _Work:
    blocks, warps = queue(of, cut, at_once(cut.ranks)), cut.warps
    turns = rounds(blocks, warps, nbytes(of, cut), registers(cut))

    channels = ceil(of.channels, cut.ranks)
    steps = ceil(channels, cut.teams) * of.taps  # of a warp
    crowd = max(of.stride_w, 1 + (of.stride_h > 1))  # lanes that meet in a bank
    fours = cut.of_thread / 4
    started = steps * (cut.of_thread * cut.each + fours + cut.each + (2 * cut.each + 6) / of.taps)
    multiplying = ceil(warps, SCHEDULERS) * started
    reading = warps * steps * (fours * _READ_FOUR + cut.each * min(crowd, _BANKS) * _READ)
    whole = of.taps * cut.of_thread * cut.each <= UNROLLED
    waiting = ceil(channels, cut.teams) * (1 if whole else of.kh) * _FIRST
    # Warps of a scheduler wait while others multiply.
    at_least = turns * (started + waiting)
    loop = max(blocks * (multiplying + waiting / ceil(warps, SCHEDULERS) ** 2), blocks * reading, at_least)

    image = 4 * channels * of.rows_read(cut.band) * of.columns_read
    weights = 4 * channels * of.taps * cut.maps
    return _Work(blocks, turns, loop, fetching(blocks * image / 2, blocks * weights))


def clocks(of: Sums, cut: Cut) -> float:
    """The estimate that cuts are chosen by: what the busiest multiprocessor multiplies, reads for that and
    fetches, and the trips that nothing hides."""
    work = _work(of, cut)
    times = 2 + (2 * cut.teams if cut.teams > 1 else 0)
    adding = 16 * cut.lines * WARP * (times / _SHARED + (1 / _PUT if cut.ranks > 1 else 0))
    return work.loop + work.fetching + work.blocks * adding + work.turns * trips(cut)


# Bounded by what did not happen, for no launch of its own was timed alone: on the H100 of image_slices no
# layer of AlexNet took it, of one image or of eight. In the third of one image, where others took 23.3 µs,
# its loop therefore takes so many times the clocks at least.
_AT_LEAST = 3.1


def microseconds(of: Sums, cut: Cut) -> float:
    """The estimate of what a launch takes at least."""
    work = _work(of, cut)
    working = _AT_LEAST * (work.loop + work.fetching)
    return image_slices.microseconds(cut, work.turns, work.blocks * 16 * cut.lines * WARP, working)
