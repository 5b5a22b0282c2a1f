"""What limits the speed of work, by one rule for every table, chart and sentence.

A machine's limits are its measured rates of arithmetic and of memory (or of its caches, if a pass fits into
them). Work reaches a share of the nearer limit. From BOUND of it on, work is called bound by that limit.
Below, it is far from every limit: other things slow it down more, and what is known of them is added.
NVIDIA's Nsight Compute also draws the line at 60 %, in its rule "Speed Of Light": "Achieved compute
throughput and/or memory bandwidth below 60.0% of peak typically indicate latency issues."
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.results.machine_limits import WHOLE, MachineLimits
from bench.words import units

BOUND = 0.6  # of the limit
OVER = 1.1  # beyond what a limit measured another day, or reads faster than copies, explain
LEAST = 0.0005  # of the limit: what a decimal would not show
NAMES = {"arithmetic": "arithmetic", "memory": "memory", "cache": "the caches"}


def binds(share: float) -> bool:
    """Whether work at this share of a limit is bound by it."""
    return BOUND <= share <= OVER


def standing(share: float, limit: str, known: Sequence[str] = ()) -> str:
    """Where work stands under the nearer of its limits (of NAMES): "bound by arithmetic (80 % of that
    limit)", "far from every limit (8.8 % of arithmetic); only 20 blocks for 132 multiprocessors". known: what
    else slows it down, where the limit does not."""
    name = NAMES[limit]
    if share > OVER:
        return f"beyond the limit of {name} by the plain count ({percent(share)} of it)"
    if share >= BOUND:
        return f"bound by {name} ({percent(share)} of that limit)"
    text = f"far from every limit ({percent(share)} of {name})"
    return "; ".join((text, *known))


def matrix_rates(limits: MachineLimits) -> list[str]:
    """What a machine's matrix units reach: "800 TFLOP/s in fp16", "1.6 POP/s in int8"."""
    return [
        f"{units.si(rate, 'OP/s' if name in WHOLE else 'FLOP/s')} in {name}"
        for name, rate in limits.matrix_flops_per_s.items()
    ]


def percent(share: float) -> str:
    """A share of a limit, with a decimal below a tenth, and where it would else be rounded up to BOUND."""
    if share < LEAST:
        return "less than 0.1 %"
    if BOUND - 0.005 <= share < BOUND:
        return units.percent(min(share, BOUND - 0.001), 1)
    return units.percent(share, 1 if share < 0.1 else 0)
