"""Which layers of a comparison's case made it faster or slower, by the times that each run measured of them.

Layers are timed apart from the whole pass and not in turns with the reference, so that B's are told in
proportion: as they would be if the reference had taken in B what it took in A. It is a hint; a profile is
what tells where time goes.
"""

from __future__ import annotations

from bench.results.stats import Verdict
from bench.views.diff.records import Change, Side
from bench.words import units

LEAST = 0.2  # of all that the layers changed by, from which on one is named
MOST = 3


def where(change: Change) -> str:
    """ "mostly conv2 +401 µs (rung tiled → naive)"; "" where nothing is known of layers, or they moved the
    other way."""
    a, b = change.pair.a, change.pair.b
    if a is None or b is None or change.verdict not in (Verdict.FASTER, Verdict.SLOWER):
        return ""
    pace = _pace(a, b, change)
    both = [name for name in a.layers if name in b.layers]
    moved = {name: b.layers[name] * pace - a.layers[name] for name in both}
    total = sum(moved.values())
    way = 1 if change.verdict == Verdict.SLOWER else -1
    if not both or total * way <= 0:
        return ""
    largest = sorted(moved, key=lambda name: -way * moved[name])[:MOST]
    named = [
        f"{name} {units.change(moved[name])}{_rung(name, a, b)}"
        for name in largest
        if way * moved[name] >= LEAST * abs(total)
    ]
    proportion = "" if abs(pace - 1) < 0.02 else ", in proportion to the reference's time"
    return f"by its layers' own times mostly {', '.join(named)}{proportion}" if named else ""


def _pace(a: Side, b: Side, change: Change) -> float:
    """What B's times are multiplied by, so that the reference took as long in both."""
    if change.by != "speed-up" or not (a.time and b.time and a.speedup and b.speedup):
        return 1.0
    return a.time.value * a.speedup.value / (b.time.value * b.speedup.value)


def _rung(name: str, a: Side, b: Side) -> str:
    one, other = a.rungs.get(name, ""), b.rungs.get(name, "")
    return f" (rung {one} → {other})" if one != other and one and other else ""
