"""How far a case is from what its machine reaches, and which of its steps is furthest.

The floor of a step is the arithmetic or the bytes that it needs at least, at the rates that were measured
on the machine, whichever takes longer (the roofline: S. Williams, A. Waterman and D. Patterson,
Communications of the ACM 52, 2009); that of a case is the sum of its steps'. Where all bytes of a pass fit
into the caches, they come at the caches' rate. Bytes are the fewest that its precision allows
(kernels.ops.Params.least_nbytes), whatever the rung that was chosen reads. It is of the plan's steps: one
kernel for several of them moves fewer bytes than are counted here, and may well be faster.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.results.machine_limits import SCHEMA, MachineLimits
from bench.results.records import Environment, Layer, Measurement
from bench.results.store import read_file, write_atomically
from bench.views.tables.comparison_tables import layer_name
from bench.words import units
from kernels.errors import InputError, KernelscopeError
from kernels.precision import of_layer

LIMITS_FILE = "limits.json"  # beside runs

NOTE = (
    "The floor of a case is the sum of its steps', each the longer of its arithmetic and its bytes at the "
    "rates measured here; where all bytes of a pass fit into the caches, at the caches' rate. A kernel that "
    "does several steps at once moves fewer bytes than are counted, and Winograd and FFT multiply less. A "
    "weight is counted as 2 bytes in fp16 and tf32 (scaled float16 has all bits of TF32), 3 in fp32-tc, 4 in "
    "fp32; records from before that was told count 4 in all of them."
)


@dataclass(frozen=True)
class Step:
    """The step of a case that takes most of its time. share: of the time of all steps; of_floor: its floor
    over its time (None: not known); bound: "arithmetic", "memory" or "the cache"."""

    name: str
    share: float
    of_floor: float | None = None
    bound: str = ""

    @property
    def words(self) -> str:
        told = f"the longest step, {units.percent(self.share, 0)} of the time, is {self.name}"
        if self.of_floor is None:
            return told
        return f"{told}, which reaches {units.percent(self.of_floor, 0)} of its limit ({self.bound})"


def kept(folders: Sequence[Path]) -> tuple[MachineLimits, ...]:
    """What machines were measured to reach, as these folders have it, each once: runs of several GPUs may lie
    apart, each with its own's limits."""
    found: list[MachineLimits] = []
    for folder in dict.fromkeys(folders):
        with contextlib.suppress(OSError, InputError):
            found.append(read_file(folder / LIMITS_FILE, MachineLimits, SCHEMA))
    return tuple(found)


def measured(device: str, keep_in: Path | None = None) -> tuple[MachineLimits, ...]:
    """What this machine reaches, the most that was seen; also kept in a folder. Nothing where it cannot be
    measured."""
    from bench.measure import limits

    try:
        found = limits.limits(device)
    except KernelscopeError as error:
        print(f"warning: the machine's limits are not known: {error}", file=sys.stderr)
        return ()
    if keep_in is not None:
        write_atomically(keep_in / LIMITS_FILE, msgspec.json.format(msgspec.json.encode(found), indent=2))
    return (found,)


def fit(known: Sequence[MachineLimits], environment: Environment) -> MachineLimits | None:
    """Of several machines' limits those of the one that a run was measured on; where there are none, another
    GPU's of the same name, which differs by a few per cent (`is_of` tells). A CPU's depend on more than its
    name, so that another machine's are none of it."""
    own = (limits for limits in known if is_of(limits, environment))
    return next(own, None) or next((limits for limits in known if _is_alike(limits, environment)), None)


def is_of(limits: MachineLimits, environment: Environment) -> bool:
    """Whether the very machine of a run was probed."""
    device = environment.cpu if limits.device == "cpu" else f"{environment.gpu} {environment.gpu_uuid}"
    return bool(environment.machine) and limits.measured_on.startswith(f"{environment.machine}, {device}, ")


def _is_alike(limits: MachineLimits, environment: Environment) -> bool:
    if limits.device == "cpu" or not environment.gpu:
        return False
    _, named, behind = limits.measured_on.partition(f", {environment.gpu} ")
    # Behind a GPU's name comes its identifier: more words are a longer name, another GPU's.
    return bool(named) and " " not in behind.split(", ")[0].strip()


def floor_ns(made: Measurement, limits: MachineLimits) -> float | None:
    """Of a pass; None where the measurement tells no layer's work."""
    whole = sum(map(_least, made.layers))
    found = [_floor(layer, made, limits, whole)[0] for layer in made.layers]
    return sum(found) if any(found) else None


def longest(made: Measurement, limits: MachineLimits | None) -> Step | None:
    """None where no step was timed."""
    timed = [layer for layer in made.layers if layer.time_ns]
    if not timed:
        return None
    most = max(timed, key=lambda layer: layer.time_ns or 0.0)
    assert most.time_ns is not None
    share = most.time_ns / sum(layer.time_ns or 0.0 for layer in timed)
    if limits is None or not (most.flops or _least(most)):
        return Step(layer_name(most), share)
    # One that was timed again and again by itself finds in a cache what has room there.
    alone = most.clock in ("events", "isolated")
    between = _least(most) if alone else sum(map(_least, made.layers))
    least, bound = _floor(most, made, limits, between)
    return Step(layer_name(most), share, least / most.time_ns, bound)


def _least(layer: Layer) -> int:
    return layer.nbytes if layer.least_nbytes is None else layer.least_nbytes


def _floor(layer: Layer, made: Measurement, limits: MachineLimits, between: int) -> tuple[float, str]:
    """Nanoseconds, and which of the two it is. between: bytes from one reading of its weights to the next."""
    rate = limits.rate(of_layer(made.case.precision, layer.precision)) or limits.flops_per_s
    computing, moving = layer.flops / rate, _least(layer) / limits.moved_per_s(between)
    if computing >= moving:
        return computing * 1e9, "arithmetic"
    return moving * 1e9, "the cache" if limits.cached(between) else "memory"
