"""How far a contender's median moved while it was timed, and what moved it: a figure that did is marked.

That is another question than how well the median is known: of two instances that agree within a per cent the
interval is wide all the same, as two say little of what a third would do (bench.results.stats), and nothing
was unquiet.
"""

from __future__ import annotations

import numpy as np

from bench.results import doubt, stats
from bench.results.stats import UNQUIET_WIDTH, Sampled
from bench.results.stats.medians import median, split_rounds


def warning(timed: Sampled) -> str:
    """A sentence where the rounds, each beside others of its instance, leave the median uncertain by more
    than UNQUIET_WIDTH, or else the instances' own medians are further apart than that; else ""."""
    parts = split_rounds(timed.samples_ns, timed.rounds)
    labels = timed.instances[: len(parts)] if len(timed.instances) >= len(parts) else (0,) * len(parts)
    medians = {
        label: float(np.median([median(part) for part, of in zip(parts, labels, strict=True) if of == label]))
        for label in set(labels)
    }
    # As if all instances were as fast as the fastest.
    least = max(min(medians.values()), np.finfo(float).tiny)
    alike = np.concatenate(
        [part * (least / max(medians[of], least)) for part, of in zip(parts, labels, strict=True)]
    )
    # Samples have one decimal: what was equal stays so.
    moved = stats.median_interval(np.round(alike, 1), timed.rounds).relative
    if moved > UNQUIET_WIDTH:
        return f"{doubt.UNQUIET}: between rounds the median moved by up to {moved:.0%}"
    apart = max(medians.values()) / least - 1
    if apart > UNQUIET_WIDTH:
        return f"instances differ: the median of one is {apart:.0%} above that of another"
    return ""
