"""Fewer samples that say what all of them said.

The bootstrap distribution of the median of n samples lies within ranks n/2 ± √n/2 or so; m samples spread
evenly over the central √(m/n) of the sorted n have the same one, so medians, intervals and verdicts stay (the
tails go: a thinned run is no place to study them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from bench.results.records import Environment, Telemetry
from bench.results.stats import split_rounds

_TELEMETRY = 5  # values kept of each reading: least, quartiles, most


def keep(
    samples: Sequence[float], rounds: Sequence[int], most: int
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """At most about `most` of the samples, in the order taken, and where a round starts among them.

    The median of all is the same to the last bit; the bootstrap distribution of each round's median, and with
    it every interval and verdict, is nearly so. Rounds keep their shares.
    """
    if len(samples) <= most:
        return tuple(samples), tuple(rounds)
    values = np.asarray(samples, dtype=np.float64)
    parts = split_rounds(values, rounds)
    starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
    chosen = np.zeros(len(values), dtype=bool)
    for start, part in zip(starts, parts, strict=True):
        count = max(1, round(most * len(part) / len(values)))
        chosen[start + np.argsort(part, kind="stable")[_central(len(part), count)]] = True
    _balance(values, chosen)
    at = np.cumsum(chosen) - chosen
    return tuple(values[chosen].tolist()), tuple(int(at[start]) for start in starts) if len(
        starts
    ) > 1 else ()


def _central(count: int, wanted: int) -> np.ndarray:
    """Ranks of `wanted` of `count` sorted samples, even over their central √(wanted/count)."""
    if wanted >= count:
        return np.arange(count)
    spread = ((np.arange(wanted) + 0.5) / wanted - 0.5) * np.sqrt((wanted + 2) / (count + 2))
    return np.unique(np.clip(np.floor((0.5 + spread) * count).astype(int), 0, count - 1))


def _balance(values: np.ndarray, chosen: np.ndarray) -> None:
    """Choose also the middle one or two of all, and as many below as above: the median is that of all."""
    order = np.argsort(values, kind="stable")
    count = len(order)
    low, high = (count - 1) // 2, count // 2
    chosen[order[[low, high]]] = True
    below, above = order[:low][::-1], order[high + 1 :]  # nearest the middle first
    lacking = int(chosen[below].sum()) - int(chosen[above].sum())
    light = above if lacking > 0 else below
    chosen[light[~chosen[light]][: abs(lacking)]] = True


def rounded_all(values: Sequence[float], digits: int = 6) -> tuple[float, ...]:
    return tuple(rounded(value, digits) for value in values)


def told(facts: Mapping[str, str], kept: int, of: int) -> dict[str, str]:
    """The facts with how many samples were kept, where some were not."""
    if kept == of:
        return dict(facts)
    return {**facts, "samples kept": f"{kept} of {of:,}, about the median"}


def telemetry(seen: Telemetry) -> Telemetry:
    def few(values: tuple[float, ...]) -> tuple[float, ...]:
        if len(values) <= _TELEMETRY:
            return values
        places = np.linspace(0, len(values) - 1, _TELEMETRY).round().astype(int)
        return tuple(float(value) for value in np.sort(values)[places])

    return msgspec.structs.replace(
        seen,
        sm_clock_mhz=few(seen.sm_clock_mhz),
        power_w=few(seen.power_w),
        temperature_c=few(seen.temperature_c),
    )


def rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def public_dirs(folders: Sequence[str]) -> tuple[str, ...]:
    """The names of folders, without where they lie."""
    return tuple(Path(folder).name for folder in folders)


def public(environment: Environment) -> Environment:
    """Without what tells of one machine alone: the GPU's serial number."""
    return msgspec.structs.replace(environment, gpu_uuid="")
