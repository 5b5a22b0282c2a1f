"""What one block reads of global memory, found by running it alone with a shadow below every buffer: how
often its threads read an element, and how far apart those lie that neighbouring threads read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernels.ptx.program import Device, line_of

LANES = 32
_THREAD = (1 << 10) - 1
_SEVERAL = 7 << 10  # in a record of a read: several threads, and not one


@dataclass
class Reads:
    """Of a line: how many bytes its threads read in all, of how many different ones (those that no later
    line reads). stride: elements between those that neighbouring threads read; None where there is no such
    number."""

    nbytes: int = 0
    distinct: int = 0
    stride: int | None = None


def of_a_block(
    device: Device,
    name: str,
    grid: Sequence[int],
    block: Sequence[int],
    arguments: bytes,
    shared_nbytes: int = 0,
    seed: int = 0,
    seconds: float | None = None,
) -> dict[tuple[str, int], Reads]:
    """By line, of the first block of a launch. device: with the launch's buffers, which are left as they are;
    the others as of Device.launch."""
    twin = Device(device.program)
    for its in device.buffers[len(twin.buffers) :]:
        twin.buffer(its.name, its.bytes, its.itemsize, writable=True)
    for mine, its in zip(twin.buffers, device.buffers, strict=True):
        mine.bytes[:] = its.bytes
    report = twin.launch(name, grid, block, arguments, shared_nbytes, seed, seconds, only=1)
    made = device.program.translated(name)
    found = {key: Reads(counts.loaded) for key, counts in report.lines.items() if counts.loaded}
    granule = 1 << device.program.granule
    for buffer in twin.buffers:
        if buffer.shadow is None:
            continue
        records = buffer.shadow[: buffer.shadow.size // 4 * 4].reshape(-1, 4)
        at = np.flatnonzero(records[:, 2])
        sites, flags = records[at, 2] & 0xFFFFFFFF, records[at, 3]
        lines = [line_of(made.sites[int(site)]) if site < len(made.sites) else None for site in sites]
        for key in {line for line in lines if line is not None and line in found}:
            of_line = np.array([line == key for line in lines])
            found[key].distinct += int(of_line.sum()) * granule
            alone = of_line & (flags & _SEVERAL == 0)
            if (step := _stride(at[alone], flags[alone] & _THREAD)) is not None:
                found[key].stride = step * granule // buffer.itemsize
    return found


def _stride(places: np.ndarray, threads: np.ndarray) -> int | None:
    """The usual distance between the last places of neighbouring threads of a warp."""
    last: dict[int, int] = {}
    for place, thread in zip(places.tolist(), threads.tolist(), strict=True):
        last[thread] = max(place, last.get(thread, 0))
    steps = [last[t + 1] - last[t] for t in last if t % LANES != LANES - 1 and t + 1 in last]
    if len(steps) < LANES // 4:
        return None
    values, counts = np.unique(np.array(steps), return_counts=True)
    return int(values[counts.argmax()]) if 2 * counts.max() >= len(steps) else None
